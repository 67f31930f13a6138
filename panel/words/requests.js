// What was sent to an endpoint: as it is documented, since a delivery keeps the body and not the headers.
import { formatted } from "../parts/json.js";

/** The headers of an attempt, by name; what is not kept is said to be so. */
export function headersOf(delivery, attempt, webhook) {
  const seconds = attempt ? Math.floor(new Date(attempt.attemptDate) / 1000) : null;
  const own = Object.keys(webhook?.headers ?? {}).map((name) => [name, "***"]);
  return [
    ["Content-Type", "application/json"],
    ["Service-Delivery-Id", delivery.id],
    ["Service-Version", "2.0"],
    ["webhook-id", delivery.event.id],
    ...(seconds ? [["webhook-timestamp", String(seconds)]] : []),
    ...own,
  ];
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** What is copied, and what it lacks. */
export const curlWords = (delivery, webhook) =>
  `the request as a curl command, without its signature${curlOf(delivery, webhook).includes("***")
    ? "; put in what stands as ***" : ""}`;

/** A command that sends the same body to the endpoint, without the signature, whose secret the panel does not know. */
export function curlOf(delivery, webhook) {
  const headers = headersOf(delivery, null, webhook).map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)}`);
  const body = `  --data-binary ${quoted(formatted(delivery.event, 0))}`;
  return [`curl -i -X POST ${quoted(webhook?.eventUrl ?? delivery.url)}`, ...headers, body].join(" \\\n");
}
