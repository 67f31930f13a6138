"""`make deploy-test`: deploys the bundle into an emulator of AWS, uses it, and stops everything that it started."""

import argparse
import sys
import time
from pathlib import Path

from contract import newest
from emulator import Emulator
from receiver import Receiver
from deploy_test import DeployTest
from steps import Interrupted, Steps

PROJECT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Runs the deployment test; exits with 0 if every step passed, 1 if one failed, 130 after Ctrl-C."""
    arguments = argparse.ArgumentParser(prog="make deploy-test", description=main.__doc__)
    arguments.add_argument("--binaries", type=Path, default=PROJECT / "target/debug", help="the folder of the programs")
    arguments.add_argument("--tests", type=Path, help="the program with the contract tests; default: the newest one there")
    arguments.add_argument("--all", action="store_true", help="run every step and every contract test")
    chosen = arguments.parse_args()
    begun = time.monotonic()
    emulator: Emulator | None = None
    receiver: Receiver | None = None
    test: DeployTest | None = None
    steps = Steps(lambda: test.explain() if test else "")
    try:
        tests = chosen.tests or newest(chosen.binaries)
        emulator, receiver = Emulator(Path(sys.executable).parent, chosen.binaries), Receiver()
        test = DeployTest(emulator, receiver, chosen.binaries, PROJECT / "template.yaml", tests, chosen.all)
        test.run(steps)
    except Interrupted:
        print("Interrupted.", file=sys.stderr)
        return 130
    finally:
        steps.ignore_signals()
        if receiver:
            receiver.stop()
        if emulator:
            emulator.stop()
        print(steps.summary(time.monotonic() - begun), flush=True)
    return 1 if steps.failed else 0


sys.exit(main())
