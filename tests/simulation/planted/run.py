"""Plants each bug in this folder in a copy of the sources, and reports after how many histories the simulation finds
it.

Usage: python3 tests/simulation/planted/run.py [NAME ...]   (all of them take some 40 minutes on two cores)
"""

import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
PROJECT = FOLDER.parents[2]
COPY = PROJECT / "target" / "planted"
HISTORIES = 6_000


def run(*command, **options):
    return subprocess.run(command, text=True, capture_output=True, **options)


def found(name):
    """The line for a planted bug."""
    patch = FOLDER / f"{name}.patch"
    applied = run("git", "-C", str(COPY), "apply", str(patch))
    if applied.returncode:
        return f"the patch no longer applies: {applied.stderr.strip()}"
    try:
        build = ["cargo", "build", "--quiet", "--package", "simulation", "--bin", "simulate"]
        built = run(*build, "--target-dir", str(PROJECT / "target"), cwd=COPY)
        if built.returncode:
            return f"it does not compile: {built.stderr[-500:]}"
        simulate = [str(PROJECT / "target" / "debug" / "simulate"), "--seeds", str(HISTORIES)]
        lines = run(*simulate).stdout.splitlines()
    finally:
        run("git", "-C", str(COPY), "checkout", "--quiet", ".")
    broken = [line for line in lines if re.match(r"Seed \d+: ", line)]
    total = [line for line in lines if re.match(r"\d+ histories", line)]
    if not broken:
        return f"NOT FOUND ({total[-1] if total else 'no result'})"
    return f"{broken[0]} ({total[-1] if total else 'stopped'})"


def main():
    names = sys.argv[1:] or sorted(patch.stem for patch in FOLDER.glob("*.patch"))
    run("git", "-C", str(PROJECT), "worktree", "remove", "--force", str(COPY))
    run("git", "-C", str(PROJECT), "worktree", "add", "--detach", str(COPY), check=True)
    missed = 0
    for name in names:
        line = found(name)
        missed += not line.startswith("Seed ")
        print(f"{name}: {line}", flush=True)
    run("git", "-C", str(PROJECT), "worktree", "remove", "--force", str(COPY))
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
