// An application's page: its rights and its credentials.
import { html, useState } from "../parts/html.js";
import { get, post, remove } from "../api.js";
import { go } from "../address.js";
import { Action } from "../parts/action.js";
import { Credentials } from "../parts/credentials.js";
import { Card } from "../parts/card.js";
import { Dialog } from "../parts/dialog.js";
import { Identifier } from "../parts/copy.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { ScopeList, publishingWords } from "../parts/scopes.js";
import { Renaming } from "../parts/renaming.js";
import { ScopeChange } from "../parts/scope_change.js";
import { SecretDialog } from "../parts/secret.js";
import { SelectField } from "../parts/field.js";
import { Time } from "../parts/time.js";
import { Waiting } from "../parts/empty.js";
import { say } from "../parts/notices.js";
import { useAction, useLoad } from "../parts/load.js";
import { OVERLAPS } from "../words/overlaps.js";

const pathOf = (id) => `/application/${encodeURIComponent(id)}`;

export default function Application({ parts: [, id] }) {
  const loaded = useLoad(() => get(pathOf(id)), [id], { keep: true });
  const above = html`<a href="/panel/applications">Applications</a>`;
  if (!loaded.data) {
    return html`
      <${Page} title="Application" above=${above}>
        ${loaded.error ? html`<${Problem} refusal=${loaded.error} retry=${loaded.reload} />`
          : html`<${Waiting} what="Loading application" />`}
      <//>`;
  }
  return html`<${Shown} application=${loaded.data} above=${above} reload=${loaded.reload} error=${loaded.error} />`;
}

function Shown({ application, above, reload, error }) {
  const [open, show] = useState("");
  const close = () => show("");
  const rename = html`<${Action} scope="account.write" onClick=${() => show("name")}>Rename…<//>`;
  return html`
    <${Page} title=${application.name} above=${above} beside=${rename}
      lead=${html`<${Identifier} id=${application.clientId} what="the client id" />`}>
      <${Problem} refusal=${error} />
      <${Card} title="Access">
        <${ScopeList} scopes=${application.scopes} />
        <p class="faint">${publishingWords(application)} ${entities(application.managingEntities)}</p>
        <p><${Action} scope="account.write" onClick=${() => show("scopes")}>Change scopes…<//></p><//>
      <${Credentials} application=${application} path=${pathOf(application.clientId)} reload=${reload}
        rotate=${() => show("rotate")} />
      <${Card} title="Details">
        <dl class="facts"><div><dt>Created</dt><dd><${Time} date=${application.createdDate} as="both" /></dd></div><div>
          <dt>Last changed</dt><dd><${Time} date=${application.lastUpdate} as="both" /></dd></div>
          ${Object.entries(application.metadata).map(([name, value]) => html`
            <div key=${name}><dt><bdi>${name}</bdi></dt><dd><bdi>${value}</bdi></dd></div>`)}</dl><//>
      <${Card} title="Remove"><div class="choice">
        <p>A removed application cannot get tokens. Its existing tokens and panel links stop working within a
          minute.</p>
        <${Action} kind="danger" scope="account.remove" onClick=${() => show("remove")}>Remove…<//></div>
        <//>
      ${open === "name" && html`<${Renaming} application=${application} path=${pathOf(application.clientId)}
        close=${close} done=${reload} />`}
      ${open === "scopes" && html`<${ScopeChange} application=${application} path=${pathOf(application.clientId)}
        close=${close} done=${reload} />`}
      ${open === "rotate" && html`<${Rotation} application=${application} close=${() => { close(); reload(); }} />`}
      ${open === "remove" && html`<${Removal} application=${application} close=${close} />`}
    <//>`;
}

const entities = (list) => (list.includes("*") ? "It can access every managing entity."
  : `It can access ${list.join(", ")}.`);

function Rotation({ application, close }) {
  const [overlap, choose] = useState("86400");
  const [made, become] = useState(null);
  const rotate = useAction(async () =>
    become(await post(`${pathOf(application.clientId)}/secret`, { overlapSeconds: Number(overlap) })));
  if (made) {
    return html`
      <${SecretDialog} title="New client secret" close=${close} label="Client secret"
        secret=${made.clientSecret}>
        ${made.previousSecretExpiresDate && html`<p>The old secret is accepted until <strong>
          <${Time} date=${made.previousSecretExpiresDate} as="both" />
          </strong>. Give the new one to the application before then.</p>`}
      <//>`;
  }
  return html`
    <${Dialog} title="Rotate the client secret" close=${close}>
      <p>The new secret is valid at once. The old one stays valid for the time that you select, so that the application
        works until you give it the new one.</p>
      <${SelectField} label="Keep the old secret for" value=${overlap} change=${choose} options=${OVERLAPS} />
      <${Problem} refusal=${rotate.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="primary" scope="account.write" busy=${rotate.busy} onClick=${() => rotate.run()}>Rotate
        secret<//></div>
    <//>`;
}

/** Removes the application. The service asks for confirmation if it is the application of this session. */
function Removal({ application, close }) {
  const removal = useAction(async (query) => {
    const { message } = await remove(pathOf(application.clientId), query);
    say(message);
    go("/panel/applications");
  });
  const itself = removal.refusal?.kind === "confirmation-required";
  return html`
    <${Dialog} title=${html`Remove <bdi>${application.name}</bdi>?`} close=${close}>
      <p>The application will no longer get tokens. Its existing tokens and panel links stop working within a minute.
        This cannot be undone.</p>
      <${Problem} refusal=${removal.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="danger" scope="account.remove" busy=${removal.busy}
        onClick=${() => removal.run(itself ? { confirm: "true" } : {})}>
        ${itself ? "Remove anyway" : "Remove application"}<//></div>
    <//>`;
}
