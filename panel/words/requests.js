// Requests to an endpoint: an attempt stores the address and the names of the headers, not their values.

/** The headers whose values are constant, or known from the delivery. */
const known = (delivery) => ({
  "accept-encoding": "identity",
  "content-type": "application/json",
  "service-delivery-id": delivery.id,
  "service-version": "2.0",
  "webhook-id": delivery.event.id,
});

/** The body of an attempt, as sent. A thin body has every member of the event except its data, in the same order. */
export function bodyOf({ body, event, subject }, attempt) {
  if (attempt?.payload !== "thin") return body;
  const { id, type, test, timestamp, managingEntityIdentifier } = event;
  return JSON.stringify({ id, type, test, subject, timestamp, managingEntityIdentifier });
}

/** The headers of an attempt, as names and values; `null` for a value that is not stored. */
export function headersOf(delivery, attempt) {
  const values = {
    ...known(delivery),
    "content-length": delivery.erasedDate ? null : String(new TextEncoder().encode(bodyOf(delivery, attempt)).length),
    "host": URL.canParse(attempt.url) ? new URL(attempt.url).host : null,
    "webhook-timestamp": String(Math.floor(new Date(attempt.attemptDate) / 1000)),
  };
  return attempt.requestHeaders.map((name) => [name, values[name] ?? null]);
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The address of the next request; `undefined` if the deliveries are read from a feed. */
export const targetOf = ({ url }, webhook) => (webhook ? webhook.eventUrl : url);

/** The description of the copied command, with its omissions. */
export const curlWords = (delivery, webhook) =>
  `the request as a curl command, without its signature${curlOf(delivery, webhook).includes("***")
    ? "; replace each *** with its value" : ""}`;

/** A command that sends the same bytes to the endpoint, without the signature, whose secret the panel does not know. */
export function curlOf(delivery, webhook) {
  const own = Object.keys(webhook?.headers ?? {}).map((name) => [name, "***"]);
  const all = [...Object.entries(known(delivery)), ...own];
  const headers = all.map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)}`);
  const body = `  --data-binary ${quoted(bodyOf(delivery, delivery.attempts.at(-1)))}`;
  return [`curl -i -X POST ${quoted(targetOf(delivery, webhook))}`, ...headers, body].join(" \\\n");
}
