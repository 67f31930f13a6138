"""A deployed environment, as its clients reach it: HTTP requests to the API."""

import base64
import http.client
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from stack import Stack

Found = TypeVar("Found")
ENTITY = "hotel-1"


@dataclass(frozen=True)
class Answer:
    """An answer of the API."""

    status: int
    headers: dict[str, str]
    text: str

    def expect(self, status: int) -> "Answer":
        """The same; another status fails."""
        assert self.status == status, f"expected {status}, got {self.status}: {self.text[:500]}"
        return self

    def json(self) -> Any:
        return json.loads(self.text)

    def problem(self) -> str:
        """The kind of the Problem that it is."""
        assert self.headers["content-type"] == "application/problem+json", self.headers
        kind: str = self.json()["type"]
        return kind.rsplit("/", 1)[-1]


class Service:
    """An environment, with the application that was registered when it was provisioned."""

    def __init__(self, stack: Stack, admin: Path) -> None:
        self.stack = stack
        self._admin = admin
        self._api = stack.resources()["Api"]
        self.client: tuple[str, str] = ("", "")

    def admin(self, *arguments: str) -> str:
        """Runs the operator's program on the stack, which must succeed; returns what it prints."""
        command = [self._admin, "--stack", self.stack.name, *arguments]
        variables = self.stack.emulator.variables()
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"waypost-admin {' '.join(arguments)} ended with {done.returncode}: {done.stderr}"
        return done.stdout

    def provision(self) -> None:
        """Provisions the stack with an application for `ENTITY`."""
        printed = self.admin("provision", "--name", "Rehearsal", "--entity", ENTITY)
        values = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
        self.client = (values["CLIENT_ID"], values["CLIENT_SECRET"])

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """A request to the API by its path at the emulator. By its host, `/oauth2/token` would reach the emulator's Cognito.
        """
        emulator = self.stack.emulator
        connection = http.client.HTTPConnection("127.0.0.1", emulator.port, timeout=60)
        try:
            address = f"/_aws/execute-api/{self._api}/$default{path}"
            connection.request(method, address, body=body, headers=headers or {})
            answer = connection.getresponse()
            text = answer.read().decode()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)
        finally:
            connection.close()

    def ask_for_token(self, client: tuple[str, str] | None = None) -> Answer:
        """Asks for a token with the client's identifier and secret."""
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


def until(what: str, limit: float, look: Callable[[], Found | None]) -> Found:
    """Looks until there is something, for at most `limit` seconds."""
    begun = time.monotonic()
    while (found := look()) is None:
        assert time.monotonic() - begun < limit, f"{what} was not there within {limit:.0f} s"
        time.sleep(0.2)
    return found
