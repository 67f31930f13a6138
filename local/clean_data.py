"""Removes what a local run keeps: `make clean-data`. With any Python 3.10 or later.

    clean_data.py FOLDER [--confirm yes]
"""

import argparse
import fcntl
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Everything that a run keeps. Nothing else is removed: DATA may name a folder that has other files as well.
TABLE = ["table.db", "table.db-wal", "table.db-shm", "table.db-journal"]
FOLDERS = ["secrets", "geo-ip", "logs", "scratch", "rights"]
FILES = ["service.env", "functions.json", "rotation.lock"]
# What a crash may leave of files that are written whole or not at all.
UNFINISHED = [f"{name}.unfinished" for name in ("service", "functions", "room")]
# The running service holds it. It goes last, so that no service starts meanwhile.
LOCK = "lock"


class Fault(Exception):
    """Why nothing is removed, and what to do, in words for a person."""


@contextmanager
def unused(folder: Path) -> Iterator[None]:
    """Holds the lock of the folder, which a running service has."""
    try:
        lock = (folder / LOCK).open()
    except FileNotFoundError:
        raise Fault(f"{folder} has no data of a local run, so nothing is removed.") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Fault(f"A service runs with the data in {folder}, so nothing is removed. Stop it first.") from None
        yield


def kept(folder: Path) -> str:
    """What would be lost, in words."""
    size = sum(path.stat().st_size for path in map(folder.joinpath, TABLE) if path.exists())
    secrets = sorted(path.stem for path in (folder / "secrets").glob("*.json"))
    lines = [f"  the table, {size / 1e6:.1f} MB"]
    if secrets:
        lines.append(f"  the secrets, also those that you put there: {', '.join(secrets)}")
    if (folder / "geo-ip").exists():
        lines.append("  the geo-IP databases")
    return "\n".join([*lines, "  the logs"])


def confirm(folder: Path, confirmed: str) -> None:
    """Fails unless a person wants it."""
    if confirmed == "yes":
        return
    print(f"This removes from {folder}, for good:\n{kept(folder)}", file=sys.stderr)
    if not sys.stdin.isatty():
        raise Fault("Nothing is removed without your word: make clean-data CONFIRM=yes")
    try:
        answer = input("Type yes to remove it: ")
    except (EOFError, KeyboardInterrupt):
        print(file=sys.stderr)
        answer = ""
    if answer.strip() != "yes":
        raise Fault("Nothing is removed.")


def remove(folder: Path) -> None:
    """Removes what a run keeps, and the folder if nothing else is in it."""
    for name in FOLDERS:
        if (folder / name).exists():
            shutil.rmtree(folder / name)
    for name in [*TABLE, *FILES, *UNFINISHED, LOCK]:
        (folder / name).unlink(missing_ok=True)
    left = sorted(path.name for path in folder.iterdir())
    if left:
        print(f"{folder} stays, since it has other files: {', '.join(left)}", file=sys.stderr)
    elif not folder.is_symlink():
        folder.rmdir()


def clean(folder: Path, confirmed: str) -> None:
    """Removes the data in this folder, if no service uses them and a person wants it."""
    if not folder.exists():
        print(f"{folder} does not exist: there is nothing to remove.", file=sys.stderr)
        return
    with unused(folder):
        confirm(folder, confirmed)
        remove(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--confirm", default="", metavar="yes")
    arguments = parser.parse_args()
    try:
        clean(arguments.folder, arguments.confirm)
    except (Fault, OSError) as fault:
        sys.exit(str(fault))
