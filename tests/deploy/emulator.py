"""The emulator of AWS: ministack, on a loopback port, with a separate folder and credentials.

It gets none of the caller's variables, so that the deployment test cannot reach an AWS account, regardless of the
machine's configuration. While it runs, it accepts calls from every program on this machine, so it must hold nothing of
value.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from table import EmbeddedTable

REGION = "us-east-1"
# Long enough for a sweep that waits for slow endpoints; each step has its own limit.
READ_LIMIT = 60
START_LIMIT = 30
# The functions have one variable per endpoint. DynamoDB's endpoint is the embedded table.
ENDPOINTS = ("", "_SQS", "_SECRETS_MANAGER", "_S3")


class Emulator:
    """A running emulator, the table and their folder; `stop` ends all of them."""

    def __init__(self, tools: Path, binaries: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="waypost-deploy-test-"))
        listener = socket.socket()
        # Bind the socket here and pass it on, so that no other program can take the port in
        # between.
        listener.bind(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.log = self.folder / "ministack.log"
        self.table = EmbeddedTable(binaries / "local", {"PATH": os.environ["PATH"]})
        # Start a separate session: Ctrl-C reaches only the deployment test, which then stops the
        # emulator and all functions.
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [tools / "hypercorn", "ministack.app:app", "--bind", f"fd://{listener.fileno()}"]
                + ["--workers", "0", "--keep-alive", "3600", "--log-level", "WARNING"],
                cwd=self.folder,
                env=self.variables() | self._settings(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[listener.fileno()],
                start_new_session=True,
            )
        listener.close()

    def variables(self, region: str = REGION) -> dict[str, str]:
        """The environment of a program that must know only the emulator, and no other part of AWS."""
        endpoints = {f"AWS_ENDPOINT_URL{service}": self.endpoint for service in ENDPOINTS}
        return endpoints | {
            "AWS_ENDPOINT_URL_DYNAMODB": self.table.endpoint,
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def _settings(self) -> dict[str, str]:
        return {
            "GATEWAY_PORT": str(self.port),
            "MINISTACK_HOST": "127.0.0.1",
            "MINISTACK_REGION": REGION,
            "S3_DATA_DIR": str(self.folder / "s3"),
            "STATE_DIR": str(self.folder / "state"),
            "LOG_LEVEL": "INFO",
            # Without this, the emulator opens ports for these services, and looks for containers
            # from earlier runs.
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "DOCKER_HOST": "unix:///nonexistent",
        }

    def wait(self) -> None:
        """Waits until it listens."""
        begun = time.monotonic()
        while True:
            if self.process.poll() is not None or time.monotonic() - begun > START_LIMIT:
                raise RuntimeError(f"ministack does not start:\n{self.log.read_text(errors='replace')[-2000:]}")
            try:
                self.client("sts").get_caller_identity()
                return
            except Exception:  # noqa: BLE001: any error, repeated until the limit
                time.sleep(0.2)

    def client(self, service: str, endpoint: str | None = None, region: str = REGION) -> Any:
        """A client for one of the emulator's services, or for a stand-in at another address."""
        return boto3.session.Session().client(
            service,
            endpoint_url=endpoint or self.endpoint,
            region_name=region,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(
                connect_timeout=5,
                read_timeout=READ_LIMIT,
                retries={"total_max_attempts": 1},
                proxies={},
                s3={"addressing_style": "path"},
            ),
        )

    def stop(self) -> None:
        """Stops the emulator, its functions and the table; removes the folder."""
        self.table.stop()
        for sent, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            try:
                os.killpg(self.process.pid, sent)
            except ProcessLookupError:
                break
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
        shutil.rmtree(self.folder, ignore_errors=True)
