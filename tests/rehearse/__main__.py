"""`make rehearse`: deploys the bundle into an emulator of AWS and uses it. Ends everything that it started."""

import sys
import time
from pathlib import Path

from emulator import Emulator
from receiver import Receiver
from rehearsal import Rehearsal
from steps import Interrupted, Steps

PROJECT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Rehearses; 0 if every step passed, 1 if one failed, 130 after Ctrl-C."""
    begun = time.monotonic()
    emulator: Emulator | None = None
    receiver: Receiver | None = None
    rehearsal: Rehearsal | None = None
    steps = Steps(lambda: rehearsal.explain() if rehearsal else "")
    try:
        emulator, receiver = Emulator(Path(sys.executable).parent), Receiver()
        rehearsal = Rehearsal(emulator, receiver, PROJECT)
        rehearsal.run(steps)
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
