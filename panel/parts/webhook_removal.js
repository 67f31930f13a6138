// The dialog that removes a webhook, with the number of its open deliveries.
import { html } from "./html.js";
import { remove } from "../api.js";
import { go } from "../address.js";
import { Action } from "./action.js";
import { Dialog } from "./dialog.js";
import { Problem } from "./problem.js";
import { Waiting } from "./empty.js";
import { count, countWords } from "./recovery.js";
import { say } from "./notices.js";
import { useAction, useLoad } from "./load.js";

export function Removal({ webhook, close }) {
  const open = useLoad(() => count(webhook.id, "pending,retrying"), [webhook.id]);
  const removal = useAction(async () => {
    const { message } = await remove(`/webhook/${encodeURIComponent(webhook.id)}`);
    say(message);
    go("/panel/webhooks");
  });
  const none = open.data?.found === 0;
  return html`
    <${Dialog} title="Remove ${webhook.name}?" close=${close}>
      ${open.loading && html`<${Waiting} what="Counting the open deliveries" lines="1" />`}
      ${open.data && html`<p role="status">
        ${none ? "It has no open deliveries." : html`<strong>${countWords(open.data)}
        </strong> to it ${open.data.found === 1 ? "is" : "are"} still open, and will be cancelled permanently.`}</p>`}
      <p>No events are sent any more to <code class="break">${webhook.eventUrl}
        </code>. This cannot be undone. To stop it temporarily, disable it instead.</p>
      <${Problem} refusal=${open.error ?? removal.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Keep it</button>
        <${Action} kind="danger" scope="integrations.remove" busy=${removal.busy} onClick=${() => removal.run()}>Remove
        it<//></div>
    <//>`;
}
