// The dialog that changes an application's scopes.
import { html, useState } from "./html.js";
import { patch } from "../api.js";
import { Action } from "./action.js";
import { Dialog } from "./dialog.js";
import { Problem } from "./problem.js";
import { ScopePicker } from "./scopes.js";
import { say } from "./notices.js";
import { useAction } from "./load.js";
import { useFaultFocus } from "./focus.js";

/** The service asks for confirmation if the application of this session loses a scope. */
export function ScopeChange({ application, path, close, done }) {
  const [scopes, choose] = useState(application.scopes);
  const change = useAction(async (query) => {
    await patch(path, { scopes, version: application.version }, query);
    say("The scopes were changed.");
    close();
    await done();
  });
  const box = useFaultFocus(change);
  const itself = change.refusal?.kind === "confirmation-required";
  const loses = application.scopes.some((scope) => !scopes.includes(scope));
  const set = (chosen) => {
    choose(chosen);
    change.forgive("scopes");
  };
  return html`
    <${Dialog} title="Change the scopes" close=${close} wide>
      <div class="group" ref=${box}>
        <${ScopePicker} chosen=${scopes} change=${set} fault=${change.refusal?.violation("scopes")} />
      </div>
      ${loses && html`<p class="note">The application loses a scope. Its tokens stop working within a minute, and it
        must request new ones. Panel sessions with that scope end.</p>`}
      <${Problem} refusal=${change.refusal} beside=${["scopes"]} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="primary" scope="account.write" busy=${change.busy}
        onClick=${() => change.run(itself ? { confirm: "true" } : {})}>
        ${itself ? "Change anyway" : "Change scopes"}<//></div>
    <//>`;
}
