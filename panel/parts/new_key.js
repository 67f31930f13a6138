// The dialog that adds a public key to an application.
import { html, useState } from "./html.js";
import { post } from "../api.js";
import { Action } from "./action.js";
import { Dialog } from "./dialog.js";
import { Field } from "./field.js";
import { Problem } from "./problem.js";
import { publicKeyOf } from "./public_key.js";
import { say } from "./notices.js";
import { useAction } from "./load.js";
import { useFaultFocus } from "./focus.js";

const PLACEHOLDER = "-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----\n\n" +
  'or {"kty": "OKP", "crv": "Ed25519", "x": "…"}';

export function NewKey({ path, close, done }) {
  const [text, type] = useState("");
  const add = useAction(async () => {
    await post(`${path}/key`, { publicKey: await publicKeyOf(text) });
    say("The public key was added.");
    close();
    await done();
  });
  const box = useFaultFocus(add);
  const set = (value) => {
    type(value);
    add.forgive("publicKey");
  };
  return html`
    <${Dialog} title="Add a public key" close=${close}>
      <p>The application proves its identity by signing with the private key, which it keeps to itself.</p>
      <div ref=${box}>
        <${Field} label="Public key" fault=${add.refusal?.violation("publicKey")}
          hint="PEM (“BEGIN PUBLIC KEY”) or a JSON Web Key. Ed25519, ECDSA on P-256 or P-384, or RSA.">
          ${(tied) => html`<textarea ...${tied} rows="7" spellcheck="false" value=${text} placeholder=${PLACEHOLDER}
            onInput=${(event) => set(event.target.value)}></textarea>`}
        <//>
      </div>
      <${Problem} refusal=${add.refusal} beside=${["publicKey"]} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="primary" scope="account.write" busy=${add.busy} onClick=${() => add.run()}>Add key<//></div>
    <//>`;
}
