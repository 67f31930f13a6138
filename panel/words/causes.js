// The causes of failed attempts with their remedies, in the table that the agents' tools also use.
import table from "./causes.json" with { type: "json" };

/** The entry of a cause: of an attempt, or "disabled", "paused-by-owner" or "paused" of a whole webhook, or "held". */
export const causeNamed = (code) => table.find(({ cause }) => cause === code);

/** The entry `{cause, meaning, remedy}` for a failed attempt; `null` for a successful one. */
export function causeOf({ httpStatus, errorCode }) {
  if (httpStatus >= 200 && httpStatus < 300) return null;
  if (!httpStatus) return errorCode ? causeNamed(errorCode) ?? causeNamed("connect") : null;
  const has = ({ statuses = [] }) => statuses.some(([first, last]) => httpStatus >= first && httpStatus <= last);
  return table.find(has) ?? causeNamed("unusual");
}
