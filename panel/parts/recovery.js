// "Recover everything that failed at this webhook since": how many they are comes first.
import { html, useState } from "./html.js";
import { get, post } from "../api.js";
import { Action } from "./action.js";
import { Check } from "./field.js";
import { Dialog } from "./dialog.js";
import { Problem } from "./problem.js";
import { Time } from "./time.js";
import { Waiting } from "./empty.js";
import { counted } from "./words.js";
import { say } from "./notices.js";
import { useAction, useLoad } from "./load.js";

const AT_ONCE = 100;
const PAGES = 10;

/** How many deliveries to a webhook stand so, made at a time or later; counted to a thousand. */
export async function count(webhook, status, since) {
  let [found, cursor] = [0, undefined];
  for (let page = 0; page < PAGES; page += 1) {
    const list = await get("/webhook/delivery/list",
      { webhookIdentifier: webhook, status, createdFrom: since, limit: AT_ONCE, cursor });
    found += list.items.length;
    cursor = list.nextCursor;
    if (!cursor) break;
  }
  return { found, exact: !cursor };
}

export const countWords = ({ found, exact }) =>
  `${exact ? "" : "more than "}${counted(found, "delivery", "deliveries")}`;

/** How many there are to recover of those that failed, and of those that wait for their next attempt. */
async function counts(webhook, since) {
  const statuses = ["failed,cancelled", "pending,retrying"];
  const [failed, waiting] = await Promise.all(statuses.map((status) => count(webhook, status, since)));
  return { failed, waiting };
}

const sum = (one, other) => ({ found: one.found + other.found, exact: one.exact && other.exact });

const failedWords = (failed) =>
  failed.found
    ? `${countWords(failed)} failed or ${failed.found === 1 ? "was" : "were"} cancelled since then.`
    : "None has failed since then.";

export function Recovery({ webhook, since, close, done }) {
  const [both, include] = useState(true);
  const found = useLoad(() => counts(webhook.id, since), [webhook.id, since]);
  const { failed, waiting } = found.data ?? {};
  const total = failed && (both ? sum(failed, waiting) : failed);
  const recovery = useAction(async () => {
    const wanted = { since, include: both ? "both" : "failed" };
    const answer = await post(`/webhook/${encodeURIComponent(webhook.id)}/recover`, wanted);
    say(answer.count ? `${counted(answer.count, "delivery is", "deliveries are")} being sent again.` : answer.message);
    done?.();
    close();
  });
  return html`
    <${Dialog} title="Recover what failed" close=${close}>
      <p>
        Everything to <strong>${webhook.name}</strong> that has failed or was cancelled, and was created on${" "}
        <${Time} date=${since} /> or later, is sent again: the oldest first, in the background.
      </p>
      ${found.loading && html`<${Waiting} what="They are counted" lines="1" />`}
      ${failed && html`<p role="status">${failedWords(failed)}</p>`}
      ${waiting?.found > 0 && html`
        <${Check} label="Attempt now what waits, too" value=${both} change=${include}
          hint="${countWords(waiting)} would else wait for the next attempt of the schedule, or for the end of a pause." />`}
      ${!webhook.enabled && html`<p class="note">The webhook is disabled. Enable it first, or nothing is sent.</p>`}
      <${Problem} refusal=${found.error ?? recovery.refusal} />
      <div class="dialog-actions">
        <button type="button" onClick=${close}>Leave it</button>
        ${total?.found > 0 && html`
          <${Action} kind="primary" scope="integrations.write" busy=${recovery.busy} onClick=${() => recovery.run()}>
            Recover ${countWords(total)}
          <//>`}
      </div>
    <//>`;
}
