// How many of a webhook's deliveries are waiting, and for what; for a feed, how many are unread, and since when.
import { html } from "./html.js";
import { address } from "../address.js";
import { Card } from "./card.js";
import { Problem } from "./problem.js";
import { Countdown, Time, isOver } from "./time.js";
import { collect } from "./counts.js";
import { useLoad, usePolling } from "./load.js";
import { LANGUAGE } from "./words.js";
import { reasonsOf } from "../words/waiting.js";

/** The number of pages, of a hundred deliveries each, that are read for the numbers. */
const PAGES = 3;
const RELOAD_MS = 15_000;

const number = new Intl.NumberFormat(LANGUAGE);

export function WaitingDeliveries({ webhook }) {
  const open = useLoad(() => collect({ webhookIdentifier: webhook.id, status: "pending,retrying" }, PAGES),
    [webhook.id, webhook.version, webhook.deliveryState], { keep: true });
  usePolling(open.reload, RELOAD_MS, Boolean(open.data) && !open.error);
  if (!open.data && !open.error) return null;
  const { items = [], exact } = open.data ?? {};
  return html`
    <${Card} title="Waiting deliveries">
      <${Problem} refusal=${open.error} retry=${open.reload} />
      ${webhook.delivery === "pull" && html`<${Unread} webhook=${webhook} />`}
      ${open.data && (items.length > 0 ? html`
        <ul class="waits">${groups(items, webhook).map(([reason, words, those]) => html`
          <li key=${reason}><strong>${exact ? "" : "At least "}${number.format(those.length)}</strong>${" "}
            ${exact && those.length === 1 ? "is" : "are"} waiting ${words}<${End}
            ...${{ reason, those, exact, webhook }} /></li>`)}</ul>
        <p class="fine">${!exact && "Only the newest open deliveries were counted. "}<a href=${address("/deliveries",
          { webhook: webhook.id, status: "pending,retrying" })}>Show the open deliveries</a></p>`
        : html`<p class="faint">${exact ? "No delivery is waiting." : "No open delivery was found among the newest."}</p>`)}
    <//>`;
}

/** The deliveries grouped by the reason for their wait, as `[reason, words, deliveries]`, in the order of the words. */
function groups(items, webhook) {
  const all = Object.entries(reasonsOf(webhook)).map(([reason, words]) =>
    [reason, words, items.filter(({ waitingFor = "sending" }) => waitingFor === reason)]);
  return all.filter(([, , those]) => those.length > 0);
}

/**
 * When the wait ends, or the next attempt is due. The list is newest first, so the earliest is known only if the
 * list is complete.
 */
function End({ reason, those, exact, webhook }) {
  if (reason === "pause") {
    return webhook.pausedUntil ? html`, <${Time} date=${webhook.pausedUntil} as="both" />` : ": when someone resumes the webhook";
  }
  const first = those.map(({ nextAttemptDate }) => nextAttemptDate).filter(Boolean).sort()[0];
  const next = reason === "breaker" ? webhook.pausedUntil ?? first : exact && reason !== "sending" && first;
  if (!next || isOver(next)) return null;
  return html`; ${reason === "breaker" ? "next check" : "the first"} <${Countdown} before="in " brief until=${next} />${" "}
    (<${Time} date=${next} as="clock" />)`;
}

const Unread = ({ webhook: { lastReadDate, oldestUnreadDate } }) => html`
  <p>${oldestUnreadDate ? html`The oldest unread delivery is from <strong><${Time} date=${oldestUnreadDate} as="both" /></strong>.`
    : "Every delivery in the feed was read."} The feed was ${lastReadDate
    ? html`last read <${Time} date=${lastReadDate} as="distance" />` : "never read"}.</p>`;
