"""SAM's input for a run, in a private folder that is removed at its end: code, sockets to the stand-ins, template and variables."""

import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse

from engine import architecture
from programs import SANDBOX, programs
from service import Service

# The functions that an access token needs: the issuer, and the function that the service uses to
# test the token.
FOR_TOKENS = "token,list-event-types"
# A route's properties; the API's `$default` has neither.
ROUTE = ("Method", "Path")


@contextmanager
def staged(project: Path, data: Path, functions: list[str] | None = None) -> "Iterator[Stage]":
    """Everything that SAM needs for these functions, or for all: the service that runs with this folder, or a new one
    that ends with the run. Chosen functions only need the service's tokens, so no other functions are built for it.
    """
    built = programs(project, functions or names(project))
    alone = ["--only", FOR_TOKENS] if functions else []
    service = Service.found(data) or Service.started(project, data, *alone)
    try:
        stage = Stage(project, service, built)
        try:
            yield stage
        finally:
            stage.end()
    finally:
        service.end()


class Stage:
    """The folder of a run. SAM mounts `code` into each container, where it is /var/task."""

    def __init__(self, project: Path, service: Service, programs: dict[str, Path]) -> None:
        """Uses the programs of these functions and of the sandbox."""
        self.service = service
        (project / "target/sam").mkdir(parents=True, exist_ok=True)
        # Only the owner may read this folder, which contains credentials for the stand-ins and
        # their sockets.
        self.folder = Path(tempfile.mkdtemp(prefix="run-", dir=project / "target/sam"))
        code = self.folder / "code"
        (code / "stand-ins").mkdir(parents=True)
        for name, program in programs.items():
            _link(program, code / ("bootstrap" if name == SANDBOX else name))
        self._forwarders = [_Forwarder(code / "stand-ins", address) for address in service.stand_ins()]
        declared = _declared(project)
        self._logical_ids = {_name(properties): logical for logical, properties in _functions(declared).items()}
        variables = {name: service.variables[name] for name in programs if name != SANDBOX}
        derived, values = _derive(declared, code, variables)
        (self.folder / "template.json").write_text(json.dumps(derived, indent=1), encoding="utf-8")
        (self.folder / "variables.json").write_text(json.dumps(values), encoding="utf-8")

    def end(self) -> None:
        for forwarder in self._forwarders:
            forwarder.shutdown()
            forwarder.server_close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def invoke(self, function: str, event: str, *options: str, **output: Any) -> "subprocess.Popen[str]":
        """Lets SAM invoke a function."""
        file = self.folder / "event.json"
        file.write_text(event, encoding="utf-8")
        return self._sam(["invoke", self._logical_ids[function], "--event", str(file), *options], **output)

    def serve(self, port: int, *options: str) -> "subprocess.Popen[str]":
        """Lets SAM serve the routes, with a new container for each request. For warm containers, it would read every
        file of `code`, which fails for sockets.
        """
        return self._sam(["start-api", "--host", "127.0.0.1", "--port", str(port), *options])

    def _sam(self, arguments: list[str], **output: Any) -> "subprocess.Popen[str]":
        """Starts `sam local` with the run's files. The containers' ports listen at an address that webhooks cannot reach."""
        host = self.service.host
        # SAM is a package in this environment.
        tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        command = [shutil.which("sam", path=tools) or "sam", "local", *arguments]
        command += ["--template", str(self.folder / "template.json")]
        command += ["--env-vars", str(self.folder / "variables.json")]
        command += ["--skip-pull-image", "--container-host", host, "--container-host-interface", host]
        # Containers receive no credentials that are configured on this machine.
        nothing_real = {
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "SAM_CLI_TELEMETRY": "0",
        }
        env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")} | nothing_real
        return subprocess.Popen(command, env=env, text=True, **output)


class _Forwarder(socketserver.ThreadingUnixStreamServer):
    """A socket that forwards to a stand-in, named after its address."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder: Path, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self.upstream = (host, int(port))
        # A socket's path has at most 107 bytes, and the project's path may be longer.
        descriptor = os.open(folder, os.O_PATH)
        try:
            super().__init__(f"/proc/self/fd/{descriptor}/{address}", _Forwarding)
        finally:
            os.close(descriptor)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Forwarding(socketserver.BaseRequestHandler):
    server: _Forwarder
    request: socket.socket

    def handle(self) -> None:
        try:
            with socket.create_connection(self.server.upstream) as upstream:
                upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                back = threading.Thread(target=_copy, args=(upstream, self.request), daemon=True)
                back.start()
                _copy(self.request, upstream)
                back.join()
        except OSError:
            # The function sees its connection end, as it would without the forwarder.
            return


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        target.close()


def _link(program: Path, target: Path) -> None:
    try:
        os.link(program, target)
    except OSError:
        shutil.copy(program, target)


def names(project: Path) -> list[str]:
    """The names of all functions."""
    return [_name(properties) for properties in _functions(_declared(project)).values()]


def _declared(project: Path) -> dict[str, Any]:
    declared: dict[str, Any] = yaml_parse((project / "template.yaml").read_text(encoding="utf-8"))
    return declared


def _functions(declared: dict[str, Any]) -> dict[str, dict[str, Any]]:
    everything = declared["Resources"].items()
    return {logical: one["Properties"] for logical, one in everything if one["Type"] == "AWS::Serverless::Function"}


def _name(properties: dict[str, Any]) -> str:
    return str(properties["CodeUri"]).rsplit("/", 1)[-1]


def _derive(
    declared: dict[str, Any], code: Path, variables: dict[str, dict[str, str]]
) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """A template with only these functions, and the values of their variables.

    SAM passes a variable only if the template declares it, and template.yaml declares none of the variables that AWS
    sets or that point an SDK at a stand-in. The new template has no parameters, since `make run` has resolved them all.
    """
    common = declared["Globals"]["Function"]
    resources = {}
    values = {}
    for logical, properties in _functions(declared).items():
        name = _name(properties)
        if name not in variables:
            continue
        routes = {
            event: {"Type": "HttpApi", "Properties": {key: value for key, value in one["Properties"].items() if key in ROUTE}}
            for event, one in properties.get("Events", {}).items()
            if one["Type"] == "HttpApi"
        }
        resources[logical] = {
            "Type": "AWS::Serverless::Function",
            "Properties": {
                "Runtime": common["Runtime"],
                # The program in `code`; the bootstrap reads its name as _HANDLER.
                "Handler": name,
                "CodeUri": str(code),
                "Architectures": [architecture()],
                "MemorySize": properties.get("MemorySize", common["MemorySize"]),
                "Timeout": properties.get("Timeout", common["Timeout"]),
                "Environment": {"Variables": dict.fromkeys(variables[name], "")},
                "Events": routes,
            },
        }
        values[logical] = variables[name]
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Transform": "AWS::Serverless-2016-10-31",
        "Resources": resources,
    }
    return template, values
