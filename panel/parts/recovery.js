// The dialog that recovers failed deliveries of a webhook: the person chooses a range, and sees its count first.
import { html, useState } from "./html.js";
import { get, post } from "../api.js";
import { Action } from "./action.js";
import { Check, SelectField } from "./field.js";
import { Dialog } from "./dialog.js";
import { Problem } from "./problem.js";
import { Waiting } from "./empty.js";
import { counted } from "./words.js";
import { say } from "./notices.js";
import { useAction, useLoad } from "./load.js";

const DAY = 86_400_000;
const PAGE_SIZE = 100;
const PAGES = 10;

/** Counts the deliveries of a webhook with these statuses, created at `since` or later; up to a thousand. */
export async function count(webhook, status, since) {
  let found = 0;
  let cursor;
  for (let page = 0; page < PAGES; page += 1) {
    const list = await get("/webhook/delivery/list",
      { webhookIdentifier: webhook, status, createdFrom: since, limit: PAGE_SIZE, cursor });
    found += list.items.length;
    cursor = list.nextCursor;
    if (!cursor) break;
  }
  return { found, exact: !cursor };
}

export const countWords = ({ found, exact }) =>
  `${exact ? "" : "more than "}${counted(found, "delivery", "deliveries")}`;

/** The numbers of failed deliveries, and of those that wait for their next attempt. */
async function counts(webhook, since) {
  const statuses = ["failed,cancelled", "pending,retrying"];
  const [failed, waiting] = await Promise.all(statuses.map((status) => count(webhook, status, since)));
  return { failed, waiting };
}

const sum = (one, other) => ({ found: one.found + other.found, exact: one.exact && other.exact });

const failedWords = (failed) =>
  failed.found
    ? `${countWords(failed)} failed or ${failed.found === 1 ? "was" : "were"} cancelled since then.`
    : "No delivery has failed since then.";

/** The ranges to recover, each with label, start and description. The first is proposed; the last is the widest. */
function rangesOf(webhook, delivery) {
  const day = new Date(Date.now() - DAY).toISOString();
  return [
    ...(delivery ? [{
      key: "delivery", label: "This delivery and later ones", since: delivery.createdDate,
      words: "this delivery, and all that were created at the same moment or later",
    }] : []),
    ...(webhook.createdDate < day ? [{
      key: "day", label: "The last 24 hours", since: day, words: "all that were created in the last 24 hours",
    }] : []),
    { key: "webhook", label: "Since the creation of the webhook", since: webhook.createdDate,
      words: "all since the creation of the webhook" },
  ];
}

/** The counts of the chosen range, or of the first. Without a choice, if none failed in the first, those of the widest. */
async function countedFor(webhook, ranges, chosen) {
  const first = ranges.find(({ key }) => key === chosen) ?? ranges[0];
  const found = await counts(webhook.id, first.since);
  if (chosen || found.failed.found || first === ranges.at(-1)) return { range: first, ...found };
  return { range: ranges.at(-1), ...(await counts(webhook.id, ranges.at(-1).since)) };
}

/** `delivery` is the delivery on whose page the dialog was opened, if any. */
export function Recovery({ webhook, delivery, close, done }) {
  const [both, include] = useState(true);
  const [ranges] = useState(() => rangesOf(webhook, delivery));
  const [chosen, choose] = useState(null);
  const found = useLoad(() => countedFor(webhook, ranges, chosen), [webhook.id, chosen]);
  const { failed, waiting, range } = found.data ?? {};
  const shown = range ?? ranges.find(({ key }) => key === chosen) ?? ranges[0];
  const total = failed && (both ? sum(failed, waiting) : failed);
  const recovery = useAction(async () => {
    const wanted = { since: range.since, include: both ? "both" : "failed" };
    const answer = await post(`/webhook/${encodeURIComponent(webhook.id)}/recover`, wanted);
    say(answer.count ? `${counted(answer.count, "delivery is", "deliveries are")} being sent again.` : answer.message);
    done?.();
    close();
  });
  return html`
    <${Dialog} title="Recover failed deliveries" close=${close}>
      <p>
        Failed and cancelled deliveries to <strong>${webhook.name}</strong> are sent again in the background, the oldest
        first: ${shown.words}.
      </p>
      ${ranges.length > 1 && html`
        <${SelectField} label="Range" value=${shown.key} change=${choose}
          options=${ranges.map(({ key, label }) => [key, label])} />`}
      ${found.loading && html`<${Waiting} what="Counting the deliveries" lines="1" />`}
      ${failed && html`<p role="status">${failedWords(failed)}</p>`}
      ${waiting?.found > 0 && html`
        <${Check} label="Attempt waiting deliveries now, too" value=${both} change=${include}
          hint="${countWords(waiting)} wait for the next attempt of the schedule, or for the end of a pause." />`}
      ${!webhook.enabled && html`<p class="note">The webhook is disabled. Enable it first; otherwise no delivery is sent.</p>`}
      <${Problem} refusal=${found.error ?? recovery.refusal} />
      <div class="dialog-actions">
        <button type="button" onClick=${close}>Cancel</button>
        ${total?.found > 0 && html`
          <${Action} kind="primary" scope="integrations.write" busy=${recovery.busy} onClick=${() => recovery.run()}>
            Recover ${countWords(total)}
          <//>`}
      </div>
    <//>`;
}
