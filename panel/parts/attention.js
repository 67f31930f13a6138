// The items on the first page that need attention: failed deliveries, webhooks whose deliveries are not arriving,
// subjects on hold, and feeds with unread deliveries, each with a link to the deliveries.
import { html, useState } from "./html.js";
import { get } from "../api.js";
import { address } from "../address.js";
import { Badge } from "./badge.js";
import { Time } from "./time.js";
import { collect, countSentence } from "./counts.js";
import { needsAttention } from "./known.js";
import { forEachOf, useLoad, usePolling } from "./load.js";
import { counted } from "./words.js";
import { healthOf } from "../words/health.js";
import { DELIVERY } from "../words/statuses.js";

/** The number of lines that are shown at first. */
const MOST = 5;
/** The number of pages, of a hundred deliveries each, that are read for a line. */
const PAGES = 3;
/** The number of ordered webhooks, and of feeds, that are read. */
const WEBHOOKS = 20;
const AGAIN_MS = 60_000;
const HOUR_MS = 3_600_000;
const OPEN = "pending,retrying";
/** The statuses of the deliveries to examine, by the state of their webhook. */
const AFFECTED = { failing: "failed,retrying", paused: OPEN, disabled: "failed,cancelled" };

/** When it began: when its failures began, if the service paused it because of them. */
const since = ({ disabledDate, pausedSince, failingSince }) => disabledDate ?? pausedSince ?? failingSince;

const troubled = (webhook) => ({ ...healthOf(webhook), webhook, date: since(webhook), status: AFFECTED[webhook.deliveryState] });

/** A reading returns its line, `null` if there is certainly nothing to show, or `undefined` if that is unknown. */
const none = (exact) => (exact ? null : undefined);

const ago = (hours) => new Date(Date.now() - hours * HOUR_MS).toISOString();

/** A delivery fails days after its creation, when its retries are used up. */
async function failed() {
  const { items, exact } = await collect({ status: "failed", createdFrom: ago(7 * 24) }, PAGES);
  const found = items.filter(({ test, lastUpdate }) => !test && lastUpdate > ago(24)).length;
  return found ? { ...DELIVERY.failed, status: "failed", period: "7d",
    text: `${countSentence({ found, exact })} failed in the last 24 hours` } : none(exact);
}

/** Subjects with a delivery that is being retried, and another one that waits for it. */
async function held(webhook) {
  const of = (status) => collect({ webhookIdentifier: webhook.id, status }, PAGES);
  const retried = await of("retrying");
  if (!retried.items.length) return none(retried.exact);
  const { items, exact } = await of("pending");
  const subjects = new Set(retried.items.map(({ subject }) => subject));
  const { size } = new Set(items.filter(({ waitingFor, subject }) => waitingFor === "order" && subjects.has(subject))
    .map(({ subject }) => subject));
  return size ? { ...DELIVERY.retrying, webhook, status: "retrying", text: `${exact && retried.exact ? "" : "At least "}${
    counted(size, "subject is waiting", "subjects are waiting")} for a delivery that failed` } : none(exact && retried.exact);
}

/** A reader may come every few minutes. */
async function unread(webhook) {
  const { oldestUnreadDate: date } = await get(`/webhook/${webhook.id}`);
  return date < ago(1) ? { ...DELIVERY.pending, word: "Unread", webhook, date, status: OPEN } : null;
}

/** The lines of all readings; a failed reading has none. */
async function look(webhooks) {
  const enabled = webhooks.filter((webhook) => webhook.enabled);
  const of = (wanted, read) => {
    const found = enabled.filter(wanted);
    const readings = found.slice(0, WEBHOOKS).map((webhook) => () => read(webhook));
    return found.length > WEBHOOKS ? [...readings, async () => undefined] : readings;
  };
  const readings = [
    failed,
    ...of(({ order }) => order === "subject", held),
    ...of(({ delivery, temporary }) => delivery === "pull" && !temporary, unread),
  ];
  const found = [];
  await forEachOf(readings.entries(), async ([at, read]) => { found[at] = await read().catch(() => undefined); });
  return found;
}

/** The lines, read again every minute; `isCalm` if every reading is complete and none has a line. */
export function useAttention(webhooks) {
  const { data: found = [], reload } = useLoad(async () => webhooks && look(webhooks), [Boolean(webhooks)]);
  usePolling(reload, AGAIN_MS, Boolean(webhooks));
  const [first, ...others] = found;
  const lines = [first, ...(webhooks ?? []).filter(needsAttention).map(troubled), ...others].filter(Boolean);
  return { lines, isCalm: webhooks?.length > 0 && found.length > 0 && !lines.length && found.every((line) => line === null) };
}

/** The calm line, next to the title, so that the list keeps its height. */
export const Calm = ({ isCalm }) =>
  isCalm && html`<span class="faint">No webhook needs attention, and no delivery failed in the last 24 hours</span>`;

export function Attention({ lines }) {
  const [most, show] = useState(MOST);
  return lines.length > 0 && html`
    <section class="attention" aria-label="What needs attention">
      <ul>${lines.slice(0, most).map((line) => html`<${Line} key=${`${line.webhook?.id} ${line.word}`} ...${line} />`)}</ul>
      ${lines.length > most && html`<button type="button" class="link" onClick=${() => show(Infinity)}>${
        lines.length - most} more</button>`}
    </section>`;
}

const Line = ({ tone, icon, word, webhook, text, date, status, period }) => html`
  <li><${Badge} tone=${tone} icon=${icon}>${word}<//> ${webhook && html`<a href="/panel/webhooks/${webhook.id}"
    dir="auto">${webhook.name}</a>`} ${text}
    ${date && html`<span class="faint">since <${Time} date=${date} seconds=${false} /></span>`}
    <a href=${address("/deliveries", { status, webhook: webhook?.id, period })}>View deliveries</a></li>`;
