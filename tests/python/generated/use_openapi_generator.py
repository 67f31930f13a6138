"""Uses a client made by openapi-generator: token, webhook, publish, list, show, resend, statistics, change and removal,
and a refused publication."""

import time
from collections.abc import Callable
from typing import Any

from waypost_client import (
    ApiClient,
    ApiException,
    Configuration,
    DeliveriesApi,
    Delivery,
    DeliveryStatusFilter,
    EventsApi,
    Problem,
    PublishRequest,
    TokenError,
    TokensApi,
    WebhookChange,
    WebhookRequest,
    WebhooksApi,
)

LONGEST = 300.0


def refusal(call: Callable[[], Any]) -> Any:
    """The typed error of a refused call."""
    try:
        call()
    except ApiException as error:
        return error.data
    raise AssertionError("the call is not refused")


def delivered(deliveries: DeliveriesApi, entity: str, identifier: str, attempts: int) -> Delivery:
    """Waits until the delivery has arrived, after this many attempts, and returns it."""
    end = time.monotonic() + LONGEST
    while True:
        shown = deliveries.show_delivery(entity, identifier)
        arrived = shown.status == "delivered" and shown.attempt_count >= attempts
        if arrived or time.monotonic() > end:
            return shown
        time.sleep(0.05)


def use(settings: dict[str, str]) -> dict[str, Any]:
    """The client's results."""
    entity = settings["entity"]
    # The token issuer's URL is the one in the served document.
    stranger = TokensApi(ApiClient(Configuration()))

    def asked(secret: str) -> Any:
        return stranger.token("client_credentials", client_id=settings["clientId"], client_secret=secret)

    refused = refusal(lambda: asked("wrong"))
    assert isinstance(refused, TokenError), refused
    granted = asked(settings["clientSecret"])

    client = ApiClient(Configuration(host=settings["address"], access_token=granted.access_token))
    webhooks, events, deliveries = WebhooksApi(client), EventsApi(client), DeliveriesApi(client)

    # `enabled` has a default, so it is not required.
    request = WebhookRequest(name="Generated", eventUrl=settings["eventUrl"], eventList=["booking.created"])
    webhook = webhooks.create_webhook(entity, request)

    published = events.publish_event(entity, PublishRequest(type="booking.created", data={"booking": {"nights": 3}}))
    [made] = published.deliveries
    first = delivered(deliveries, entity, made.delivery_identifier, 1)
    arrived = [DeliveryStatusFilter.DELIVERED]
    page = deliveries.list_deliveries(entity, event_identifier=published.event_identifier, status=arrived)
    deliveries.resend_delivery(entity, made.delivery_identifier)
    delivery = delivered(deliveries, entity, made.delivery_identifier, 2)

    problem = refusal(lambda: events.publish_event(entity, PublishRequest(type="booking.creatd", data={})))
    assert isinstance(problem, Problem) and problem.properties.violations, problem

    changed = webhooks.change_webhook(entity, webhook.id, WebhookChange(name="Changed"))
    statistics = webhooks.webhook_stats(entity, webhook.id)
    removed = webhooks.remove_webhook(entity, webhook.id)

    return {
        "refusedToken": [refused.error, refused.kind],
        "enabled": webhook.enabled,
        "webhook": webhook.id,
        "delivery": [first.status, first.webhook_identifier, first.last_http_status],
        "attempts": [attempt.http_status for attempt in delivery.attempts],
        "data": delivery.event.data,
        "problem": [problem.status, problem.kind, [violation.pointer for violation in problem.properties.violations]],
        "listed": [item.id == made.delivery_identifier for item in page.items],
        "changed": [changed.name, changed.version],
        "counted": statistics.last24_hours.attempts,
        "removed": removed.success,
    }
