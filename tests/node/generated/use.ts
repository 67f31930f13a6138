// Uses the generated types: token, webhook, publish, show, and a refused publish request.

import createClient from "openapi-fetch";
import type { components, paths } from "waypost";

type Settings = {
  address: string;
  clientId: string;
  clientSecret: string;
  entity: string;
  eventUrl: string;
};
type Delivery = components["schemas"]["Delivery"];
type Problem = components["schemas"]["Problem"];

const LONGEST_MS = 300_000;

/** The data of a successful call. */
function good<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

export async function use(settings: Settings) {
  const stranger = createClient<paths>({ baseUrl: settings.address });
  const asked = (client_secret: string) =>
    stranger.POST("/oauth2/token", {
      body: { grant_type: "client_credentials", client_id: settings.clientId, client_secret },
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
    });
  const refused = (await asked("wrong")).error;
  if (refused === undefined || !("error" in refused)) throw new Error("a wrong secret is not refused");
  const { access_token } = good(await asked(settings.clientSecret));

  const client = createClient<paths>({
    baseUrl: settings.address,
    headers: { Authorization: `Bearer ${access_token}` },
  });
  const path = { managingEntityIdentifier: settings.entity };

  // `enabled` has a default and is not required.
  const webhook = good(
    await client.POST("/api/managing-entity/{managingEntityIdentifier}/webhook", {
      params: { path },
      body: { name: "Generated", eventUrl: settings.eventUrl, eventList: ["booking.created"] },
    }),
  );

  const publish = (type: string) =>
    client.POST("/api/managing-entity/{managingEntityIdentifier}/webhook/event", {
      params: { path },
      body: { type, data: { booking: { nights: 3 } } },
    });
  const published = good(await publish("booking.created"));
  const show = async (deliveryIdentifier: string): Promise<Delivery> =>
    good(
      await client.GET("/api/managing-entity/{managingEntityIdentifier}/webhook/delivery/{deliveryIdentifier}", {
        params: { path: { ...path, deliveryIdentifier } },
      }),
    );
  const [made] = published.deliveries;
  if (made === undefined) throw new Error("the event made no delivery for the webhook");
  const end = Date.now() + LONGEST_MS;
  let delivery = await show(made.deliveryIdentifier);
  while (delivery.status !== "delivered" && Date.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    delivery = await show(made.deliveryIdentifier);
  }

  const problem: Problem | undefined = (await publish("booking.creatd")).error;
  if (problem === undefined) throw new Error("an unknown type is not refused");

  return {
    refusedToken: [refused.error, refused.kind],
    enabled: webhook.enabled,
    webhook: webhook.id,
    delivery: [delivery.status, delivery.webhookIdentifier, delivery.lastHttpStatus],
    attempts: delivery.attempts.map((attempt) => attempt.httpStatus),
    data: delivery.event.data,
    problem: [problem.status, problem.kind, problem.properties.violations?.map((violation) => violation.pointer)],
  };
}
