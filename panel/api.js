// The client of the API. A call renews the token if necessary, and retries while the service is unavailable. Errors are
// thrown as a `Refusal`, whose text says what to do.
import { accessToken, entityPath, forget } from "./session.js";
import { refusalOf, unreachable } from "./refusal.js";

/** The waits before the retries of a call after a 503, in milliseconds. */
const BACKOFF_MS = [400, 1200, 3000];
/** The longest wait, even if `Retry-After` is longer: a person is waiting. */
const LONGEST_BACKOFF_MS = 5000;

/** Requests whose answer has a secret that is shown once: a person who repeats one after an outage means the same one. */
const WITH_SECRET = /^\/(webhook|application)$|\/secret$/;
/** The keys of such requests whose outcome is unknown. */
const keys = {};

async function call(method, path, { query, body: content, signal, read = JSON.parse } = {}) {
  const address = entityPath() + path + search(query);
  const body = written(content);
  const request = address + body;
  // A retry must not repeat the effect, or fail because the first call already had it.
  const value = method === "POST" && WITH_SECRET.test(path) ? keys[request] ??= unique() : unique();
  const key = method === "GET" ? {} : { "Idempotency-Key": value };
  const type = body === undefined ? {} : { "Content-Type": "application/json" };
  let mayRenew = true;
  for (let attempt = 0; ; ) {
    const token = await accessToken();
    const headers = { Authorization: `Bearer ${token}`, "Service-Version": "2.0", ...key, ...type };
    const answer = await answered(address, { method, headers, body, signal });
    if (answer.ok) {
      const text = await answer.text();
      delete keys[request];
      return read(text);
    }
    if (answer.status === 401 && mayRenew) {
      mayRenew = false;
      forget(token);
    } else {
      const refusal = await refusalOf(answer);
      if (answer.status < 500 && ![401, 408, 429].includes(answer.status)) delete keys[request];
      const isTemporary = answer.status === 503 && refusal.isOutage;
      if (!isTemporary || attempt >= BACKOFF_MS.length) throw refusal;
      await backoff(answer, BACKOFF_MS[attempt++], signal);
    }
  }
}

/** A body as JSON. A string is already JSON: parsing and serializing it would lose digits of numbers. */
const written = (body) => (typeof body === "string" ? body : body && JSON.stringify(body));

async function answered(address, request) {
  try {
    return await fetch(address, request);
  } catch (error) {
    throw error.name === "AbortError" ? error : unreachable();
  }
}

async function backoff(answer, least, signal) {
  const asked = Number(answer.headers.get("retry-after")) * 1000 || 0;
  await new Promise((proceed) => setTimeout(proceed, Math.min(Math.max(asked, least), LONGEST_BACKOFF_MS)));
  signal?.throwIfAborted();
}

function search(query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** A random key. `crypto.randomUUID` is not available over plain HTTP. */
const unique = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");

export const get = (path, query, signal) => call("GET", path, { query, signal });
/**
 * Gets a resource as the unparsed text of the response, since parsing loses digits of numbers, and repeated members.
 */
export const getText = (path, signal) => call("GET", path, { signal, read: (text) => text });
export const post = (path, body = {}) => call("POST", path, { body });
export const patch = (path, body, query) => call("PATCH", path, { body, query });
export const remove = (path, query) => call("DELETE", path, { query });
