// Why an attempt failed, in words, and what to do: the table that the service keeps for everybody who explains a failure.

const table = await (await fetch(new URL("./causes.json", import.meta.url))).json();

/** What holds a whole webhook up, "disabled" or "paused", or an attempt, by the code of the cause. */
export const causeNamed = (code) => table.find(({ cause }) => cause === code);

/** What is known of a failure: `{cause, meaning, remedy}`; nothing of an attempt that succeeded. */
export function causeOf({ httpStatus, error }) {
  if (httpStatus >= 200 && httpStatus < 300) return null;
  if (!httpStatus) return error ? causeNamed(error.split(":")[0]) ?? causeNamed("connect") : null;
  const has = ({ statuses = [] }) => statuses.some(([first, last]) => httpStatus >= first && httpStatus <= last);
  return table.find(has) ?? causeNamed("unusual");
}
