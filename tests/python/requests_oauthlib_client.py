"""Gets tokens with requests-oauthlib. Input: a list of attempts as JSON; output: a list of outcomes."""

import json
import os
import sys

# The library requires TLS, but the test's issuer is on this machine.
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"

from oauthlib.oauth2 import BackendApplicationClient, OAuth2Error
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session


def outcome(attempt):
    client, secret = attempt["clientId"], attempt["clientSecret"]
    session = OAuth2Session(client=BackendApplicationClient(client_id=client, scope=attempt["scope"]))
    session.trust_env = False
    credentials = {
        "client_secret_basic": {"auth": HTTPBasicAuth(client, secret)},
        "client_secret_post": {"include_client_id": True, "client_secret": secret},
    }
    try:
        token = session.fetch_token(attempt["tokenEndpoint"], **credentials[attempt["method"]])
    except OAuth2Error as error:
        return {"error": error.error}
    return {"token": {**token, "scope": token.scope}}  # as a string; the library has split it into a list


json.dump([outcome(attempt) for attempt in json.load(sys.stdin)], sys.stdout)
