"""The container engine, called over its HTTP interface, so that no Docker program is needed."""

import http.client
import json
import os
import platform
import socket
import sys
from typing import Any
from urllib.parse import quote, urlencode

from faults import Fault

# Python's processor names, and Lambda's.
ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
NO_ENGINE = """No container engine answers at {host} ({why}).
`make run` does not need one. SAM needs one on this machine:

  Debian, Ubuntu    sudo apt install docker.io; sudo usermod -aG docker $USER, and log in again
  others            https://docs.docker.com/engine/install/
  an engine at another socket, such as a rootless one: DOCKER_HOST=unix:///run/user/1000/docker.sock"""
NO_IMAGE = """The engine could not fetch {image}:
  {why}
Without access to a registry, an image of this machine's files also works: python3 local/sam/image.py"""


def architecture() -> str:
    """The processor of this machine, by Lambda's name."""
    return ARCHITECTURES.get(platform.machine().lower(), platform.machine())


def base_image() -> str:
    """The image of the runtime, to which SAM adds its emulator of the Runtime API."""
    return f"public.ecr.aws/lambda/provided:al2023-{architecture()}"


class _Connection(http.client.HTTPConnection):
    """HTTP at a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


class Engine:
    """The container engine, the same that SAM uses."""

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise Fault(
                "SAM's containers reach this project's stand-ins for AWS only on Linux: elsewhere they run in a virtual machine."
                " `make run` runs the same functions without containers."
            )
        self._host = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
        if not self._host.startswith("unix://"):
            raise Fault(
                f"DOCKER_HOST is {self._host}, but the engine must run on this machine, behind a socket (unix://…):"
                " it mounts local folders"
            )
        try:
            self._ask("GET", "/_ping")
        except OSError as error:
            raise Fault(NO_ENGINE.format(host=self._host, why=error.strerror or error)) from error

    def _ask(self, method: str, path: str, content: bytes | None = None) -> tuple[int, str]:
        connection = _Connection(self._host.removeprefix("unix://"))
        try:
            connection.request(method, path, content, {} if content is None else {"Content-Type": "application/x-tar"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()

    def have_base_image(self) -> None:
        """Fetches the base image, unless it is there."""
        image = base_image()
        status, _ = self._ask("GET", f"/images/{quote(image, safe='')}/json")
        if status == http.client.OK:
            return
        print(f"Fetching {image}, once.", file=sys.stderr, flush=True)
        name, tag = image.rsplit(":", 1)
        why = self._create_image({"fromImage": name, "tag": tag})
        if why:
            raise Fault(NO_IMAGE.format(image=image, why=why))

    def import_base_image(self, archive: bytes) -> None:
        """Makes the base image of this tar archive."""
        image = base_image()
        name, tag = image.rsplit(":", 1)
        why = self._create_image({"fromSrc": "-", "repo": name, "tag": tag}, archive)
        if why:
            raise Fault(f"The engine could not import {image}: {why}")

    def _create_image(self, query: dict[str, str], content: bytes | None = None) -> str:
        """Returns the reason of a failure, or an empty text."""
        status, text = self._ask("POST", f"/images/create?{urlencode(query)}", content)
        # The engine responds with 200 before it has finished, and reports a failure in the last
        # line.
        lines: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line.strip()]
        faults = " ".join(str(line[name]) for line in lines for name in ("error", "message") if name in line)
        return faults if faults or status == http.client.OK else f"it answers {status}"
