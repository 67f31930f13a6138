// The page for a new webhook: its form, then its signing secret and the first test event.
import { html, useState } from "../parts/html.js";
import { post } from "../api.js";
import { go, mayLeave } from "../address.js";
import { Action, LinkButton } from "../parts/action.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { PublicKeys } from "../parts/webhook_keys.js";
import { Secret } from "../parts/secret.js";
import { BLANK, FIELDS, WebhookFields, finished } from "../parts/webhook_form.js";
import { Guide } from "../parts/guide.js";
import { useFaultFocus } from "../parts/focus.js";
import { useUnsaved } from "../parts/unsaved.js";
import { useAction } from "../parts/load.js";

export default function NewWebhook() {
  const [form, change] = useState(BLANK);
  const [made, show] = useState(null);
  useUnsaved(form, BLANK, Boolean(made));
  const create = useAction(async () => show(await post("/webhook", finished(form))));
  const box = useFaultFocus(create);
  const submit = (event) => {
    event.preventDefault();
    create.run();
  };
  if (made) return html`<${Made} webhook=${made} />`;
  return html`
    <${Page} title="New webhook" above=${html`<a href="/panel/webhooks">Webhooks</a>`}
      lead=${html`Events are signed and sent to its address as they happen. <${Guide}>How to receive them<//>`}>
      <form class="form card" onSubmit=${submit} noValidate ref=${box}>
        <${WebhookFields} form=${form} change=${change} refusal=${create.refusal} forgive=${create.forgive} />
        <${Problem} refusal=${create.refusal} beside=${FIELDS} />
        <div class="form-actions"><${Action} type="submit" kind="primary" scope="integrations.write"
          busy=${create.busy}>Create webhook<//> <a href="/panel/webhooks">Cancel</a></div>
      </form>
    <//>`;
}

function Made({ webhook }) {
  const test = useAction(async () => {
    const { deliveryIdentifier } = await post(`/webhook/${encodeURIComponent(webhook.id)}/test`);
    go(`/panel/deliveries/${deliveryIdentifier}`);
  });
  return html`
    <${Page} title=${html`<bdi>${webhook.name}</bdi> was created`} window="${webhook.name} was created"
      above=${html`<a href="/panel/webhooks">Webhooks</a>`}>
      <section class="card">
        <${Secret} label="Signing secret" secret=${webhook.signingSecret}>
          <p>${webhook.eventUrl
            ? html`Give it to the endpoint at <code class="break">${webhook.eventUrl}</code>. With it, the endpoint verifies`
            : "Give it to the program that reads the feed. With it, the program verifies"} that a request comes from this
            service. <${Guide}>How to verify
            requests<//></p>
          ${webhook.publicKeys && html`<p>Or give it the public key, which also verifies requests and is not secret. The
            webhook’s page shows it again.</p>`}
          <${PublicKeys} keys=${webhook.publicKeys} />
        <//>
        <h2>Next: send a test event</h2>
        <p>A test event is signed and sent like any other event. You then see the endpoint’s response.</p>
        <${Problem} refusal=${test.refusal} />
        <div class="form-actions">
          <${Action} kind="primary" scope="integrations.write" icon="resend" busy=${test.busy}
            onClick=${() => mayLeave() && test.run()}>Send a test event<//>
          <${LinkButton} to="/panel/webhooks/${webhook.id}">Open webhook<//>
        </div>
      </section>
    <//>`;
}
