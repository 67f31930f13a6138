// Resends selected deliveries. This continues while the person visits other pages; the frame shows the progress.
import { html, useEffect, useState } from "./html.js";
import { post } from "../api.js";
import { address, useHere } from "../address.js";
import { onSession, session } from "../session.js";
import { Icon } from "./icon.js";
import { counted } from "./words.js";
import { forEachOf } from "./load.js";
import { followResent, lastAttemptNumber } from "./resent.js";
import { succeeded } from "../words/results.js";

/**
 * The last resending, or `null`: the address of its view, the number of its deliveries, and the results by identifier:
 * "sending", "sent", "unread" for a feed, the `attempt` that followed, or a refusal. `phase` is "sending", "following"
 * or "over".
 */
let job = null;
const listeners = new Set();

function become(next) {
  job = next;
  listeners.forEach((listener) => listener(job));
}

export const dismissResending = () => become(null);

export function useResending() {
  const [current, show] = useState(job);
  useEffect(() => {
    show(job);
    listeners.add(show);
    return () => listeners.delete(show);
  }, []);
  return current;
}

// An ended session's deliveries do not belong to the next one.
onSession(() => { if (job && session().phase === "closed") dismissResending(); });

// Closing the tab would stop it halfway.
addEventListener("beforeunload", (event) => { if (job?.phase === "sending") event.preventDefault(); });

/** Resends deliveries of a view. `sent` is called with each that was sent, and `changed` when some have been attempted. */
export async function resendAll(view, items, { sent, changed }) {
  const mine = { number: Math.random() };
  const isCurrent = () => job?.mine === mine;
  const change = (more) => { if (isCurrent()) become({ ...job, ...more }); };
  const note = (id, result) => change({ results: new Map(job?.results).set(id, result) });
  become({ mine, view, count: items.length, results: new Map(), phase: "sending" });
  const resent = new Map();
  await forEachOf(items, async ({ id, url }) => {
    if (!isCurrent() || job.isStopped) return false;
    try {
      note(id, "sending");
      const delivery = await post(`/webhook/delivery/${encodeURIComponent(id)}/resend`);
      resent.set(id, lastAttemptNumber(delivery));
      note(id, url ? "sent" : "unread");
      sent(id);
    } catch (refusal) {
      note(id, refusal);
      // The rate limit is reached, or the service is down: the other requests would fail as well.
      if (refusal.status === 429 || refusal.isOutage) return false;
    }
    return true;
  });
  change({ phase: "following" });
  await changed();
  await followResent(resent, (ended) => {
    ended.forEach((attempt, id) => note(id, { attempt }));
    return changed();
  }, isCurrent);
  change({ phase: "over" });
}

/** Sends no further delivery. */
export const stopResending = () => become(job && { ...job, isStopped: true });

/** Summarizes results: the number of deliveries that were resent, their outcomes, and the count of each refusal. */
export function summary(results) {
  const all = [...results.values()];
  const refusals = new Map();
  for (const { detail } of all.filter((result) => result.detail)) refusals.set(detail, (refusals.get(detail) ?? 0) + 1);
  const made = all.filter(({ attempt }) => attempt);
  const delivered = made.filter(({ attempt }) => succeeded(attempt)).length;
  const [waiting, unread] = ["sent", "unread"].map((state) => all.filter((result) => result === state).length);
  return { sent: made.length + waiting + unread, refused: all.filter((result) => result.detail).length, refusals: [...refusals],
    outcomes: { delivered, failed: made.length - delivered, waiting, unread } };
}

/** "3 delivered, 1 failed." */
export const outcomeWords = ({ delivered, failed, waiting, unread }) => `${[
  delivered && `${delivered} delivered`, failed && `${failed} failed`, waiting && `${waiting} not attempted yet`,
  unread && `${unread} waiting for a reader`,
].filter(Boolean).join(", ")}.`;

/** The progress, on every page except that of the resending itself. */
export function Resending() {
  const current = useResending();
  const { parts, query: { live, ...rest } } = useHere();
  if (!current || current.view === address(`/${parts.join("/") || "deliveries"}`, rest)) return null;
  const { sent, refused, outcomes } = summary(current.results);
  const isSending = current.phase === "sending";
  return html`
    <p class="note" role=${isSending ? undefined : "status"}><${Icon} name="resend" /> ${isSending ? `Resending: ${sent + refused} of ${current.count}.`
      : `${counted(sent, "delivery", "deliveries")} resent.`} ${!isSending && sent > 0 && outcomeWords(outcomes)}
      ${refused > 0 && ` ${counted(refused, "delivery was", "deliveries were")} not resent.`}${" "}
      <a href=${current.view}>Show them</a>${" "}
      ${isSending ? html`<button type="button" class="small" onClick=${stopResending}>Stop</button>`
        : html`<button type="button" class="small" onClick=${dismissResending}>Close</button>`}</p>`;
}
