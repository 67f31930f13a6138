// The dialog that renames an application.
import { html, useState } from "./html.js";
import { patch } from "../api.js";
import { Action } from "./action.js";
import { Dialog } from "./dialog.js";
import { Problem } from "./problem.js";
import { TextField } from "./field.js";
import { say } from "./notices.js";
import { useAction } from "./load.js";
import { useFaultFocus } from "./focus.js";

export function Renaming({ application, path, close, done }) {
  const [name, type] = useState(application.name);
  const renaming = useAction(async () => {
    await patch(path, { name: name.trim(), version: application.version });
    say("The application was renamed.");
    close();
    await done();
  });
  const box = useFaultFocus(renaming);
  const submit = (event) => {
    event.preventDefault();
    renaming.run();
  };
  return html`
    <${Dialog} title="Rename application" close=${close}>
      <form onSubmit=${submit} noValidate ref=${box}>
        <${TextField} label="Name" value=${name} fault=${renaming.refusal?.violation("name")} autocomplete="off" required
          change=${(value) => { type(value); renaming.forgive("name"); }} />
        <${Problem} refusal=${renaming.refusal} beside=${["name"]} />
        <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
          <${Action} type="submit" kind="primary" scope="account.write" busy=${renaming.busy}>Rename<//></div>
      </form>
    <//>`;
}
