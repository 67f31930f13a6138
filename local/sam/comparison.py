"""`make sam-events`: compares the answers of functions in `make run` and in SAM's container to every sample event.

It starts two services with empty data: the first answers as `make run` does, and SAM's functions use the second. Both
get the same requests in the same order, so that no answer shows an effect of the other side's call, such as a used
idempotency key. The webhook, delivery or application that a sample names is created before each answer. Answers are
compared completely, except for addresses, times, identifiers and secrets.
"""

import difflib
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import samples
from faults import Fault
from programs import programs
from service import Service
from stage import Stage

LIMIT = 120
# Nothing listens on this port, here or in a container, so the samples' events never leave this
# machine.
RECEIVER, NOWHERE = "https://receiver.example.com", "http://127.0.0.1:9"
# The identifiers that the samples contain.
WEBHOOK, DELIVERY = "whk_01m74zy5eva3kj3s4w04zg1hhc", "dlv_01m7wh697q3m7qqm482zyh92yd"
APPLICATION, SECRET, KEY = "app8aRq2LkTz05NvXwYcB1deF", "sec_01m74zy5evf6q0n2h4ck9w8b1x", "laptop"
PUBLIC_KEY = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
# Values that differ in each response.
NEW = (
    (re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"), "<token>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<request>"),
    (re.compile(r"\b([a-z]{3})_[0-9a-z]{26}\b"), r"<\1>"),
    (re.compile(r"\bapp[0-9A-Za-z]{22}\b"), "<app>"),
    (re.compile(r"\bwhsec_[\w+/=-]+"), "<secret>"),
    (re.compile(r"(?<![\w-])[\w-]{43}(?![\w-])"), "<secret>"),
)
# Members whose values differ in each response.
NEW_MEMBERS = ("durationMs", "jti", "kid", "nextCursor")
# Larger numbers are times in seconds since 1970.
FIRST_TIME = 1_000_000_000


def compare(project: Path, chosen: list[str]) -> int:
    """Compares the answers to these samples, or to all, and prints a line for each. Returns 0 if they are the same."""
    everything = samples.names(project)
    unknown = [name for name in chosen if name not in everything]
    if unknown:
        raise Fault(f"There is no sample event `{unknown[0]}`. The sample events are: {', '.join(everything)}")
    begun, results = time.monotonic(), []
    compared = chosen or everything
    functions = sorted({samples.function_of(name) for name in compared})
    with ExitStack() as stack:
        (project / "target/sam").mkdir(parents=True, exist_ok=True)
        local = stack.enter_context(_new_service(project))
        stage = Stage(project, stack.enter_context(_new_service(project)), programs(project, functions))
        stack.callback(stage.end)
        for name in compared:
            results.append(_compare_one(local, stage, name, (project / f"events/{name}.json").read_text(encoding="utf-8")))
    same = results.count(True)
    print(
        f"\n{len(results)} sample events of {len(functions)} functions: {same} answered alike, {len(results) - same} not;"
        f" {time.monotonic() - begun:.0f} s"
    )
    return 0 if same == len(results) else 1


@contextmanager
def _new_service(project: Path) -> Iterator[Service]:
    """A service with empty data, which is removed at its end."""
    with tempfile.TemporaryDirectory(prefix="data-", dir=project / "target/sam") as data:
        # Allow one attempt and one sweep at startup, so that nothing changes by itself between two
        # responses.
        service = Service.started(project, Path(data), "--port", "0", RETRY_SCHEDULE="0s", SWEEP_INTERVAL="1h")
        try:
            yield service
        finally:
            service.end()


def _compare_one(local: Service, stage: Stage, name: str, sample: str) -> bool:
    function, begun = samples.function_of(name), time.monotonic()
    try:
        expected = _comparable(local, local.invoke(function, _filled(local, sample)))
        answered = _comparable(stage.service, _by_sam(stage, function, _filled(stage.service, sample)))
    except (Fault, json.JSONDecodeError) as error:
        print(f"FAILED     {name:26} {error}", flush=True)
        return False
    same: bool = answered == expected
    status = expected.get("statusCode", "") if isinstance(expected, dict) else ""
    print(f"{'same' if same else 'DIFFERENT':10} {name:26} {status:3} {time.monotonic() - begun:6.1f} s", flush=True)
    if not same:
        lines = (json.dumps(answer, indent=1, sort_keys=True).splitlines() for answer in (expected, answered))
        print("\n".join(difflib.unified_diff(*lines, "make run", "sam local", lineterm="", n=2)), flush=True)
    return same


def _by_sam(stage: Stage, function: str, event: str) -> str:
    sam = stage.invoke(function, event, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        answer, log = sam.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        sam.kill()
        sam.communicate()
        raise Fault(f"SAM did not exit within {LIMIT} s") from None
    if sam.returncode or not answer.strip():
        raise Fault(f"SAM exited with {sam.returncode}:\n{log[-2000:]}")
    text: str = answer
    return text


def _filled(service: Service, sample: str) -> str:
    """The sample with real values, and with new objects in place of those that it names."""
    values = {RECEIVER: NOWHERE}
    entity = f"/api/managing-entity/{service.env['MANAGING_ENTITY']}"
    token = service.token()
    if samples.mentions(sample, WEBHOOK) or samples.mentions(sample, DELIVERY):
        new = {"name": "Sample", "eventUrl": f"{NOWHERE}/hook", "eventList": ["booking.created"]}
        values[WEBHOOK] = service.request("POST", f"{entity}/webhook", new, token)["id"]
    if samples.mentions(sample, DELIVERY):
        event = {"type": "booking.created", "data": {"bookingIdentifier": "B-1001"}}
        deliveries = service.request("POST", f"{entity}/webhook/event", event, token)["deliveries"]
        own = next(one for one in deliveries if one["webhookIdentifier"] == values[WEBHOOK])
        values[DELIVERY] = own["deliveryIdentifier"]
        _wait_for_attempt(service, f"{entity}/webhook/delivery/{values[DELIVERY]}", token)
    if samples.mentions(sample, APPLICATION):
        new = {"name": "Sample", "scopes": ["booking.read"]}
        made = service.request("POST", f"{entity}/application", new, token)
        values |= {APPLICATION: made["clientId"], SECRET: made["secrets"][0]["id"]}
        if samples.mentions(sample, KEY):
            key = {"publicKey": PUBLIC_KEY | {"kid": KEY}}
            service.request("POST", f"{entity}/application/{made['clientId']}/key", key, token)
    return samples.filled(sample, values | service.placeholders(sample))


def _wait_for_attempt(service: Service, delivery: str, token: str) -> None:
    begun = time.monotonic()
    while service.request("GET", delivery, token=token)["attemptCount"] == 0:
        if time.monotonic() - begun > LIMIT:
            raise Fault(f"{delivery} was not attempted within {LIMIT} s")
        time.sleep(0.1)


def _comparable(service: Service, answer: str) -> Any:
    read = json.loads(answer.replace(urlsplit(service.env["BASE_URL"]).netloc, "<service>"))
    # A sweep returns the number of due deliveries, which is different each time.
    return "<count>" if isinstance(read, int) else _plain(read)


def _plain(answer: Any) -> Any:
    """An answer with placeholders for values that differ each time, and with a parsed body if it is JSON."""
    if isinstance(answer, dict):
        plain = {name: _plain(_read(value) if name == "body" else value) for name, value in answer.items()}
        return plain | {name: "<new>" for name in NEW_MEMBERS if plain.get(name) is not None}
    if isinstance(answer, list):
        return [_plain(value) for value in answer]
    if isinstance(answer, str):
        for pattern, kind in NEW:
            answer = pattern.sub(kind, answer)
        return answer
    if isinstance(answer, int) and answer > FIRST_TIME:
        return "<time>"
    return answer


def _read(body: Any) -> Any:
    try:
        return json.loads(body)
    except (TypeError, ValueError):
        return body
