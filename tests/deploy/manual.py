"""Runs the commands of the documents for operators as written, so that documents and deployment test cannot diverge."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from emulator import Emulator

# The documents in the folder docs.
DOCUMENTS = (
    "deploy.md",
    "run.md",
    "publishing.md",
    "payment-providers.md",
    "geo-ip.md",
    "restore.md",
    "alarms.md",
    "reference.md",
)
# Commands that are not run here, identified by their first characters, with the reasons.
NOT_RUN = {
    "make deploy ENV=staging": "it builds for Lambda and deploys with SAM, which the deployment test replaces",
    "target/debug/waypost-admin application list hotel-1 --data": "it is for a local service",
    "aws lambda invoke --function-name": "the canary calls the public address, which does not exist here",
    "make deploy ENV=production": "as above; a step of the test updates the stack instead",
    "TABLE=$(aws cloudformation describe-stacks --region": "the emulator restores no table from another region",
    "TABLE=waypost-Table-…": "the emulator's tables have no items",
    "for FUNCTION in PublishEvent IngestEvent": "the test publishes in the meantime",
    "ARN=$(aws dynamodb list-backups": "the emulator keeps no backup of a deleted table",
    "aws secretsmanager get-secret-value --secret-id": "the test puts the secret back from its copy",
    "aws dynamodb get-item --table-name waypost-restored-1": "the emulator's tables have no items",
    "aws cloudformation cancel-update-stack": "no update is in progress",
    "make demo-provider": "it is for a local service",
    "URL=$(curl": "it is for a local service",
    "JAR=$(mktemp)": "it is for a local service",
    "EVENT=$(curl": "it is for a local service",
    'curl -sS "$ME/payment/connection/list"': "it is for a local service",
    "make rotate-signing-key STACK=waypost\n": "the emulator's Secrets Manager calls no function; a step of the test does",
}
# The headings of rarely used operations, whose commands run only in the full test.
RARE = (
    "A first deployment that fails",
    "Back up",
    "Restore the table",
    "After the switch",
    "Put a secret back",
    "Change of region",
)
FENCE = re.compile(r"^( *)```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """Commands between two fences, and the heading above them."""

    heading: str
    commands: str

    def not_run(self) -> str | None:
        """The reason why the commands are not run here; None if they are run."""
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
    """The documents, and a copy of the project's folder in which their commands run."""

    def __init__(self, emulator: Emulator, project: Path) -> None:
        texts = [(project / "docs" / name).read_text(encoding="utf-8") for name in DOCUMENTS]
        self._blocks = [block for text in texts for block in blocks(text)]
        self._run_here = [block for block in self._blocks if block.not_run() is None]
        self._left = self._run_here
        self._emulator = emulator
        self._folder = emulator.folder / "project"
        self._folder.mkdir()
        for name in ("Makefile", "docs", "events", "target", ".venv"):
            (self._folder / name).symlink_to(project / name)
        tools = self._folder / "tools"
        tools.mkdir()
        path = os.pathsep.join([str(project / ".venv/bin"), os.environ["PATH"]])
        # Everything has already been built, and cargo would rebuild it with other settings.
        _write_tool(tools / "cargo", ":")
        # Version 1 of the AWS CLI ignores AWS_ENDPOINT_URL for some services, but no request may
        # leave this machine.
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
        again: bool = False,
    ) -> str:
        """Runs the command blocks below a heading in one shell and returns their output. `beginning` selects blocks by
        their first characters; `places` replaces words from the documents. Each block runs only once, unless `again` is
        set.
        """
        present = self._run_here if again else self._left
        chosen = [block for block in present if block.heading == heading and block.commands.startswith(beginning)]
        assert chosen, f"the documents have no such commands under “{heading}”"
        self._left = [block for block in self._left if block not in chosen]
        script = "".join(block.commands for block in chosen)
        for word, meant in (places or {}).items():
            assert word in script, f"the documents do not say {word} under “{heading}”"
            script = script.replace(word, meant)
        environment = self._emulator.variables() | {"PATH": self._path} | dict(variables or {})
        done = subprocess.run(
            ["sh", "-eu", "-c", script], cwd=self._folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"“{heading}” ended with {done.returncode}: {done.stderr}{done.stdout}\n{script}"
        return done.stdout

    def left(self, whole: bool) -> list[str]:
        """The commands that should have been run, but were not."""
        left = [block for block in self._left if whole or block.heading not in RARE]
        return [f"“{block.heading}”: {block.commands.splitlines()[0]}" for block in left]

    def mentioned_in_vain(self) -> list[str]:
        """The reasons for commands that no document contains."""
        return [said for said in NOT_RUN if not any(block.commands.startswith(said) for block in self._blocks)]
