// Why an attempt failed, in words, and what to do: the table that the service keeps for everybody who explains a failure.

const table = await (await fetch(new URL("./causes.json", import.meta.url))).json();
const causes = Object.fromEntries(table.map((advice) => [advice.cause, advice]));

/** The causes by status; the first range that holds it counts. */
const STATUSES = [
  [300, 399, "redirected"],
  [401, 401, "refused"],
  [403, 403, "refused"],
  [407, 407, "refused"],
  [404, 405, "not-there"],
  [410, 410, "gone"],
  [413, 413, "too-large"],
  [429, 429, "too-many"],
  [400, 499, "rejected"],
  [502, 504, "unavailable"],
  [500, 599, "broken"],
];

/** What is known of a failure: `{cause, meaning, remedy}`; nothing of an attempt that succeeded. */
export function causeOf({ httpStatus, error }) {
  if (httpStatus >= 200 && httpStatus < 300) return null;
  if (!httpStatus && !error) return null;
  const code = httpStatus
    ? STATUSES.find(([first, last]) => httpStatus >= first && httpStatus <= last)?.[2] ?? "unusual"
    : error.split(":")[0];
  return causes[code] ?? causes.connect;
}

/** What holds a whole webhook up: "disabled" or "paused". */
export const causeNamed = (code) => causes[code];
