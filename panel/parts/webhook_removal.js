// A webhook is removed: what is still open to it is said first.
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
      ${open.loading && html`<${Waiting} what="What is open is counted" lines="1" />`}
      ${open.data && html`<p role="status">
        ${none ? "Nothing is on its way to it." : html`<strong>${countWords(open.data)}
        </strong> to it ${open.data.found === 1 ? "is" : "are"} still open, and will be cancelled for good.`}</p>`}
      <p>Nothing more is sent to <code class="break">${webhook.eventUrl}
        </code>. This cannot be undone. To stop for a while, disable it instead.</p>
      <${Problem} refusal=${open.error ?? removal.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Keep it</button>
        <${Action} kind="danger" scope="integrations.remove" busy=${removal.busy} onClick=${() => removal.run()}>Remove
        it<//></div>
    <//>`;
}
