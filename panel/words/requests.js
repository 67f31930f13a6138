// Requests to an endpoint: an attempt stores the address and the headers' names, but not their values.
import { accepts, curlFor } from "./shells.js";

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

/** The address of the next request; `undefined` if the deliveries are read from a feed. */
export const targetOf = ({ url }, webhook) => (webhook ? webhook.eventUrl : url);

const MASK = "***";

/** A request with the same bytes to the endpoint, without the signature, for which the panel lacks the secret. */
function requestOf(delivery, webhook) {
  const own = Object.keys(webhook?.headers ?? {}).map((name) => [name, MASK]);
  const headers = [...Object.entries(known(delivery)), ...own].map(([name, value]) => `${name}: ${value}`);
  return { url: targetOf(delivery, webhook), headers, body: bodyOf(delivery, webhook ?? delivery.attempts.at(-1)) };
}

/** The description of the copied command, with its omissions. */
export function curlWords(delivery, webhook, shell) {
  const request = requestOf(delivery, webhook);
  const isMasked = [request.url, ...request.headers].some((text) => text.includes(MASK));
  return [
    "the request as a curl command, without its signature",
    isMasked && `replace each ${MASK} with its value`,
    !accepts(shell, curlFor(shell, request)) && "it is too long for cmd, so choose PowerShell",
  ].filter(Boolean).join("; ");
}

export const curlOf = (delivery, webhook, shell) => curlFor(shell, requestOf(delivery, webhook));
