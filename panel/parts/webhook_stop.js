// How a webhook is stopped: for a while, or for good.
import { html } from "./html.js";
import { Action } from "./action.js";
import { Card } from "./card.js";

export const Stop = ({ webhook: { enabled }, enable, remove }) => html`
  <${Card} title="Stop">
    <div class="choice">
      <p>${enabled
        ? "Disabled, it is sent nothing, and what is published meanwhile makes no delivery to it. It can be enabled again."
        : "It is disabled. Enabled, it is sent what is published from then on."}</p>
      <${Action} scope="integrations.write" busy=${enable.busy} onClick=${() => enable.run(!enabled)}>
        ${enabled ? "Disable" : "Enable"}
      <//>
    </div>
    <div class="choice">
      <p>Removed, it is gone for good. Its deliveries can be read for as long as they are kept, and not be sent again.</p>
      <${Action} kind="danger" scope="integrations.remove" onClick=${remove}>Remove …<//>
    </div>
  <//>`;
