// The dialog that cancels an open delivery.
import { html } from "./html.js";
import { post } from "../api.js";
import { Action } from "./action.js";
import { Dialog } from "./dialog.js";
import { Problem } from "./problem.js";
import { say } from "./notices.js";
import { useAction } from "./load.js";

/** `cancelled` is called after the delivery was cancelled. */
export function Cancelling({ delivery, close, cancelled }) {
  const cancelling = useAction(async () => {
    await post(`/webhook/delivery/${encodeURIComponent(delivery.id)}/cancel`);
    say("The delivery was cancelled.");
    close();
    await cancelled();
  });
  return html`
    <${Dialog} title="Cancel this delivery?" close=${close}>
      <p>No more attempts are made, and “Recover failed deliveries” skips it. You can still resend it.</p>
      <${Problem} refusal=${cancelling.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Keep</button>
        <${Action} kind="danger" scope="integrations.write" busy=${cancelling.busy} onClick=${() => cancelling.run()}>
          Cancel delivery
        <//></div>
    <//>`;
}
