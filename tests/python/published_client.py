"""Manages webhooks and applications with a client published for another platform of this kind. Only its paths, and the
method of one request, are rewritten. Input: the settings of the bundle as JSON; output: the client's results."""

import json
import sys

from wink_sdk_user_settings import (
    ApiClient,
    ApplicationApi,
    Configuration,
    ManagingEntity,
    UpsertApplicationRequest,
    UpsertWebhookRequest,
    WebhookApi,
)
from wink_sdk_user_settings.exceptions import BadRequestException, NotFoundException


class Rewriting(ApiClient):
    """Adapts requests to this service: paths name the managing entity, and no GET changes data."""

    def __init__(self, configuration, entity):
        super().__init__(configuration)
        self.entity = entity

    def param_serialize(self, method, resource_path, *arguments, **named):
        resource_path = resource_path.replace("/api/", f"/api/managing-entity/{self.entity}/", 1)
        if resource_path.endswith("/revoke"):
            method, resource_path = "POST", resource_path.removesuffix("/revoke") + "/secret"
        return super().param_serialize(method, resource_path, *arguments, **named)


def shown(model):
    """A model as JSON for the output."""
    return [shown(one) for one in model] if isinstance(model, list) else model.model_dump(mode="json", by_alias=True)


def kind(call, refusal):
    """The kind of the Problem that refuses the call."""
    try:
        call()
    except refusal as error:
        return json.loads(error.body)["kind"]


def webhooks(api, settings):
    owner = ManagingEntity(identifier=settings["entity"], name="The hotel", type="COMPANY", metadata={"rooms": 12})
    request = lambda name, owner=owner: UpsertWebhookRequest(
        name=name, entity=owner, enabled=True, event_url=settings["eventUrl"], event_list=["booking.created"]
    )
    stranger = ManagingEntity(identifier="another", name="Another", type="COMPANY")
    events, made = api.show_webhook_events(), api.create_webhook(request("Published"))
    return {
        "events": shown(events),
        "made": shown(made),
        "loaded": shown(api.load_webhook(made.id)),
        "listed": shown(api.show_webhooks()),
        "changed": shown(api.update_webhook(made.id, request("Changed"))),
        "ofAnother": kind(lambda: api.create_webhook(request("Published", stranger)), BadRequestException),
        "removed": shown(api.delete_webhook(made.id)),
        "gone": kind(lambda: api.load_webhook(made.id), NotFoundException),
    }


def applications(api, settings):
    request = lambda name: UpsertApplicationRequest(
        name=name,
        owner_identifier=settings["entity"],
        owner_name="The hotel",
        owner_type="COMPANY",
        redirect_uris=["https://client.example.com/signed-in"],
    )
    made = api.create_application(request("Published"))
    return {
        "made": shown(made),
        "loaded": shown(api.load_application(made.id)),
        "listed": shown(api.show_applications()),
        "changed": shown(api.update_application(made.id, request("Changed"))),
        "revoked": shown(api.revoke_application(made.id)),
        "removed": shown(api.delete_application(made.id)),
        "gone": kind(lambda: api.load_application(made.id), NotFoundException),
    }


request = json.load(sys.stdin)
settings = request["settings"]
client = Rewriting(Configuration(host=settings["address"], access_token=settings["token"]), settings["entity"])
if request["things"] == "webhooks":
    seen = webhooks(WebhookApi(client), settings)
else:
    seen = applications(ApplicationApi(client), settings)
json.dump(seen, sys.stdout)
