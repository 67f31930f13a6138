"""A deployed environment and its clients: HTTP requests to the API."""

import base64
import http.client
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from stack import Stack

Found = TypeVar("Found")
ENTITY = "my-hotel"


@dataclass(frozen=True)
class Answer:
    """An answer of the API."""

    status: int
    headers: dict[str, str]
    text: str

    def expect(self, status: int) -> "Answer":
        """Asserts the status; returns the answer."""
        assert self.status == status, f"expected {status}, got {self.status}: {self.text[:500]}"
        return self

    def json(self) -> Any:
        return json.loads(self.text)

    def problem(self) -> str:
        """The kind of the Problem."""
        assert self.headers["content-type"] == "application/problem+json", self.headers
        kind: str = self.json()["type"]
        return kind.rsplit("/", 1)[-1]


class Service:
    """An environment, with the application that was registered during provisioning."""

    def __init__(self, stack: Stack, admin: Path) -> None:
        self.stack = stack
        self._admin = admin
        # Select the API by path: with a host name, `/oauth2/token` would reach the emulator's
        # Cognito.
        self.address = f"{stack.emulator.endpoint}/_aws/execute-api/{stack.resources()['Api']}/$default"
        self.client: tuple[str, str] = ("", "")

    def admin(self, *arguments: str) -> str:
        """Runs the operator's program on the stack; asserts success, and returns the output."""
        command = [self._admin, "--stack", self.stack.name, *arguments]
        variables = self.stack.emulator.variables(self.stack.region)
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"waypost-admin {' '.join(arguments)} ended with {done.returncode}: {done.stderr}"
        return done.stdout

    def provision(self) -> None:
        """Provisions the stack with an application for `ENTITY`."""
        self.client = credentials(self.admin("provision", "--name", "Deployment test", "--entity", ENTITY, "--may-publish"))

    def register(self, name: str, entity: str) -> tuple[str, str]:
        """Registers another application; returns its identifier and secret."""
        return credentials(self.admin("application", "create", "--name", name, "--entity", entity, "--may-publish"))

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """A request to the API."""
        address = urlsplit(f"{self.address}{path}")
        connection = http.client.HTTPConnection(address.netloc, timeout=60)
        try:
            connection.request(method, address._replace(scheme="", netloc="").geturl(), body=body, headers=headers or {})
            answer = connection.getresponse()
            text = answer.read().decode()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)
        finally:
            connection.close()

    def ask_for_token(self, client: tuple[str, str] | None = None) -> Answer:
        """Requests a token with the client's identifier and secret."""
        credentials = base64.b64encode(":".join(client or self.client).encode()).decode()
        form = {"Authorization": f"Basic {credentials}", "Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode({"grant_type": "client_credentials"}).encode()
        return self.request("POST", "/oauth2/token", body, form)

    def token(self) -> str:
        token: str = self.ask_for_token().expect(200).json()["access_token"]
        return token

    def call(self, token: str, method: str, path: str, body: Any = None, entity: str = ENTITY) -> Answer:
        """A request for a managing entity."""
        headers = {"Authorization": f"Bearer {token}"}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        return self.request(method, f"/api/managing-entity/{entity}{path}", content, headers)


def credentials(printed: str) -> tuple[str, str]:
    """The identifier and the secret in the output of the operator's program."""
    values = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    return values["CLIENT_ID"], values["CLIENT_SECRET"]


def until(what: str, limit: float, look: Callable[[], Found | None]) -> Found:
    """Polls until `look` returns a value, for at most `limit` seconds."""
    begun = time.monotonic()
    while (found := look()) is None:
        assert time.monotonic() - begun < limit, f"waited {limit:.0f} s in vain for {what}"
        time.sleep(0.2)
    return found
