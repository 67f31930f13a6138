// The list of applications, which get tokens for this managing entity.
import { html } from "../parts/html.js";
import { get } from "../api.js";
import { Empty, Waiting } from "../parts/empty.js";
import { LinkButton } from "../parts/action.js";
import { Page } from "../parts/page.js";
import { PUBLISHING } from "../parts/scopes.js";
import { Problem } from "../parts/problem.js";
import { dayOf, isOver } from "../parts/time.js";
import { counted } from "../parts/words.js";
import { useLoad } from "../parts/load.js";

/** The last day on which any of its credentials were used. */
const lastUsed = ({ secrets, publicKeys }) =>
  [...secrets, ...publicKeys].map(({ lastUsedDate }) => lastUsedDate).filter(Boolean).sort().at(-1);

export default function Applications() {
  const list = useLoad(() => get("/application/list"), []);
  const add = html`<${LinkButton} to="/panel/applications/new" kind="primary" icon="plus">New application<//>`;
  return html`
    <${Page} title="Applications" lead="Programs that can access the API with their own credentials."
      beside=${list.data?.length > 0 && add}>
      <${Problem} refusal=${list.error} retry=${list.reload} />
      ${!list.data && !list.error && html`<${Waiting} what="Loading applications" />`}
      ${list.data?.length === 0 && html`
        <${Empty} icon="applications" title="No applications yet">
          <p>An application is a program with an id and a secret, such as a channel manager. Give each one only the scopes
            that it needs.</p><p>${add}</p>
        <//>`}
      ${list.data?.length > 0 && html`
        <table class="list">
          <caption class="unseen">Applications</caption>
          <thead><tr><th scope="col">Name</th><th scope="col">Scopes</th><th scope="col">Credentials</th>
            <th scope="col">Last used</th></tr></thead>
          <tbody>${list.data.map((application) => {
            const secrets = application.secrets.filter((secret) => !isOver(secret.expiresDate)).length;
            return html`
              <tr key=${application.clientId}>
                <td class="main"><a class="row-link" href="/panel/applications/${application.clientId}"><bdi>
                  ${application.name}</bdi></a><small><code>${application.clientId}</code></small></td>
                <td data-label="Scopes">${counted(application.scopes.length, "scope", "scopes")}
                  ${application.mayPublish && html`<small>
                  ${application.scopes.includes(PUBLISHING) ? "may publish events"
                  : "may publish events, but lacks Integrations: Write"}</small>`}</td>
                <td data-label="Credentials">${counted(secrets, "secret", "secrets")}
                  ${application.publicKeys.length > 0 && html`<small>
                  ${counted(application.publicKeys.length, "key", "keys")}</small>`}</td>
                <td data-label="Last used">
                  ${lastUsed(application) ? dayOf(lastUsed(application)) : html`<span class="faint">never</span>`}
                </td>
              </tr>`;
          })}</tbody>
        </table>`}
    <//>`;
}
