// An attempt's result, in a word or two.

const STATUSES = {
  200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 301: "Moved Permanently", 302: "Found", 304: "Not Modified",
  307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
  405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 413: "Content Too Large",
  415: "Unsupported Media Type", 422: "Unprocessable Content", 429: "Too Many Requests", 500: "Internal Server Error",
  502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
};

/** The reasons why an attempt got no response, by the code of its error. */
const ERRORS = { dns: "Host not found", connect: "Connection failed", tls: "TLS failed", timeout: "Timed out",
  blocked: "Address not allowed" };

/** The code of an attempt whose outcome was not recorded. */
const INTERRUPTED = "interrupted";
const OUTCOME_UNKNOWN = "Outcome unknown";

/** The failures of a program that reads the feed of a webhook, by the code of their error. */
const OF_READERS = { reported: "Reported as failed", unconfirmed: "Not confirmed in time" };

/** A text within a sentence: "timed out", "TLS failed". */
const within = (words) => words.toLowerCase().replace("tls", "TLS");

/** The results by which the list can be filtered, as value and words. */
export const RESULTS = [
  ...Object.entries(ERRORS).map(([code, words]) => [code, `No response: ${within(words)}`]),
  ...Object.entries(OF_READERS),
  [INTERRUPTED, OUTCOME_UNKNOWN],
  ...Object.entries(STATUSES).map(([status, words]) => [status, `${status} ${words}`]),
];

export const succeeded = ({ httpStatus, confirmed }) => confirmed || httpStatus >= 200 && httpStatus < 300;

/** "500 Internal Server Error", "Timed out". */
export function result({ httpStatus, errorCode, confirmed }) {
  if (confirmed) return "Confirmed by the reader";
  if (httpStatus) return STATUSES[httpStatus] ? `${httpStatus} ${STATUSES[httpStatus]}` : String(httpStatus);
  return errorCode === INTERRUPTED ? OUTCOME_UNKNOWN : ERRORS[errorCode] ?? OF_READERS[errorCode] ?? "No response";
}

/** Whether the service died during the attempt, so that response and duration are unknown. */
export const isInterrupted = ({ errorCode }) => errorCode === INTERRUPTED;

/** The result within a sentence: "500 Internal Server Error", "timed out". */
export const resultInSentence = (attempt) => (attempt.httpStatus ? result(attempt) : within(result(attempt)));

/** The outcome of an attempt, in a sentence. */
export function outcomeOf(attempt) {
  const verb = succeeded(attempt) ? "succeeded" : isInterrupted(attempt) ? "was interrupted" : "failed";
  return `Attempt ${attempt.attemptNumber} ${verb}: ${resultInSentence(attempt)}.`;
}

/** The result in a few characters, for the timeline. */
export const shortResult = ({ httpStatus, errorCode, confirmed }) => (httpStatus ? String(httpStatus)
  : confirmed ? "confirmed" : errorCode ?? "–");
