// The one way to the API. A call renews the token when it has to, is repeated while the service is not available, and is
// refused with a `Refusal`, which says in words what to do.
import { accessToken, entityPath, forget } from "./session.js";
import { refusalOf, unreachable } from "./refusal.js";

/** Pauses before the repetitions of a call that was answered with 503, in milliseconds. */
const PAUSES = [400, 1200, 3000];
/** A longer `Retry-After` is not waited for: a person wants to know. */
const LONGEST_PAUSE = 5000;

/** A number that JavaScript cannot hold, as it was written. */
export class ExactNumber {
  constructor(source) {
    this.source = source;
  }
}

const exactly = (_, value, context) =>
  typeof value === "number" && context?.source && String(value) !== context.source ? new ExactNumber(context.source)
    : value;

async function call(method, path, { query, body, signal, reviver } = {}) {
  const address = entityPath() + path + search(query);
  // A call that is repeated does once what it is to do.
  const key = method === "POST" ? { "Idempotency-Key": unique() } : {};
  const type = body === undefined ? {} : { "Content-Type": "application/json" };
  let mayRenew = true;
  for (let attempt = 0; ; ) {
    const token = await accessToken();
    const headers = { Authorization: `Bearer ${token}`, "Service-Version": "2.0", ...key, ...type };
    const answer = await answered(address, { method, headers, body: body && JSON.stringify(body), signal });
    if (answer.ok) return JSON.parse(await answer.text(), reviver);
    if (answer.status === 401 && mayRenew) {
      mayRenew = false;
      forget(token);
    } else if (answer.status === 503 && attempt < PAUSES.length) {
      await pause(answer, PAUSES[attempt++], signal);
    } else {
      throw await refusalOf(answer);
    }
  }
}

async function answered(address, request) {
  try {
    return await fetch(address, request);
  } catch (error) {
    throw error.name === "AbortError" ? error : unreachable();
  }
}

async function pause(answer, least, signal) {
  const asked = Number(answer.headers.get("retry-after")) * 1000 || 0;
  await new Promise((proceed) => setTimeout(proceed, Math.min(Math.max(asked, least), LONGEST_PAUSE)));
  signal?.throwIfAborted();
}

function search(query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** As random as an identifier of its own, also where `crypto.randomUUID` is not to be had: over plain HTTP. */
const unique = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");

export const get = (path, query, signal) => call("GET", path, { query, signal });
/** The same, with every number as it was written. */
export const getExactly = (path, signal) => call("GET", path, { signal, reviver: exactly });
export const post = (path, body = {}) => call("POST", path, { body });
export const patch = (path, body) => call("PATCH", path, { body });
export const remove = (path, query) => call("DELETE", path, { query });
