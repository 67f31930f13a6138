"""Verifies received webhooks with the `standardwebhooks` package. Input: a list of requests as JSON; output: a list of verdicts."""

import base64
import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def verdict(request):
    try:
        Webhook(request["secret"]).verify(base64.b64decode(request["body"]), request["headers"])
    except WebhookVerificationError as error:
        return str(error)
    return "valid"


json.dump([verdict(request) for request in json.load(sys.stdin)], sys.stdout)
