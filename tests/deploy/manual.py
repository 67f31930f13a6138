"""docs/operations.md, followed to the letter: its commands are taken from the document and run, so that the document and the
deployment test cannot part."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from emulator import Emulator

# Commands that are not run here, by how they begin, and why.
NOT_RUN = {
    "make deploy ENV=staging": "it builds for Lambda and hands the stack to SAM, in whose place the deployment test deploys",
    "target/debug/waypost-admin application list hotel-1 --data": "it is for a service of one machine",
    "aws lambda invoke --function-name": "the canary goes to the public address, which leads nowhere here",
    "make rotate-signing-key STACK=waypost\n": "the emulator's Secrets Manager calls no function; a step does so",
}
FENCE = re.compile(r"^( *)```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """Commands between two fences, and the heading above them."""

    heading: str
    commands: str

    def not_run(self) -> str | None:
        """Why they are not run here, if they are not."""
        return next((why for beginning, why in NOT_RUN.items() if self.commands.startswith(beginning)), None)


def blocks(text: str) -> list[Block]:
    """All commands of a document."""
    headings = [(found.start(), found[1]) for found in HEADING.finditer(text)]
    found = []
    for fence in FENCE.finditer(text):
        heading = [name for at, name in headings if at < fence.start()][-1]
        commands = re.sub(rf"^{fence[1]}", "", fence[2], flags=re.MULTILINE)
        found.append(Block(heading, commands))
    return found


def _write_tool(file: Path, commands: str) -> None:
    file.write_text(f"#!/bin/sh\n{commands}\n", encoding="utf-8")
    file.chmod(0o755)


class Manual:
    """The document, and a folder that looks like the project's to the one who follows it."""

    def __init__(self, emulator: Emulator, project: Path) -> None:
        self._blocks = blocks((project / "docs/operations.md").read_text(encoding="utf-8"))
        self._left = [block for block in self._blocks if block.not_run() is None]
        self._emulator = emulator
        self._folder = emulator.folder / "project"
        self._folder.mkdir()
        for name in ("Makefile", "docs", "events", "target", ".venv"):
            (self._folder / name).symlink_to(project / name)
        tools = self._folder / "tools"
        tools.mkdir()
        path = os.pathsep.join([str(project / ".venv/bin"), os.environ["PATH"]])
        # Everything is built, and with other choices cargo would build it again.
        _write_tool(tools / "cargo", ":")
        # Some services have an address of their own in version 1 of the command line, in spite of AWS_ENDPOINT_URL: nothing
        # may leave this machine.
        command = shutil.which("aws", path=path)
        assert command, "the AWS command line is missing; `make python-tools` installs it"
        _write_tool(tools / "aws", f'exec "{command}" --endpoint-url "{emulator.endpoint}" "$@"')
        self._path = os.pathsep.join([str(tools), path])

    def follow(
        self,
        heading: str,
        beginning: str = "",
        places: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> str:
        """Runs the commands below a heading, one block after the other in one shell; those that begin so, if it is said how.
        `places` are words of the document in whose place others stand. Returns what they print.
        """
        chosen = [block for block in self._left if block.heading == heading and block.commands.startswith(beginning)]
        assert chosen, f"docs/operations.md has no such commands under “{heading}”"
        self._left = [block for block in self._left if block not in chosen]
        script = "".join(block.commands for block in chosen)
        for word, meant in (places or {}).items():
            assert word in script, f"docs/operations.md does not say {word} under “{heading}”"
            script = script.replace(word, meant)
        environment = self._emulator.variables() | {"PATH": self._path} | dict(variables or {})
        done = subprocess.run(
            ["sh", "-eu", "-c", script], cwd=self._folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"“{heading}” ended with {done.returncode}: {done.stderr}{done.stdout}\n{script}"
        return done.stdout

    def left(self) -> list[str]:
        """The commands that were not followed, and should have been."""
        return [f"“{block.heading}”: {block.commands.splitlines()[0]}" for block in self._left]

    def mentioned_in_vain(self) -> list[str]:
        """Reasons for commands that the document does not have."""
        return [said for said in NOT_RUN if not any(block.commands.startswith(said) for block in self._blocks)]
