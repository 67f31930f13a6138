"""Uses a generated client: token, webhook, publish, show, and a refused publication."""

import time
from base64 import b64encode
from typing import Any

from waypost_client import AuthenticatedClient
from waypost_client.api.deliveries import show_delivery
from waypost_client.api.events import publish_event
from waypost_client.api.tokens import token
from waypost_client.api.webhooks import create_webhook
from waypost_client.models import (
    Delivery,
    Problem,
    PublishedEvent,
    PublishRequest,
    PublishRequestData,
    Token,
    TokenError,
    TokenRequest,
    WebhookRequest,
    WebhookWithSecret,
)
from waypost_client.types import Unset

LONGEST = 300.0


def delivered(client: AuthenticatedClient, entity: str, identifier: str) -> Delivery:
    """Waits until the delivery has arrived, and returns it."""
    end = time.monotonic() + LONGEST
    while True:
        shown = show_delivery.sync(entity, identifier, client=client)
        assert isinstance(shown, Delivery), shown
        if shown.status == "delivered" or time.monotonic() > end:
            return shown
        time.sleep(0.05)


def use(settings: dict[str, str]) -> dict[str, Any]:
    """The client's results."""
    address, entity = settings["address"], settings["entity"]

    def authenticated(credential: str, scheme: str) -> AuthenticatedClient:
        # Ignore any proxy that the environment sets.
        return AuthenticatedClient(address, credential, prefix=scheme, httpx_args={"trust_env": False})

    def asked(secret: str) -> Any:
        credentials = b64encode(f"{settings['clientId']}:{secret}".encode()).decode()
        request = TokenRequest(grant_type="client_credentials")
        return token.sync(client=authenticated(credentials, "Basic"), body=request)

    refused, granted = asked("wrong"), asked(settings["clientSecret"])
    assert isinstance(refused, TokenError) and isinstance(granted, Token), (refused, granted)
    client = authenticated(granted.access_token, "Bearer")

    # `enabled` has a default, so it is not required.
    request = WebhookRequest(name="Generated", event_url=settings["eventUrl"], event_list=["booking.created"])
    webhook = create_webhook.sync(entity, client=client, body=request)
    assert isinstance(webhook, WebhookWithSecret), webhook

    data = PublishRequestData.from_dict({"booking": {"nights": 3}})
    published = publish_event.sync(
        entity, client=client, body=PublishRequest(type_="booking.created", data=data)
    )
    assert isinstance(published, PublishedEvent), published
    delivery = delivered(client, entity, published.deliveries[0].delivery_identifier)

    problem = publish_event.sync(entity, client=client, body=PublishRequest(type_="booking.creatd", data=data))
    assert isinstance(problem, Problem), problem
    violations = problem.properties.violations
    assert not isinstance(violations, Unset), problem

    return {
        "refusedToken": [refused.error, refused.kind],
        "enabled": webhook.enabled,
        "webhook": webhook.id,
        "delivery": [delivery.status, delivery.webhook_identifier, delivery.last_http_status],
        "attempts": [attempt.http_status for attempt in delivery.attempts],
        "data": delivery.event.data.to_dict(),
        "problem": [problem.status, problem.kind, [violation.pointer for violation in violations]],
    }
