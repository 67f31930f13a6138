// The panel links: the list, the creation and the revocation of links.
import { html, useState } from "../parts/html.js";
import { get, post, remove } from "../api.js";
import { Action } from "../parts/action.js";
import { Card } from "../parts/card.js";
import { Dialog } from "../parts/dialog.js";
import { Empty, Waiting } from "../parts/empty.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { ScopePicker } from "../parts/scopes.js";
import { Text } from "../parts/json.js";
import { SecretDialog } from "../parts/secret.js";
import { SelectField, TextField } from "../parts/field.js";
import { Time } from "../parts/time.js";
import { counted } from "../parts/words.js";
import { say } from "../parts/notices.js";
import { entityPath, session } from "../session.js";
import { useAction, useLoad } from "../parts/load.js";

const LIFETIMES = [["3600", "1 hour"], ["1800", "30 minutes"], ["14400", "4 hours"], ["28800", "8 hours"]];

export default function Links() {
  const list = useLoad(() => get("/panel/link/list"), [], { keep: true });
  const [asked, ask] = useState(null);
  // A session that a link opened cannot create links, which could outlive it.
  const add = !session().link && html`<${Action} kind="primary" icon="plus" scope="integrations.write"
    onClick=${() => ask({ make: true })}>New panel link<//>`;
  return html`
    <${Page} title="Panel links"
      lead="Each link opens this panel once, for a limited time, without a password." beside=${add}>
      <${Problem} refusal=${list.error} retry=${list.reload} />
      ${!list.data && !list.error && html`<${Waiting} what="Loading the links" />`}
      ${list.data?.length === 0 && html`<${Empty} icon="links" title="No open links">
        <p>A link gives a colleague access, for example to a delivery: it opens once, within ten minutes, and its session
        expires.</p>${add && html`<p>${add}</p>`}<//>`}
      ${list.data?.length > 0 && html`<${Rows} links=${list.data} end=${(link) => ask({ end: link })} />`}
      ${session().link && html`<${HowTo} />`}
      ${asked?.make && html`<${NewLink} close=${() => { ask(null); list.reload(); }} />`}
      ${asked?.end && html`<${End} link=${asked.end} close=${() => ask(null)} done=${list.reload} />`}
    <//>`;
}

/** Explains how an application creates a link with its own token. */
function HowTo() {
  const call = [
    `curl -s '${location.origin}${entityPath()}/panel/link'`,
    `-H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"name": "Ada of support"}'`,
  ].join(" \\\n  ");
  return html`
    <${Card} title="Create a link">
      <p>Your session was opened by a link, and such a session cannot create links, which could outlive it. Your
        application creates one, with its own token:</p>
      <${Text} text=${call} what="the command" /><//>`;
}

const Rows = ({ links, end }) => html`
  <table class="list">
    <caption class="unseen">Panel links</caption>
    <thead><tr>
      <th scope="col">Link</th><th scope="col">State</th><th scope="col">Rights</th><th scope="col">Ends</th>
      <th scope="col"><span class="unseen">Revoke</span></th>
    </tr></thead>
    <tbody>${links.map((link) => html`
      <tr key=${link.id}>
        <td class="main">${link.name ?? "Without a name"}
          ${link.id === session().link && html` <span class="tag">this session</span>`}<small><code>${link.id}</code>
          </small></td>
        <td data-label="State">${link.openedDate ? html`opened <${Time} date=${link.openedDate} as="distance" />`
          : html`not opened; created <${Time} date=${link.createdDate} as="distance" />`}</td>
        <td data-label="Rights" title=${link.scopes.join("\n")}>${counted(link.scopes.length, "scope", "scopes")}</td>
        <td data-label="Ends"><${Time} date=${link.sessionEndsDate ?? link.expiresDate} as="distance" /></td>
        <td><${Action} kind="small" scope="integrations.remove" onClick=${() => end(link)}>Revoke
          <span class="unseen"> ${link.name ?? link.id}</span><//></td>
      </tr>`)}</tbody>
  </table>`;

function NewLink({ close }) {
  const [form, change] = useState({ name: "", lifetime: "3600", place: "", scopes: session().scopes });
  const [made, show] = useState(null);
  const set = (name, member = name) => (value) => {
    change({ ...form, [name]: value });
    make.forgive(member);
  };
  const make = useAction(async () => {
    const { name, place, scopes, lifetime } = form;
    const wanted = { name: name.trim() || undefined, place: place.trim() || undefined };
    show(await post("/panel/link", { ...wanted, scopes, lifetimeSeconds: Number(lifetime) }));
  });
  if (made) {
    return html`
      <${SecretDialog} title="The link is created" close=${close} label="Panel link" secret=${made.url}>
        <p>Send it to the person. It opens once, within ten minutes; then the session lasts until it expires or you revoke
          it.</p>
      <//>`;
  }
  return html`
    <${Dialog} title="New panel link" close=${close} wide>
      <${TextField} label="Name" hint="The person for whom it is, to recognize it in the list." value=${form.name}
        change=${set("name")} fault=${make.refusal?.violation("name")} autocomplete="off" />
      <${SelectField} label="The session ends after" value=${form.lifetime} change=${set("lifetime", "lifetimeSeconds")}
        options=${LIFETIMES} fault=${make.refusal?.violation("lifetimeSeconds")} />
      <${TextField} label="Opens at" hint="A page of the panel, such as /panel/deliveries?status=failed."
        value=${form.place} change=${set("place")} fault=${make.refusal?.violation("place")}
        placeholder="/panel/deliveries" spellcheck="false" autocomplete="off" />
      <${ScopePicker} chosen=${form.scopes} change=${set("scopes")} fault=${make.refusal?.violation("scopes")} />
      <${Problem} refusal=${make.refusal} beside=${["name", "lifetimeSeconds", "place", "scopes"]} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="primary" scope="integrations.write" busy=${make.busy} onClick=${() => make.run()}>Create the
        link<//></div>
    <//>`;
}

function End({ link, close, done }) {
  const end = useAction(async () => {
    const { message } = await remove(`/panel/link/${encodeURIComponent(link.id)}`);
    say(message);
    close();
    await done();
  });
  return html`
    <${Dialog} title="Revoke this link?" close=${close}>
      <p><strong>${link.name ?? link.id}</strong>
        : ${link.openedDate ? "its session ends within a minute." : "it can no longer be opened."}</p>
      ${link.id === session().link && html`<p class="note">This link opened your session: you are signed out as
        well.</p>`}
      <${Problem} refusal=${end.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Keep it</button>
        <${Action} kind="danger" scope="integrations.remove" busy=${end.busy} onClick=${() => end.run()}>Revoke it<//>
        </div>
    <//>`;
}
