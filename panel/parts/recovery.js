// "Recover everything that failed at this webhook since": how many they are comes first.
import { html } from "./html.js";
import { get, post } from "../api.js";
import { Action } from "./action.js";
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
    const list = await get("/webhook/delivery/list", { webhookIdentifier: webhook, status, createdFrom: since, limit: AT_ONCE, cursor });
    found += list.items.length;
    cursor = list.nextCursor;
    if (!cursor) break;
  }
  return { found, exact: !cursor };
}

export const countWords = ({ found, exact }) => `${exact ? "" : "more than "}${counted(found, "delivery", "deliveries")}`;

export function Recovery({ webhook, since, close, done }) {
  const failed = useLoad(() => count(webhook.id, "failed,cancelled", since), [webhook.id, since]);
  const recovery = useAction(async () => {
    const answer = await post(`/webhook/${encodeURIComponent(webhook.id)}/recover`, { since, include: "failed" });
    say(answer.count ? `${counted(answer.count, "delivery is", "deliveries are")} being sent again.` : answer.message);
    done?.();
    close();
  });
  const none = failed.data?.found === 0 && failed.data.exact;
  return html`
    <${Dialog} title="Recover what failed" close=${close}>
      <p>Everything to <strong>${webhook.name}</strong> that has failed or was cancelled, and was created on <${Time} date=${since} /> or later, is sent again: the oldest first, in the background.</p>
      ${failed.loading && html`<${Waiting} what="They are counted" lines="1" />`}
      ${failed.data && html`<p class="count" role="status">${none ? "There is none: everything since then was delivered or is under way." : html`<strong>${countWords(failed.data)}</strong> will be sent again.`}</p>`}
      ${!webhook.enabled && html`<p class="note">The webhook is disabled. Enable it first, or nothing is sent.</p>`}
      <${Problem} refusal=${failed.error ?? recovery.refusal} />
      <div class="dialog-actions">
        <button type="button" onClick=${close}>Leave it</button>
        ${!none && html`<${Action} kind="primary" scope="integrations.write" busy=${recovery.busy || failed.loading} onClick=${() => recovery.run()}>${failed.data ? `Recover ${countWords(failed.data)}` : "Recover"}<//>`}
      </div>
    <//>`;
}
