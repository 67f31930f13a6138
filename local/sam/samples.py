"""The sample events of `events/`, with real values where they have placeholders."""

import base64
import json
from pathlib import Path

# What a sample says in place of credentials, and the variable of `service.env` with the real one.
CREDENTIALS = ("TASK_KEY", "CLIENT_ID", "CLIENT_SECRET")
TOKEN = "ACCESS_TOKEN"


def names(project: Path) -> list[str]:
    """All samples: FUNCTION, or FUNCTION.KIND for another way of calling the same."""
    return sorted(path.stem for path in (project / "events").glob("*.json"))


def function_of(name: str) -> str:
    """The function that a sample is for."""
    return name.split(".", 1)[0]


def filled(sample: str, values: dict[str, str]) -> str:
    """A sample with each of `values` in the place of its name, in a body that is encoded as well."""
    event = json.loads(sample)
    if isinstance(event, dict) and event.get("isBase64Encoded"):
        body = base64.b64decode(event["body"]).decode()
        event["body"] = base64.b64encode(_replaced(body, values).encode()).decode()
    return _replaced(json.dumps(event), values)


def mentions(sample: str, placeholder: str) -> bool:
    """Whether a sample has this placeholder anywhere."""
    return filled(sample, {placeholder: ""}) != filled(sample, {})


def _replaced(text: str, values: dict[str, str]) -> str:
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text
