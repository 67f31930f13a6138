"""The functions' programs for a container: the programs of `make run`, if they run there."""

import mmap
import os
import re
import subprocess
import sys
from pathlib import Path

from engine import architecture
from faults import Fault

# The C library version in Amazon Linux 2023. A program linked against a later version may fail to
# start there.
GLIBC = 34
SANDBOX = "sandbox"


def programs(project: Path, names: list[str]) -> dict[str, Path]:
    """The paths of these functions' programs and of the sandbox, which was built with them."""
    built = {name: project / "target/debug" / name for name in [SANDBOX, *names]}
    missing = [str(path) for path in built.values() if not path.exists()]
    if missing:
        raise Fault(f"{', '.join(missing)} is not built; `make sam-…` builds it first")
    if all(_glibc(path) <= GLIBC for path in built.values()):
        return built
    newer = "This machine's C library is newer than Lambda's: building for Lambda's, which takes minutes the first time."
    print(newer, file=sys.stderr, flush=True)
    return _built_for_lambda(project, [SANDBOX, *names])


def _glibc(program: Path) -> int:
    """The minor version of the C library that a program requires."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return max((int(found[1]) for found in re.finditer(rb"\0GLIBC_2\.(\d+)", content)), default=0)


def _built_for_lambda(project: Path, names: list[str]) -> dict[str, Path]:
    """Builds programs as `make build` does, but without optimising them. Not into target/lambda, which is deployed."""
    folder = project / "target/sam/lambda"
    command = ["cargo-lambda", "lambda", "build", "--lambda-dir", str(folder)]
    command.append("--arm64" if architecture() == "arm64" else "--x86-64")
    for name in names:
        command += ["--package", _package(project, name), "--bin", name]
    # The linker, zig, is a package in this environment; cargo-lambda finds it through the
    # environment's python3.
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(command, cwd=project, env=os.environ | {"PATH": tools})
    if done.returncode:
        raise Fault("cargo-lambda could not build it; the reason is above")
    return {name: folder / name / "bootstrap" for name in names}


def _package(project: Path, name: str) -> str:
    families = [path.parents[2].name for path in (project / "functions").glob(f"*/src/bin/{name}.rs")]
    return f"functions-{families[0]}" if families else name
