"""The deployed parts: the functions as zips in a bucket, and the template, expanded by SAM's translator.

Every function is the program `functions`, which `make test` builds anyway. It contains all functions, from the source
files of the deployed programs, and runs the one with its process's name. Linking a separate program for each would take
longer than the test, so this test does not prove that each program links. `make build` does, and `make test` for three
(tests/contract/sam.rs); tests/architecture/endpoints.rs checks that each source file serves the endpoint of its name.
"""

import copy
import functools
import hashlib
import io
import json
import platform
import shlex
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse

from emulator import Emulator

sys.path.append(str(Path(__file__).resolve().parents[2] / "operator"))
from filled_template import with_settings, with_table  # noqa: E402: the operator's scripts are not a package

BUCKET = "deploy-test-code"
# Makes a deployment fail after all other resources have been created: it waits one second for a
# signal that is never sent.
FAULT = "DeployTestFault"

Template = dict[str, Any]


class Bundle:
    """The functions of one build, in the emulator's bucket."""

    def __init__(self, emulator: Emulator, source: Path, binaries: Path) -> None:
        self.source = source
        self.bucket = BUCKET
        self._emulator = emulator
        self._s3 = emulator.client("s3")
        self._s3.create_bucket(Bucket=BUCKET)
        program = binaries / "functions"
        if not program.is_file():
            raise FileNotFoundError(f"{program} is missing; `make deploy-test` builds it")
        links = emulator.folder / "functions"
        links.mkdir()
        self.code = {name: self._upload(name, program, links) for name in sorted(set(programs(source).values()))}

    def in_region(self, region: str) -> "Bundle":
        """The bundle with its functions in a bucket of another region, since Lambda reads programs only from its own
        region."""
        there = copy.copy(self)
        there.bucket = f"{BUCKET}-{region}"
        there._s3 = self._emulator.client("s3", region=region)
        there._s3.create_bucket(Bucket=there.bucket, CreateBucketConfiguration={"LocationConstraint": region})
        for key in self.code.values():
            there._s3.copy_object(Bucket=there.bucket, Key=key, CopySource={"Bucket": self.bucket, "Key": key})
        return there

    def _upload(self, name: str, program: Path, links: Path) -> str:
        """Uploads a zip with a script that starts the program under the function's name."""
        link = links / name
        link.symlink_to(program.resolve())
        # Use `exec`, so that the emulator's signals reach the function.
        script = f"#!/bin/sh\nexec {shlex.quote(str(link))}\n"
        archive = io.BytesIO()
        # Omit the file's time, so that an unchanged function results in the same zip and is not
        # updated.
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = 0o100755 << 16
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr(entry, script)
        body = archive.getvalue()
        key = f"{name}-{hashlib.sha256(body).hexdigest()}"
        self._s3.put_object(Bucket=BUCKET, Key=key, Body=body)
        return key

    def expanded(self, parameters: dict[str, str]) -> Template:
        """The template as CloudFormation gets it from `make deploy` with these parameters."""
        filled_in = with_settings(with_table(_parsed(self.source), parameters.get("TableName")), parameters)
        script = Path(__file__).resolve().parents[1] / "python/expand_template.py"
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(filled_in, file)
            file.flush()
            request = json.dumps({"template": file.name, "whole": True, "parameters": parameters})
            done = subprocess.run([sys.executable, script], input=request, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        template: Template = json.loads(done.stdout)
        for name, program in programs(self.source).items():
            template["Resources"][name]["Properties"]["Code"] = {"S3Bucket": self.bucket, "S3Key": self.code[program]}
        return template

    def publish(self, template: str) -> str:
        """Puts a template into the bucket, since it is too large to pass in a call; returns its key."""
        key = f"template-{hashlib.sha256(template.encode()).hexdigest()}"
        self._s3.put_object(Bucket=self.bucket, Key=key, Body=template.encode())
        return key


@functools.cache
def _parsed(template: Path) -> Template:
    """The template as written."""
    parsed: Template = yaml_parse(template.read_text(encoding="utf-8"))
    return parsed


def programs(template: Path) -> dict[str, str]:
    """The names of the functions' programs, by logical id."""
    return {
        name: resource["Properties"]["CodeUri"].rsplit("/", 1)[-1]
        for name, resource in _parsed(template)["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    }


def failing(template: Template) -> Template:
    """The template with an additional resource that fails after all others are created."""
    fault = {
        f"{FAULT}Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"},
        FAULT: {
            "Type": "AWS::CloudFormation::WaitCondition",
            "DependsOn": [name for name, part in template["Resources"].items() if "Condition" not in part],
            "Properties": {"Handle": {"Ref": f"{FAULT}Handle"}, "Timeout": "1", "Count": 1},
        },
    }
    return template | {"Resources": template["Resources"] | fault}


def architecture() -> str:
    """This machine's processor, as a value of the template's parameter."""
    return "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
