// Uses a client from openapi-generator: token, webhook, publish, list, show, resend, statistics,
// change and removal, and a refused publish request. It is compiled together with the generated
// client.

import {
  Configuration,
  DeliveriesApi,
  EventsApi,
  ResponseError,
  TokensApi,
  WebhooksApi,
  type Delivery,
  type Problem,
  type TokenError,
} from "./client";

type Settings = {
  address: string;
  clientId: string;
  clientSecret: string;
  entity: string;
  eventUrl: string;
};

const LONGEST_MS = 300_000;

/** The body of a refused call. */
async function refusal<T>(call: Promise<unknown>): Promise<T> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ResponseError) return (await error.response.json()) as T;
    throw error;
  }
  throw new Error("the call is not refused");
}

export async function use(settings: Settings) {
  const managingEntityIdentifier = settings.entity;
  const stranger = new TokensApi(new Configuration({ basePath: settings.address }));
  const asked = (clientSecret: string) =>
    stranger.token({ grantType: "client_credentials", clientId: settings.clientId, clientSecret });
  const refused = await refusal<TokenError>(asked("wrong"));
  const { accessToken } = await asked(settings.clientSecret);

  // The client sends an OAuth2 scheme's token unchanged, without `Bearer`.
  const configuration = new Configuration({ basePath: settings.address, accessToken: `Bearer ${accessToken}` });
  const webhooks = new WebhooksApi(configuration);
  const events = new EventsApi(configuration);
  const deliveries = new DeliveriesApi(configuration);

  // `enabled` has a default and is not required.
  const webhook = await webhooks.createWebhook({
    managingEntityIdentifier,
    webhookRequest: { name: "Generated", eventUrl: settings.eventUrl, eventList: ["booking.created"] },
  });
  const webhookIdentifier = webhook.id;

  const publish = (type: string) =>
    events.publishEvent({ managingEntityIdentifier, publishRequest: { type, data: { booking: { nights: 3 } } } });
  const published = await publish("booking.created");
  const [made] = published.deliveries;
  if (made === undefined) throw new Error("the event made no delivery for the webhook");
  const { deliveryIdentifier } = made;
  const delivered = async (attempts: number): Promise<Delivery> => {
    const end = Date.now() + LONGEST_MS;
    for (;;) {
      const shown = await deliveries.showDelivery({ managingEntityIdentifier, deliveryIdentifier });
      const arrived = shown.status === "delivered" && shown.attemptCount >= attempts;
      if (arrived || Date.now() > end) return shown;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const first = await delivered(1);
  const { eventIdentifier } = published;
  const page = await deliveries.listDeliveries({ managingEntityIdentifier, eventIdentifier, status: ["delivered"] });
  await deliveries.resendDelivery({ managingEntityIdentifier, deliveryIdentifier });
  const delivery = await delivered(2);

  const problem = await refusal<Problem>(publish("booking.creatd"));

  const change = { managingEntityIdentifier, webhookIdentifier, webhookChange: { name: "Changed" } };
  const changed = await webhooks.changeWebhook(change);
  const statistics = await webhooks.webhookStats({ managingEntityIdentifier, webhookIdentifier });
  const removed = await webhooks.removeWebhook({ managingEntityIdentifier, webhookIdentifier });

  return {
    refusedToken: [refused.error, refused.kind],
    enabled: webhook.enabled,
    webhook: webhookIdentifier,
    delivery: [first.status, first.webhookIdentifier, first.lastHttpStatus],
    attempts: delivery.attempts.map((attempt) => attempt.httpStatus),
    data: delivery.event.data,
    problem: [problem.status, problem.kind, problem.properties.violations?.map((violation) => violation.pointer)],
    listed: page.items.map((item) => item.id === deliveryIdentifier),
    changed: [changed.name, changed.version],
    counted: statistics.last24Hours.attempts,
    removed: removed.success,
  };
}
