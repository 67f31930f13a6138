// The trouble of a webhook, with cause and remedy; empty for a healthy webhook.
import { html } from "./html.js";
import { Action } from "./action.js";
import { Icon } from "./icon.js";
import { Trouble } from "./webhook_trouble.js";
import { Why } from "./why.js";
import { causeNamed, causeOf } from "../words/causes.js";
import { WEBHOOK } from "../words/statuses.js";

const HEADLINES = {
  active: "The last attempts failed",
  failing: "The endpoint is failing",
  paused: "Paused: the endpoint does not respond",
  disabled: "Disabled",
};

/** A webhook that is active but failed recently is shown as failing. */
const shown = (deliveryState) => (deliveryState === "active" ? WEBHOOK.failing : WEBHOOK[deliveryState]);

export function Health({ webhook, resume, enable, recover }) {
  const { deliveryState, failuresInRow, lastHttpStatus, lastError } = webhook;
  if (deliveryState === "active" && !failuresInRow) return null;
  const failure = { httpStatus: lastHttpStatus, error: lastError };
  const cause = deliveryState === "disabled" ? causeNamed("disabled") : causeOf(failure);
  const { tone, icon } = shown(deliveryState);
  return html`
    <section class="verdict ${tone}" aria-label="Trouble">
      <span class="medal"><${Icon} name=${icon} /></span>
      <div>
        <h2>${HEADLINES[deliveryState]}</h2>
        <${Trouble} webhook=${webhook} />
        ${cause && html`<${Why} cause=${cause} />`}
        <div class="form-actions">
          ${deliveryState === "paused" && html`
            <${Action} scope="integrations.write" busy=${resume.busy} onClick=${() => resume.run()}>
              End the pause now
            <//>`}
          ${deliveryState === "disabled" && html`
            <${Action} kind="primary" scope="integrations.write" busy=${enable.busy} onClick=${() => enable.run(true)}>
              Enable
            <//>`}
          <${Action} icon="retrying" scope="integrations.write" onClick=${recover}>Recover failed deliveries …<//>
        </div>
      </div>
    </section>`;
}
