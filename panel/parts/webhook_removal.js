// The dialog that removes a webhook, with the number of its open deliveries.
import { html } from "./html.js";
import { remove } from "../api.js";
import { go } from "../address.js";
import { Action } from "./action.js";
import { Dialog } from "./dialog.js";
import { OpenDeliveries } from "./open_deliveries.js";
import { Problem } from "./problem.js";
import { say } from "./notices.js";
import { useAction } from "./load.js";

export function Removal({ webhook, close }) {
  const removal = useAction(async () => {
    const { message } = await remove(`/webhook/${encodeURIComponent(webhook.id)}`);
    say(message);
    go("/panel/webhooks");
  });
  return html`
    <${Dialog} title=${html`Remove <bdi>${webhook.name}</bdi>?`} close=${close}>
      <${OpenDeliveries} webhook=${webhook} fate="Open deliveries are cancelled, and cannot be recovered." />
      <p>${webhook.eventUrl
        ? html`Events are no longer sent to <code class="break">${webhook.eventUrl}</code>.`
        : "Its feed gets no more events."} This cannot be undone. To stop
        the webhook for a while, disable it instead.</p>
      <${Problem} refusal=${removal.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="danger" scope="integrations.remove" busy=${removal.busy} onClick=${() => removal.run()}>
          Remove webhook
        <//></div>
    <//>`;
}
