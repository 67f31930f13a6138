"""Calls the AWS command line, and ends a failed deployment with one sentence."""

import json
import os
import shutil
import subprocess
import sys


def fail(sentence):
    sys.exit(f"deploy: {sentence}")


def tool(name, *folders):
    """The path of a program, in these folders or in the operator's PATH."""
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")])
    return shutil.which(name, path=path) or fail(f"{name} is not installed; docs/deploy.md lists a deployment's requirements")


def aws(region, *arguments):
    """The output of the AWS command line, or None if the stack or the object does not exist."""
    called = subprocess.run(
        [tool("aws"), *arguments, "--region", region, "--output", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if called.returncode and "does not exist" in called.stderr:
        return None
    if called.returncode:
        fail(f"aws {' '.join(arguments[:2])}: {called.stderr.strip()}")
    return json.loads(called.stdout or "null")
