"""Where the time of a check goes: how long each step and each test took, printed at the end, the slowest last.

    timetable.py step NAME COMMAND…     runs a command as a step
    timetable.py program PROGRAM …      runs a test program for `cargo test`, as a step that its name decides
    timetable.py show                   prints the steps and the ten slowest tests

The lines are collected in the file that the variable TIMETABLE names: kind, seconds and name, separated by tabs. Without that
variable, commands run and nothing is noted. The contract tests note theirs in the same file (tests/contract/harness/run.rs).
"""

import os
import re
import shlex
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

NOTES = os.environ.get("TIMETABLE")
SLOWEST = 10
# The steps that run test programs; every other program contains a crate's unit tests.
STEPS = {
    "architecture": "architecture tests",
    "conformance": "conformance tests",
    "contract": "contract tests",
    "histories": "simulator",
}
# A line that libtest prints for a test, with the time that `--report-time` adds.
TEST = re.compile(rb"^test (.+?) \.\.\. .*<([0-9.]+)s>$")


def note(kind: str, seconds: float, name: str) -> None:
    if NOTES:
        with open(NOTES, "a", encoding="utf-8") as notes:
            notes.write(f"{kind}\t{seconds:.1f}\t{name}\n")


def timed(name: str, run) -> int:
    began = time.monotonic()
    try:
        return run()
    finally:
        note("step", time.monotonic() - began, name)


def step(name: str, command: list[str]) -> int:
    print(shlex.join(command), flush=True)
    return timed(name, lambda: subprocess.run(command, check=False).returncode)


def program(path: str, arguments: list[str]) -> int:
    crate = re.sub(r"-[0-9a-f]{16}$", "", Path(path).name)
    name = STEPS.get(crate, "unit tests")
    # The contract and conformance tests have their own harness.
    if not NOTES or crate in ("contract", "conformance"):
        return timed(name, lambda: subprocess.run([path, *arguments], check=False).returncode)
    return timed(name, lambda: libtest(crate, [path, *arguments]))


def libtest(crate: str, command: list[str]) -> int:
    """Runs a program of libtest. Its times are unstable, so the stable program must be allowed to print them."""
    command += ["-Z", "unstable-options", "--report-time"]
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as running:
        for line in running.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            if found := TEST.match(line.rstrip()):
                note("test", float(found[2]), f"{crate}: {found[1].decode(errors='replace')}")
    return running.returncode


def show() -> None:
    steps: dict[str, float] = defaultdict(float)
    tests = []
    for line in Path(NOTES).read_text(encoding="utf-8").splitlines() if NOTES and Path(NOTES).exists() else []:
        kind, seconds, name = line.split("\t", 2)
        if kind == "step":
            steps[name] += float(seconds)
        else:
            tests.append((float(seconds), name))
    print("\nSeconds of each step:")
    for name, seconds in sorted(steps.items(), key=lambda entry: entry[1]):
        print(f"{seconds:9.1f}  {name}")
    if tests:
        print("Seconds of the slowest tests:")
        for seconds, name in sorted(tests)[-SLOWEST:]:
            print(f"{seconds:9.1f}  {name}")


def main(arguments: list[str]) -> int:
    match arguments:
        case ["step", name, *command] if command:
            return step(name, command)
        case ["program", path, *rest]:
            return program(path, rest)
        case ["show"]:
            show()
            return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
