// The outcome of resent deliveries: each is reread until its next attempt has ended.
import { html } from "./html.js";
import { get } from "../api.js";
import { Icon } from "./icon.js";
import { Time } from "./time.js";
import { forEachOf } from "./load.js";
import { outcomeOf, succeeded } from "../words/results.js";

/**
 * The pauses between the readings, in milliseconds. A delivery with a longer wait, such as for a reader, is not
 * followed.
 */
const PAUSES_MS = [1000, 1000, 2000, 4000, 8000, 16_000, 30_000];

/** The number of the last attempt that has ended. */
export const lastAttemptNumber = ({ attempts }) => attempts.at(-1)?.attemptNumber ?? 0;

/** The first attempt after the one with this number, if it has ended. */
export const attemptAfter = ({ attempts }, number) => attempts.find(({ attemptNumber }) => attemptNumber > number);

/**
 * Calls `report` with the attempts of resent deliveries, by their identifiers, whenever some have ended. `resent`
 * contains the number of the last attempt before the resend of each. Stops when `isWanted` returns `false`.
 */
export async function followResent(resent, report, isWanted) {
  const open = new Map(resent);
  for (const pause of PAUSES_MS) {
    await new Promise((proceed) => setTimeout(proceed, pause));
    const ended = new Map();
    await forEachOf(open, async ([id, number]) => {
      if (!isWanted()) return false;
      // A failed call is repeated after the next pause.
      const delivery = await get(`/webhook/delivery/${encodeURIComponent(id)}`).catch(() => null);
      const attempt = delivery && attemptAfter(delivery, number);
      if (attempt) ended.set(id, attempt);
      return true;
    });
    if (!isWanted()) return;
    for (const id of ended.keys()) open.delete(id);
    if (ended.size) await report(ended);
    if (!open.size) return;
  }
}

/**
 * How long, and how often, the page of a delivery polls after a resend: pairs of a time since the resend and an
 * interval, in ms.
 */
const PACES_MS = [[10_000, 1000], [30_000, 2000], [120_000, 5000]];

/** The interval at which the page of a delivery polls some time after a resend; `null` when that time is over. */
export const paceAfter = (since) => PACES_MS.find(([end]) => Date.now() - since < end)?.[1] ?? null;

/** The outcome of a resend. `resent` contains its time and the number of the last attempt before it. */
export function ResendOutcome({ resent, delivery }) {
  const attempt = resent && attemptAfter(delivery, resent.number);
  const isLate = resent && !attempt && paceAfter(resent.time) === null;
  // The live region must exist before its content for screen readers to announce it.
  return html`
    <div role="status" class="resent">${resent && html`
      <p class="note"><${Icon} name=${attempt ? (succeeded(attempt) ? "delivered" : "failed") : "pending"} />${" "}
        Resent at <${Time} date=${new Date(resent.time).toISOString()} as="clock" />. ${attempt
        ? html`<strong>${outcomeOf(attempt)}</strong>`
        : delivery.waitingFor === "breaker" ? "Another attempt is checking the paused webhook. This one follows."
        : isLate ? "It has not been attempted yet. The status below says what it is waiting for."
        : resent.isPushed ? `Waiting for the response to attempt ${resent.number + 1}…` : "Waiting for a reader of the feed…"}</p>`}
    </div>`;
}
