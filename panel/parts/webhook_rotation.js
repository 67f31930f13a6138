// The dialogs that rotate a signing secret, and that remove the old one before it expires.
import { html, useState } from "./html.js";
import { post, remove } from "../api.js";
import { Action } from "./action.js";
import { Dialog } from "./dialog.js";
import { Problem } from "./problem.js";
import { SecretDialog } from "./secret.js";
import { SelectField } from "./field.js";
import { Time } from "./time.js";
import { say } from "./notices.js";
import { useAction } from "./load.js";
import { PublicKeys } from "./webhook_keys.js";
import { OVERLAPS } from "../words/overlaps.js";

export function Rotation({ webhook, close }) {
  const [overlap, choose] = useState("86400");
  const [made, show] = useState(null);
  const rotate = useAction(async () =>
    show(await post(`/webhook/${encodeURIComponent(webhook.id)}/secret`, {
      overlapSeconds: Number(overlap),
      // Confirms the note below. Without it, the service refuses to end a secret early.
      ...(webhook.previousSecretExpiresDate && { endPrevious: true }),
    })));
  if (made) {
    return html`
      <${SecretDialog} title="New signing secret" close=${close} label="Signing secret"
        secret=${made.signingSecret}>
        <p>${overlap === "0" ? "The old secret has expired." : html`Until <strong>
          <${Time} date=${made.previousSecretExpiresDate} as="both" />
          </strong>, every request is signed with both secrets. Give the endpoint the new one before then.`}</p>
        <${PublicKeys} keys=${made.publicKeys} />
      <//>`;
  }
  return html`
    <${Dialog} title="Rotate the signing secret" close=${close}>
      <p>Requests are signed with a new secret and, for the time that you select, also with the old one. Give the
        endpoint the new secret within that time.${webhook.publicKeys &&
          " The key pair is replaced in the same way."}</p>
      ${webhook.previousSecretExpiresDate &&
        html`<p class="note">There are already two secrets. The older one is valid until${" "}
          <${Time} date=${webhook.previousSecretExpiresDate} as="both" />. If you rotate now, it stops working at
          once, and an endpoint with only that one refuses every event.</p>`}
      <${SelectField} label="Keep the old secret for" value=${overlap} change=${choose} options=${OVERLAPS} />
      <${Problem} refusal=${rotate.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="primary" scope="integrations.write" busy=${rotate.busy} onClick=${() => rotate.run()}>Rotate
        secret<//></div>
    <//>`;
}

export function Ending({ webhook, close, done }) {
  const end = useAction(async () => {
    const { message } = await remove(`/webhook/${encodeURIComponent(webhook.id)}/secret/previous`);
    say(message);
    close();
    await done();
  });
  return html`
    <${Dialog} title="Remove the old secret?" close=${close}>
      <p>Only the new secret will be used. An endpoint with only the old one then refuses every event.</p>
      <${Problem} refusal=${end.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="danger" scope="integrations.remove" busy=${end.busy} onClick=${() => end.run()}>
          Remove old secret
        <//></div>
    <//>`;
}
