"""Gets tokens with Authlib. Input: a list of attempts as JSON; output: a list of outcomes."""

import json
import os
import sys

# The library requires TLS, but the test's issuer is on this machine.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from joserfc.jwk import import_key


def session_of(attempt):
    method, proof = attempt["method"], attempt.get("clientSecret")
    if method == "private_key_jwt":
        proof = import_key(attempt["privateKey"])
    session = OAuth2Session(
        attempt["clientId"], proof, scope=attempt["scope"], token_endpoint_auth_method=method
    )
    if method == "private_key_jwt":
        key = attempt["privateKey"]
        session.register_client_auth_method(
            PrivateKeyJWT(attempt["tokenEndpoint"], headers={"kid": key["kid"]}, alg=key["alg"])
        )
    session.trust_env = False
    return session


def outcome(attempt):
    session = session_of(attempt)
    try:
        token = session.fetch_token(attempt["tokenEndpoint"], grant_type="client_credentials")
    except AuthlibBaseError as error:
        return {"error": error.error}
    if not attempt["revoke"]:
        return {"token": token}
    # The state of the token before and after it is revoked.
    active = lambda: session.introspect_token(attempt["introspectionEndpoint"], token["access_token"]).json()["active"]
    before = active()
    session.revoke_token(attempt["revocationEndpoint"], token["access_token"]).raise_for_status()
    return {"token": token, "active": [before, active()]}


json.dump([outcome(attempt) for attempt in json.load(sys.stdin)], sys.stdout)
