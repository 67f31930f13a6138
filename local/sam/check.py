"""Reports missing requirements of `make sam-…` before anything is installed or built. Runs with any Python 3.10 or later.

    check.py [--function=NAME]...
"""

import argparse
import sys
from pathlib import Path

import samples
from engine import Engine
from faults import Fault

PROJECT = Path(__file__).resolve().parents[2]


def check(functions: list[str]) -> None:
    """Fails if a function or the engine is missing, or if the runtime's image cannot be fetched."""
    known = samples.names(PROJECT)
    for function in functions:
        if not function:
            raise Fault("Name a function, such as: make sam-local FUNCTION=token")
        if function not in known:
            raise Fault(f"There is no function `{function}`. The functions are: {', '.join(known)}")
    Engine().have_base_image()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--function", action="append", default=[])
    try:
        check(parser.parse_args().function)
    except Fault as fault:
        sys.exit(str(fault))
