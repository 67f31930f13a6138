// The page for a new application: its name, its scopes, and then its secret, which is shown only once.
import { html, useState } from "../parts/html.js";
import { post } from "../api.js";
import { Action, LinkButton } from "../parts/action.js";
import { Check, TextField } from "../parts/field.js";
import { Identifier } from "../parts/copy.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { PUBLISHING, ScopePicker } from "../parts/scopes.js";
import { Secret } from "../parts/secret.js";
import { may } from "../session.js";
import { useFaultFocus } from "../parts/focus.js";
import { useUnsaved } from "../parts/unsaved.js";
import { useAction } from "../parts/load.js";

const BLANK = { name: "", scopes: [], mayPublish: false };

export default function NewApplication() {
  const [form, change] = useState(BLANK);
  const [made, show] = useState(null);
  useUnsaved(form, BLANK, Boolean(made));
  const create = useAction(async () => show(await post("/application", { ...form, name: form.name.trim() })));
  const box = useFaultFocus(create);
  const set = (name) => (value) => {
    change({ ...form, [name]: value });
    create.forgive(name);
  };
  const publish = (mayPublish) => {
    const scopes = mayPublish && may(PUBLISHING) ? [...new Set([...form.scopes, PUBLISHING])] : form.scopes;
    change({ ...form, mayPublish, scopes });
    create.forgive("scopes");
  };
  const submit = (event) => {
    event.preventDefault();
    create.run();
  };
  const above = html`<a href="/panel/applications">Applications</a>`;
  if (made) {
    return html`
      <${Page} key="made" title=${html`<bdi>${made.name}</bdi> was created`} window="${made.name} was created"
        above=${above}>
        <section class="card">
          <p>Client id: <${Identifier} id=${made.clientId} what="the client id" /></p>
          <${Secret} label="Client secret" secret=${made.clientSecret}>
            <p>The application uses its client id and this secret to get access tokens from <code>POST /oauth2/token
            </code>.</p><//>
          <p><${LinkButton} to="/panel/applications/${made.clientId}">Open application<//></p>
        </section>
      <//>`;
  }
  return html`
    <${Page} title="New application" above=${above}
      lead="The application gets a client id, a secret, and the scopes that you select here.">
      <form class="form card" onSubmit=${submit} noValidate ref=${box}>
        <${TextField} label="Name" hint="Helps you recognize the application in lists." value=${form.name}
          change=${set("name")} fault=${create.refusal?.violation("name")} autocomplete="off" required />
        <${ScopePicker} chosen=${form.scopes} change=${set("scopes")} fault=${create.refusal?.violation("scopes")} />
        <${Check} label="May publish events"
          hint="Needs the scope Integrations: Write, which is selected automatically. Not needed to receive events."
          value=${form.mayPublish} change=${publish} />
        <${Problem} refusal=${create.refusal} beside=${["name", "scopes"]} />
        <div class="form-actions"><${Action} type="submit" kind="primary" scope="account.write" busy=${create.busy}>Create
          application<//> <a href="/panel/applications">Cancel</a></div>
      </form>
    <//>`;
}
