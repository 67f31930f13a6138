"""Verifies Ed25519 signatures of received webhooks with the `cryptography` package, as Standard Webhooks describes.
Input: a list of requests as JSON; output: for each, the number of `v1a` signatures, and how many its public key
verifies."""

import base64
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def verifies(key, signature, signed):
    try:
        key.verify(base64.b64decode(signature, validate=True), signed)
    except InvalidSignature:
        return False
    return True


def counts(request):
    prefix, encoded = request["key"][:5], request["key"][5:]
    assert prefix == "whpk_", prefix
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(encoded, validate=True))
    headers = request["headers"]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + base64.b64decode(request["body"])
    parts = [part.split(",") for part in headers["webhook-signature"].split(" ")]
    signatures = [signature for version, signature in parts if version == "v1a"]
    return [len(signatures), sum(verifies(key, signature, signed) for signature in signatures)]


json.dump([counts(request) for request in json.load(sys.stdin)], sys.stdout)
