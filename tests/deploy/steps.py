"""Sequential steps, each with a time limit, and a summary."""

import signal
import time
from collections.abc import Callable
from types import FrameType


ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StepTooLong(Exception):
    """A step exceeded its time limit."""


class Interrupted(BaseException):
    """A signal to end the deployment test, such as Ctrl-C. No step may treat it as a failure."""


class Steps:
    """The completed steps."""

    def __init__(self, explain: Callable[[], str]) -> None:
        self._explain = explain
        self._lines: list[str] = []
        self._stopped_by: str | None = None
        self.failed = 0
        self.passed = 0
        self.skipped = 0
        signal.signal(signal.SIGALRM, _too_long)
        for ending in ENDINGS:
            signal.signal(ending, _interrupted)

    def run(self, name: str, limit: int, action: Callable[[], str | None], essential: bool = False) -> None:
        """Runs a step, for at most `limit` seconds. After a failed essential step, all further steps are skipped."""
        if self._stopped_by:
            self.skipped += 1
            self._note("not run", 0.0, name, f"needs: {self._stopped_by}")
            return
        begun = time.monotonic()
        signal.alarm(limit)
        try:
            remark = action()
        except Exception as error:  # noqa: BLE001: any exception fails the step, and the next one runs
            signal.alarm(0)
            self.failed += 1
            self._stopped_by = name if essential else None
            late = isinstance(error, StepTooLong)
            why = f"over its limit of {limit} s" if late else f"{type(error).__name__}: {error}"
            self._note("FAILED", time.monotonic() - begun, name, why)
            if explanation := self._explain():
                print(explanation, flush=True)
        else:
            signal.alarm(0)
            self.passed += 1
            self._note("ok", time.monotonic() - begun, name, remark or "")
        finally:
            signal.alarm(0)

    def _note(self, outcome: str, seconds: float, name: str, remark: str) -> None:
        line = f"{outcome:8}{seconds:6.1f} s  {name}{': ' if remark else ''}{remark}"
        self._lines.append(line)
        print(line, flush=True)

    def ignore_signals(self) -> None:
        """A second Ctrl-C must not interrupt the cleanup."""
        for ending in ENDINGS:
            signal.signal(ending, signal.SIG_IGN)

    def summary(self, seconds: float) -> str:
        """A line for each step, and the number that passed."""
        tail = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"
        lines = [line.splitlines()[0] for line in self._lines]
        return "\n".join(["", f"Deployment test, {seconds:.0f} s:", *lines, "", tail])


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise StepTooLong


def _interrupted(_signal: int, _frame: FrameType | None) -> None:
    raise Interrupted
