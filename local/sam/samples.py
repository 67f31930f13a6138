"""The sample events of `events/`, with real values where they have placeholders."""

import base64
import json
from pathlib import Path

# The placeholders for credentials in samples. `service.env` has the real values under the same
# names.
CREDENTIALS = ("TASK_KEY", "CLIENT_ID", "CLIENT_SECRET")
TOKEN = "ACCESS_TOKEN"


def names(project: Path) -> list[str]:
    """All samples: FUNCTION, or FUNCTION.KIND for another kind of call."""
    return sorted(path.stem for path in (project / "events").glob("*.json"))


def function_of(name: str) -> str:
    """The function of a sample."""
    return name.split(".", 1)[0]


def filled(sample: str, values: dict[str, str]) -> str:
    """A sample with each of `values` in place of its name, also in an encoded body."""
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
