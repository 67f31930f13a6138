"""A subscriber's endpoint on loopback, which stores its requests."""

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks.webhooks import Webhook


@dataclass(frozen=True)
class Received:
    """A received request."""

    headers: dict[str, str]
    body: str

    def verified(self, secret: str) -> Any:
        """The body as JSON, after verification of the signature with this secret."""
        Webhook(secret).verify(self.body, self.headers)
        return json.loads(self.body)


class Receiver:
    """The endpoint; it answers 204 to everything."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # noqa: N802: the base class requires this name
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                received.append(Received({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002: as in the base class
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/events"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def event_of(self, booking: str) -> Received | None:
        """The first request about a booking."""
        about = (request for request in self.received if json.loads(request.body)["data"].get("bookingIdentifier") == booking)
        return next(about, None)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
