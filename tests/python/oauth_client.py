"""Asks for tokens as users of Authlib do: a list of attempts as JSON comes in, a list of outcomes goes out."""

import json
import os
import sys

# The library insists on TLS; here the issuer is on this machine.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session


def outcome(attempt):
    session = OAuth2Session(
        attempt["clientId"],
        attempt["clientSecret"],
        scope=attempt["scope"],
        token_endpoint_auth_method=attempt["method"],
    )
    session.trust_env = False
    try:
        token = session.fetch_token(attempt["endpoint"], grant_type="client_credentials")
    except AuthlibBaseError as error:
        return {"error": error.error}
    return {name: token[name] for name in ("token_type", "scope", "expires_in")}


json.dump([outcome(attempt) for attempt in json.load(sys.stdin)], sys.stdout)
