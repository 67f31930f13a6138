// The dialog that recovers a webhook's failed deliveries: the person chooses a range, and first sees how many it
// contains.
import { html, useEffect, useState } from "./html.js";
import { post } from "../api.js";
import { Action } from "./action.js";
import { Check } from "./field.js";
import { Dialog } from "./dialog.js";
import { Problem } from "./problem.js";
import { Range, proposed, rangeOf, rangesFor } from "./recovery_range.js";
import { Waiting } from "./empty.js";
import { count, countSentence, countWords, isNone, sum } from "./counts.js";
import { say } from "./notices.js";
import { useAction, useLoad } from "./load.js";

/** The number of attempts after which a delivery gets no further ones. */
const MAX_ATTEMPTS = 100;
/** The wait, in milliseconds, up to which the service does not recover a delivery, since it is due soon anyway. */
const SHORT_WAIT_MS = 60_000;
/** The pause in typing after which a range is counted, in milliseconds. */
const TYPING_MS = 500;

/** The numbers of deliveries of a range that a recovery includes: failed or cancelled ones, and waiting ones. */
async function counts(webhook, { since, until }) {
  const range = { webhookIdentifier: webhook, createdFrom: since, createdUntil: until };
  const [failed, waiting] = await Promise.all([
    // Deliveries cancelled by their owner, or whose content was erased, are not recovered.
    count({ ...range, status: "failed,cancelled" }, ({ attemptCount, cancelReason, erasedDate }) =>
      attemptCount < MAX_ATTEMPTS && cancelReason !== "owner" && !erasedDate),
    count({ ...range, status: "pending,retrying" }, ({ nextAttemptDate, attemptCount }) =>
      attemptCount < MAX_ATTEMPTS && new Date(nextAttemptDate ?? 0) - Date.now() > SHORT_WAIT_MS),
  ]);
  return { failed, waiting };
}

/** The counts of the chosen range. Without a choice: of the proposed range, or of the widest if none failed in it. */
async function countedFor(webhook, ranges, chosen) {
  const range = chosen ?? proposed(ranges);
  if (!range.since) return null;
  const found = await counts(webhook.id, range);
  const widest = ranges.at(-1);
  if (chosen || !isNone(found.failed) || range === widest) return { range, ...found };
  return { range: widest, ...(await counts(webhook.id, widest)) };
}

/** The last value that did not change for a while. */
function useSettled(value, ms) {
  const [settled, become] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => become(value), ms);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

function failedWords(failed) {
  if (isNone(failed)) return "This range has no failed or cancelled deliveries to recover.";
  if (!failed.found) return "This range has too many deliveries to count. Narrow the range, or recover all of them.";
  return `${countSentence(failed)} in this range failed or ${failed.found === 1 ? "was" : "were"} cancelled.`;
}

const waitingWords = (waiting) => `${countSentence(waiting)} ${waiting.exact && waiting.found === 1 ? "is" : "are"} waiting ` +
  "for the next scheduled attempt or a pause to end.";

/** The service's response, in a sentence. */
const begun = ({ count: found, countIsExact, message }) => (found
  ? `${countSentence({ found, exact: countIsExact })} ${found === 1 ? "is" : "are"} being sent again.` : message);

/** `delivery` is the delivery on whose page the dialog was opened, if any. */
export function Recovery({ webhook, delivery, close, done }) {
  const [both, include] = useState(true);
  const [ranges] = useState(() => rangesFor(webhook, delivery));
  const [chosen, choose] = useState(null);
  const wanted = JSON.stringify(chosen && rangeOf(ranges, chosen));
  const settled = useSettled(wanted, chosen?.key === "between" ? TYPING_MS : 0);
  const found = useLoad(() => countedFor(webhook, ranges, JSON.parse(settled)), [webhook.id, settled]);
  const isCounting = found.loading || settled !== wanted;
  const { failed, waiting, range } = (!isCounting && found.data) || {};
  const total = failed && (both ? sum(failed, waiting) : failed);
  const recovery = useAction(async () => {
    const { since, until } = range;
    const answer = await post(`/webhook/${encodeURIComponent(webhook.id)}/recover`,
      { createdFrom: since, createdUntil: until, include: both ? "both" : "failed" });
    say(begun(answer));
    done?.();
    close();
  });
  return html`
    <${Dialog} title="Recover failed deliveries" close=${close}>
      <p>Failed and cancelled deliveries to <strong><bdi>${webhook.name}</bdi></strong> that were created in this range are
        sent again in the background, oldest first. Deliveries that someone cancelled, or whose content was erased, are
        skipped.</p>
      ${!webhook.enabled && html`<p class="note">The webhook is disabled. Enable it first, then recover its deliveries.</p>`}
      <${Range} ranges=${ranges} chosen=${chosen ?? { key: (range ?? proposed(ranges)).key }} choose=${choose} />
      ${isCounting && html`<${Waiting} what="Counting deliveries" lines="1" />`}
      <div role="status">${failed && html`<p>${failedWords(failed)}</p>`}</div>
      ${waiting && !isNone(waiting) && html`
        <${Check} label="Also send waiting deliveries now" value=${both} change=${include}
          hint=${waitingWords(waiting)} />`}
      <${Problem} refusal=${found.error ?? recovery.refusal} retry=${found.error && found.reload} />
      <div class="dialog-actions">
        <button type="button" onClick=${close}>Cancel</button>
        ${webhook.enabled && total && !isNone(total) && html`
          <${Action} kind="primary" scope="integrations.write" busy=${recovery.busy} onClick=${() => recovery.run()}>
            Recover ${total.found ? countWords(total) : "all"}
          <//>`}
      </div>
    <//>`;
}
