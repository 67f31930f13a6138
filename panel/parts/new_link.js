// The dialog that creates a panel link: for whom, how long, and with which scopes.
import { html, useState } from "./html.js";
import { post } from "../api.js";
import { Action } from "./action.js";
import { Dialog } from "./dialog.js";
import { Problem } from "./problem.js";
import { ScopePicker } from "./scopes.js";
import { SecretDialog } from "./secret.js";
import { SelectField, TextField } from "./field.js";
import { session } from "../session.js";
import { useAction } from "./load.js";
import { useFaultFocus } from "./focus.js";
import { offered } from "../words/presets.js";

const LIFETIMES = [["3600", "1 hour"], ["1800", "30 minutes"], ["14400", "4 hours"], ["28800", "8 hours"], ["86400", "1 day"]];
const CUSTOM = "custom";

export function NewLink({ close }) {
  const presets = offered(session().scopes);
  const [first] = presets;
  const [form, change] = useState({ name: "", lifetime: "3600", place: "", access: first?.key ?? CUSTOM,
    scopes: first?.scopes ?? session().scopes });
  const [made, show] = useState(null);
  const set = (name, member = name) => (value) => {
    change({ ...form, [name]: value });
    make.forgive(member);
  };
  // "Custom" starts with the scopes of the preset selected before.
  const choose = (access) => {
    change({ ...form, access, scopes: presets.find(({ key }) => key === access)?.scopes ?? form.scopes });
    make.forgive("scopes");
  };
  const make = useAction(async () => {
    const { name, place, scopes, lifetime } = form;
    const wanted = { name: name.trim() || undefined, place: place.trim() || undefined };
    show(await post("/panel/link", { ...wanted, scopes, lifetimeSeconds: Number(lifetime) }));
  });
  const box = useFaultFocus(make);
  const fault = (member) => make.refusal?.violation(member);
  if (made) {
    return html`
      <${SecretDialog} title="The link was created" close=${close} label="Panel link" secret=${made.url}>
        <p>Send it to the person. It can be opened once, within ten minutes. The session then lasts until it
          expires or you remove the link.</p>
      <//>`;
  }
  return html`
    <${Dialog} title="New panel link" close=${close} wide>
      <div class="group" ref=${box}>
        <${TextField} label="Name" hint="Who the link is for. Shown in the list of links." value=${form.name}
          change=${set("name")} fault=${fault("name")} autocomplete="off" />
        <${Access} presets=${presets} form=${form} choose=${choose} setScopes=${set("scopes")} fault=${fault("scopes")} />
        <${SelectField} label="Session ends after" value=${form.lifetime} change=${set("lifetime", "lifetimeSeconds")}
          options=${LIFETIMES} fault=${fault("lifetimeSeconds")} />
        <${TextField} label="Opens at (optional)" value=${form.place} change=${set("place")} fault=${fault("place")}
          hint="A panel page, such as /panel/deliveries?status=failed. Empty: the first page that the link’s scopes permit."
          placeholder="/panel/deliveries" spellcheck="false" autocomplete="off" />
      </div>
      <${Problem} refusal=${make.refusal} beside=${["name", "lifetimeSeconds", "place", "scopes"]} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="primary" scope="integrations.write" busy=${make.busy} onClick=${() => make.run()}>Create
        link<//></div>
    <//>`;
}

function Access({ presets, form: { access, scopes }, choose, setScopes, fault }) {
  const preset = presets.find(({ key }) => key === access);
  const options = [...presets.map(({ key, label }) => [key, label]), [CUSTOM, "Custom: select the scopes"]];
  return html`
    <${SelectField} label="Access" value=${access} change=${choose} options=${options} hint=${preset?.hint}
      fault=${preset && fault} />
    ${preset ? html`<p class="fine">Scopes: <code>${scopes.join(", ")}</code></p>`
      : html`<${ScopePicker} chosen=${scopes} change=${setScopes} fault=${fault} />`}`;
}
