"""The local service with the stand-ins for AWS: a running one, or one started here."""

import fcntl
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

import samples
from faults import Fault

START_LIMIT = 90
LIMIT = 30
# Requests to this machine bypass any proxy.
_OPENER = build_opener(ProxyHandler({}))


class Service:
    """A running service, identified by its data folder."""

    def __init__(self, data: Path, process: "subprocess.Popen[bytes] | None") -> None:
        self._data, self._process = data, process
        self.env = dict(line.split("=", 1) for line in (data / "service.env").read_text().splitlines())
        self.variables: dict[str, dict[str, str]] = json.loads((data / "functions.json").read_text())
        """The environment of each function's process."""

    @classmethod
    def found(cls, data: Path) -> "Service | None":
        """The service that runs with this folder. Waits for it while it starts."""
        begun = time.monotonic()
        while _is_locked(data):
            if (data / "service.env").exists():
                if not (data / "functions.json").exists():
                    raise Fault(f"The service that runs with {data} is from an earlier build: restart it")
                return cls(data, None)
            if time.monotonic() - begun > START_LIMIT:
                raise Fault(f"The service with the data in {data} did not become ready; see its terminal and {data}/logs")
            time.sleep(0.2)
        return None

    @classmethod
    def started(cls, project: Path, data: Path, *options: str, **settings: str) -> "Service":
        """Starts the service with these options, and waits until it answers."""
        command = [project / "target/debug/local", "--project", project, "--data", data, "--stop-with-parent", *options]
        said = tempfile.TemporaryFile()
        # Start a separate session: after Ctrl-C, SAM's containers still need the service until they
        # have ended.
        process = subprocess.Popen(
            command, env=os.environ | settings, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
        begun = time.monotonic()
        while not (data / "service.env").exists():
            if process.poll() is not None or time.monotonic() - begun > START_LIMIT:
                process.terminate()
                process.wait()
                said.seek(0)
                raise Fault(f"The local service did not start:\n{said.read().decode(errors='replace')}")
            time.sleep(0.1)
        return cls(data, process)

    def end(self) -> None:
        """Ends the service if it was started here."""
        if self._process:
            self._process.terminate()
            self._process.wait()

    @property
    def host(self) -> str:
        """The address on which the stand-ins listen, which webhooks may not reach."""
        return urlsplit(self.env["DYNAMODB_ENDPOINT"]).hostname or "127.0.0.1"

    def stand_ins(self) -> list[str]:
        """The addresses of the stand-ins that functions call."""
        return sorted({urlsplit(self.env[name]).netloc for name in ("DYNAMODB_ENDPOINT", "SERVICES_ENDPOINT")})

    def request(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        """The API's answer to a request, which must succeed."""
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        content = None if body is None else json.dumps(body).encode()
        return json.loads(_answer(Request(self.env["BASE_URL"] + path, content, headers, method=method)))

    def token(self) -> str:
        """A new access token of the demo application."""
        form = {
            "grant_type": "client_credentials",
            "client_id": self.env["CLIENT_ID"],
            "client_secret": self.env["CLIENT_SECRET"],
        }
        token: str = json.loads(_answer(Request(f"{self.env['AUTH_URL']}/oauth2/token", urlencode(form).encode())))["access_token"]
        return token

    def placeholders(self, sample: str) -> dict[str, str]:
        """The values of a sample's placeholders."""
        values = {name: self.env[name] for name in samples.CREDENTIALS}
        if samples.mentions(sample, samples.TOKEN):
            values[samples.TOKEN] = self.token()
        return values

    def invoke(self, function: str, event: str) -> str:
        """Lets the running function handle an event, and returns its answer."""
        address = f"{self.env['LAMBDA_ENDPOINT']}/2015-03-31/functions/{function}/invocations"
        request = AWSRequest("POST", address, data=event.encode())
        caller = Credentials(self.env["AWS_ACCESS_KEY_ID"], self.env["AWS_SECRET_ACCESS_KEY"])
        SigV4Auth(caller, "lambda", self.env["AWS_REGION"]).add_auth(request)
        return _answer(Request(address, event.encode(), dict(request.headers)))


def _answer(request: Request) -> str:
    try:
        with _OPENER.open(request, timeout=LIMIT) as answer:
            text: str = answer.read().decode()
            return text
    except HTTPError as error:
        said = error.read().decode()[:500]
        raise Fault(f"{request.get_method()} {request.full_url}: {error.code} {said}") from error


def _is_locked(data: Path) -> bool:
    """Whether a service runs with this folder, whose lock it then holds."""
    try:
        with (data / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
