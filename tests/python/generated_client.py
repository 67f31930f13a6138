"""Generates a client from the served document with openapi-python-client, checks it and the code that uses it with
mypy, and runs that code. Input: the settings of the bundle as JSON; output: the client's results."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

USE = Path(__file__).parent / "generated" / "use.py"


def run(*command, **options):
    """Runs a program from the environment; its output becomes the error text if it fails."""
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"{command[0]} fails:\n{done.stdout}{done.stderr}")


with tempfile.TemporaryDirectory() as folder:
    settings, made = json.load(sys.stdin), Path(folder)
    # Do without the formatter, which would format for its configured Python version instead of this
    # one.
    (made / "settings.yaml").write_text("post_hooks: []\n")
    generate = ["--url", settings["document"], "--output-path", made / "waypost_client", "--meta", "none"]
    run("openapi_python_client", "generate", *generate, "--config", made / "settings.yaml", "--fail-on-warning")
    # One of the generator's libraries has no type annotations.
    checks = ["--disable-error-code", "import-untyped", "--check-untyped-defs", "--cache-dir", made / "checked"]
    run("mypy", *checks, made / "waypost_client", USE, env={**os.environ, "MYPYPATH": folder})
    sys.path[:0] = [folder, str(USE.parent)]
    from use import use

    json.dump(use(settings), sys.stdout)
