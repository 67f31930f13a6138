// An application's secrets and public keys: when each was last used, and removing them.
import { html, useState } from "./html.js";
import { remove } from "../api.js";
import { Action } from "./action.js";
import { Card } from "./card.js";
import { Dialog } from "./dialog.js";
import { NewKey } from "./new_key.js";
import { Problem } from "./problem.js";
import { Time, dayOf, isOver } from "./time.js";
import { focusTitle } from "./focus.js";
import { say } from "./notices.js";
import { useAction } from "./load.js";

export function Credentials({ application, path, reload, rotate }) {
  const [asked, ask] = useState(null);
  const { secrets, publicKeys } = application;
  const close = () => ask(null);
  return html`
    <${Card} title="Secrets and keys">
      <table class="list small">
        <caption class="unseen">Secrets and keys</caption>
        <thead><tr><th scope="col">Credential</th><th scope="col">Created</th><th scope="col">Last used</th>
          <th scope="col">Status</th><th scope="col"><span class="unseen">Remove</span></th></tr></thead>
        <tbody>
          ${secrets.map((secret) => html`<${Row} key=${secret.id} kind="Secret" name=${secret.id} credential=${secret}
            end=${() => ask({ kind: "secret", name: secret.id })} />`)}
          ${publicKeys.map((key) => html`<${Row} key=${key.kid} kind="Public key" name=${key.kid} credential=${key}
            end=${() => ask({ kind: "key", name: key.kid })} />`)}
          ${secrets.length + publicKeys.length === 0 && html`<tr>
            <td colSpan="5" class="faint">The application has no credentials and cannot get tokens. Create a secret, or add a key.</td></tr>`}
        </tbody>
      </table>
      <div class="form-actions"><${Action} icon="key" scope="account.write" onClick=${rotate}>
        ${secrets.length ? "Rotate secret" : "Create secret"}
        <//> <${Action} icon="plus" scope="account.write" onClick=${() => ask({ add: true })}>Add public key…<//>
        </div>
      ${asked?.add && html`<${NewKey} path=${path} close=${close} done=${reload} />`}
      ${asked?.kind && html`<${End} ...${asked} path=${path} close=${close} done=${reload} />`}
    <//>`;
}

const Row = ({ kind, name, credential, end }) => html`
  <tr>
    <td class="main">${kind}<small><code>${name}</code></small></td>
    <td data-label="Created"><${Time} date=${credential.createdDate} as="distance" /></td>
    <td data-label="Last used">
      ${credential.lastUsedDate ? dayOf(credential.lastUsedDate) : html`<span class="faint">never</span>`}
    </td>
    <td data-label="Status">${credential.expiresDate ? html`${isOver(credential.expiresDate) ? "expired" : "expires"} <${Time}
      date=${credential.expiresDate} as="distance" />` : "active"}</td>
    <td><${Action} kind="small" scope="account.remove" onClick=${end}>Remove…<span
      class="unseen"> ${kind.toLowerCase()} ${name}</span><//></td>
  </tr>`;

function End({ kind, name, path, close, done }) {
  const end = useAction(async (query) => {
    const { message } = await remove(`${path}/${kind}/${encodeURIComponent(name)}`, query);
    say(message);
    close();
    await done();
    focusTitle();
  });
  const last = end.refusal?.kind === "confirmation-required";
  return html`
    <${Dialog} title="Remove this ${kind}?" close=${close}>
      <p><code class="break">${name}</code> will no longer be accepted. Tokens issued with it stop working
        within a minute.</p>
      <${Problem} refusal=${end.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="danger" scope="account.remove" busy=${end.busy}
        onClick=${() => end.run(last ? { confirm: "true" } : {})}>${last ? "Remove anyway" : `Remove ${kind}`}<//>
        </div>
    <//>`;
}
