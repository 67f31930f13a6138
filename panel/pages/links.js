// The panel links: listing, creating and removing them.
import { html, useState } from "../parts/html.js";
import { get, remove } from "../api.js";
import { address } from "../address.js";
import { Action, LinkButton } from "../parts/action.js";
import { Card } from "../parts/card.js";
import { Dialog } from "../parts/dialog.js";
import { Empty, Waiting } from "../parts/empty.js";
import { useExpiredCursor } from "../parts/expired_cursor.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { NewLink } from "../parts/new_link.js";
import { Text } from "../parts/json.js";
import { Time } from "../parts/time.js";
import { counted } from "../parts/words.js";
import { focusTitle } from "../parts/focus.js";
import { say } from "../parts/notices.js";
import { entityPath, session } from "../session.js";
import { useAction, useLoad } from "../parts/load.js";

export default function Links({ query }) {
  const { cursor } = query;
  const list = useLoad(() => get("/panel/link/list", { cursor }), [cursor], { keep: true });
  const isExpired = useExpiredCursor("/links", query, list.error);
  const links = list.data?.items;
  const [asked, ask] = useState(null);
  // A session opened by a link cannot create links, which could outlive it.
  const add = !session().link && html`<${Action} kind="primary" icon="plus" scope="integrations.write"
    onClick=${() => ask({ make: true })}>New panel link<//>`;
  return html`
    <${Page} title="Panel links"
      lead="A link opens this panel once, for a limited time, without a password." beside=${add}>
      <${Problem} refusal=${isExpired ? undefined : list.error} retry=${list.reload} />
      ${!list.data && !list.error && html`<${Waiting} what="Loading links" />`}
      ${links?.length === 0 && !cursor && html`<${Empty} icon="links" title="No panel links">
        <p>A link gives a colleague access for a limited time. It can be opened once, within ten minutes.</p>
        ${add && html`<p>${add}</p>`}<//>`}
      ${links?.length > 0 && html`<${Rows} links=${links} end=${(link) => ask({ end: link })} />`}
      ${list.data && html`<${Paging} cursor=${cursor} next=${list.data.nextCursor} />`}
      ${session().link && html`<${HowTo} />`}
      ${asked?.make && html`<${NewLink} close=${() => { ask(null); list.reload(); }} />`}
      ${asked?.end && html`<${End} link=${asked.end} close=${() => ask(null)} done=${list.reload} />`}
    <//>`;
}

/** Links to the newest and to older panel links, if there is more than one page. */
const Paging = ({ cursor, next }) => (cursor || next) && html`
  <nav class="turns" aria-label="Older and newer links">
    ${cursor && html`<${LinkButton} to="/panel/links" icon="back">Newest<//>`}
    ${next ? html`<${LinkButton} to=${address("/links", { cursor: next })}>Older<//>`
      : html`<span class="faint">No older links.</span>`}
  </nav>`;

/** Explains how an application creates a link with its own token. */
function HowTo() {
  const call = [
    `curl -s '${location.origin}${entityPath()}/panel/link'`,
    `-H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json'`,
    `-d '{"name": "Ada of support", "scopes": ["integrations.read", "integrations.write"]}'`,
  ].join(" \\\n  ");
  return html`
    <${Card} title="Create a link">
      <p>You opened this session with a link, so it cannot create links: they could outlive it. Your application creates
        a link with its own token:</p>
      <${Text} text=${call} what="the command" /><//>`;
}

const Rows = ({ links, end }) => html`
  <table class="list">
    <caption class="unseen">Panel links</caption>
    <thead><tr>
      <th scope="col">Link</th><th scope="col">Status</th><th scope="col">Scopes</th><th scope="col">Ends</th>
      <th scope="col"><span class="unseen">Remove</span></th>
    </tr></thead>
    <tbody>${links.map((link) => html`
      <tr key=${link.id}>
        <td class="main"><bdi>${link.name ?? "No name"}</bdi>
          ${link.id === session().link && html` <span class="tag">this session</span>`}<small><code>${link.id}</code>
          </small></td>
        <td data-label="Status">${link.openedDate ? html`opened <${Time} date=${link.openedDate} as="distance" />`
          : html`not opened yet, created <${Time} date=${link.createdDate} as="distance" />`}</td>
        <td data-label="Scopes" title=${link.scopes.join("\n")}>${counted(link.scopes.length, "scope", "scopes")}</td>
        <td data-label="Ends"><${Time} date=${link.sessionEndsDate ?? link.expiresDate} as="distance" /></td>
        <td><${Action} kind="small" scope="integrations.remove" onClick=${() => end(link)}>Remove…
          <span class="unseen"> ${link.name ?? link.id}</span><//></td>
      </tr>`)}</tbody>
  </table>`;

function End({ link, close, done }) {
  const end = useAction(async () => {
    const { message } = await remove(`/panel/link/${encodeURIComponent(link.id)}`);
    say(message);
    close();
    await done();
    focusTitle();
  });
  return html`
    <${Dialog} title="Remove this link?" close=${close}>
      <p>${link.openedDate ? html`The session of <strong><bdi>${link.name ?? link.id}</bdi></strong> ends within a minute.`
        : html`<strong><bdi>${link.name ?? link.id}</bdi></strong> can no longer be opened.`}</p>
      ${link.id === session().link && html`<p class="note">This link opened your session. You will be signed
        out.</p>`}
      <${Problem} refusal=${end.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="danger" scope="integrations.remove" busy=${end.busy} onClick=${() => end.run()}>Remove link<//>
        </div>
    <//>`;
}
