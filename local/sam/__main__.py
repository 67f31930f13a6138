"""Runs functions in SAM's containers, with the stand-ins for AWS of `make run`. `make` calls it, after check.py:

    sam invoke FUNCTION         lets SAM invoke the function with its sample event
    sam api                     lets SAM serve the routes
    sam events [FUNCTION …]     compares SAM's answers to sample events with those of `make run`
"""

import argparse
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import samples
from comparison import compare
from faults import Fault
from stage import staged

PROJECT = Path(__file__).resolve().parents[2]


def invoke(name: str, event: Path | None, data: Path, options: list[str]) -> int:
    """Runs a function once in a container. Its answer goes to standard output, its log to standard error."""
    function = samples.function_of(name)
    with staged(PROJECT, data, [function]) as stage:
        sample = (event or PROJECT / f"events/{name}.json").read_text(encoding="utf-8")
        return wait(stage.invoke(function, samples.filled(sample, stage.service.placeholders(sample)), *options))


def api(port: int, data: Path, options: list[str]) -> int:
    """Serves every route on this port, with a separate container for each request, until Ctrl-C."""
    with staged(PROJECT, data) as stage:
        service = stage.service.env["BASE_URL"]
        print(f"Queues and schedules invoke the functions of {service}, the issuer and audience of tokens.", file=sys.stderr)
        return wait(stage.serve(port, *options))


def wait(sam: "subprocess.Popen[str]") -> int:
    """Waits for SAM. Ctrl-C also reaches SAM, which then ends its containers."""
    while True:
        try:
            return sam.wait()
        except KeyboardInterrupt:
            sam.send_signal(signal.SIGINT)


def main() -> int:
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="sam", description=__doc__, formatter_class=as_written)
    commands = parser.add_subparsers(dest="command", required=True)
    invoked = commands.add_parser("invoke")
    invoked.add_argument("function")
    invoked.add_argument("--event", type=Path, help="a file with the event; by default the function's sample")
    served = commands.add_parser("api")
    served.add_argument("--port", type=int, default=3000)
    compared = commands.add_parser("events")
    compared.add_argument("samples", nargs="*")
    for command in (invoked, served):
        command.add_argument("--data", type=Path, default=Path(".local"), help="the data folder of the service")
        command.add_argument("--options", default="", help="more options for `sam local`, as one string")
    arguments = parser.parse_args()
    # Handle SIGTERM and SIGHUP like Ctrl-C, so that the containers and the stand-ins end with this
    # program. Set a handler for SIGINT too, since a shell's background jobs ignore it.
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    if arguments.command == "events":
        return compare(PROJECT, arguments.samples)
    options = shlex.split(arguments.options)
    if arguments.command == "api":
        return api(arguments.port, arguments.data, options)
    return invoke(arguments.function, arguments.event, arguments.data, options)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except Fault as fault:
        sys.exit(str(fault))
