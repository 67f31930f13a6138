// What needs attention, on the first page: failed deliveries, webhooks whose deliveries do not arrive, subjects that wait, and
// feeds with unread deliveries; each with a link to the deliveries.
import { html } from "./html.js";
import { get } from "../api.js";
import { address } from "../address.js";
import { Badge } from "./badge.js";
import { Time } from "./time.js";
import { collect, countSentence } from "./counts.js";
import { needsAttention } from "./known.js";
import { forEachOf, useLoad } from "./load.js";
import { counted } from "./words.js";
import { healthOf } from "../words/health.js";
import { DELIVERY } from "../words/statuses.js";

/** The number of lines; the list of webhooks has the others. */
const MOST = 5;
/** The pages of a hundred deliveries that are read for a line. */
const PAGES = 3;
const DAY_MS = 86_400_000;
const OPEN = "pending,retrying";
/** The statuses of the deliveries to look at, by the state of their webhook. */
const AFFECTED = { failing: "failed,retrying", paused: OPEN, disabled: "failed,cancelled" };

/** When it began: that of its failures, if the service paused it for them. */
const since = ({ disabledDate, pausedSince, failingSince }) => disabledDate ?? pausedSince ?? failingSince;

const troubled = (webhook) => ({ ...healthOf(webhook), webhook, date: since(webhook), status: AFFECTED[webhook.deliveryState] });

/** A reading returns its line: `null` if there is certainly nothing to show, `undefined` if that is unknown. */
const none = (exact) => (exact ? null : undefined);

async function failed() {
  const createdFrom = new Date(Date.now() - DAY_MS).toISOString();
  const { items, exact } = await collect({ status: "failed", createdFrom }, PAGES);
  return items.length ? { ...DELIVERY.failed, status: "failed", period: "24h",
    text: `${countSentence({ found: items.length, exact })} of the last 24 hours failed` } : none(exact);
}

/** Subjects with a delivery that is retried, and another one that waits for it. */
async function held(webhook) {
  const { items, exact } = await collect({ webhookIdentifier: webhook.id, status: OPEN }, PAGES);
  const retried = new Set(items.filter(({ status }) => status === "retrying").map(({ subject }) => subject));
  const { size } = new Set(items.map(({ waitingFor, subject }) => waitingFor === "order" && retried.has(subject) && subject)
    .filter(Boolean));
  return size ? { ...DELIVERY.retrying, webhook, status: "retrying", text: `${exact ? "" : "At least "}${
    counted(size, "subject waits", "subjects wait")} for a delivery that failed` } : none(exact);
}

async function unread(webhook) {
  const { oldestUnreadDate: date } = await get(`/webhook/${webhook.id}`);
  return date ? { ...DELIVERY.pending, word: "Unread", webhook, date, status: OPEN } : null;
}

/** The lines of all readings; a failed reading has none. */
async function look(webhooks) {
  const enabled = webhooks.filter((webhook) => webhook.enabled);
  const readings = [
    failed,
    ...enabled.filter(({ order }) => order === "subject").map((webhook) => () => held(webhook)),
    ...enabled.filter(({ delivery }) => delivery === "pull").map((webhook) => () => unread(webhook)),
  ];
  const found = [];
  await forEachOf(readings.entries(), async ([at, read]) => { found[at] = await read().catch(() => undefined); });
  return found;
}

/** The lines, read once for each visit of the page; `isCalm` if every reading is complete and none has a line. */
export function useAttention(webhooks) {
  const { data: found = [] } = useLoad(async () => webhooks && look(webhooks), [Boolean(webhooks)]);
  const [first, ...others] = found;
  const lines = [first, ...(webhooks ?? []).filter(needsAttention).map(troubled), ...others].filter(Boolean);
  return { lines, isCalm: webhooks?.length > 0 && found.length > 0 && !lines.length && found.every((line) => line === null) };
}

/** The calm line, in the line of the title, so that the list keeps its height. */
export const Calm = ({ isCalm }) =>
  isCalm && html`<span class="faint">No webhook needs attention, and no delivery of the last 24 hours failed</span>`;

export const Attention = ({ lines }) => lines.length > 0 && html`
  <section class="attention" aria-label="What needs attention">
    <ul>${lines.slice(0, MOST).map((line) => html`<${Line} ...${line} />`)}</ul>
    ${lines.length > MOST && html`<p><a href="/panel/webhooks">${lines.length - MOST} more</a></p>`}
  </section>`;

const Line = ({ tone, icon, word, webhook, text, date, status, period }) => html`
  <li><${Badge} tone=${tone} icon=${icon}>${word}<//> ${webhook && html`<a href="/panel/webhooks/${webhook.id}"
    dir="auto">${webhook.name}</a>`} ${text}
    ${date && html`<span class="faint">since <${Time} date=${date} seconds=${false} /></span>`}
    <a href=${address("/deliveries", { status, webhook: webhook?.id, period })}>View deliveries</a></li>`;
