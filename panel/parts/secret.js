// A secret that is shown this once: a reader who leaves it without a copy is asked.
import { html, useState } from "./html.js";
import { Copy } from "./copy.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";
import { useGuard } from "./guard.js";

export function Secret({ label, secret, children }) {
  const [copied, become] = useState(false);
  const keep = () => become(true);
  const keepIfWhole = () => String(getSelection()).includes(secret) && keep();
  useGuard(!copied && `The ${label.toLowerCase()} is shown this once, and you have not copied it. Leave all the same?`);
  return html`
    <div class="secret">
      <p class="secret-title"><${Icon} name="key" /><strong>${label}</strong> <span class="fine">Shown this once. Copy it
        to where it is needed, now.</span></p>
      <p class="secret-text"><code onCopy=${keepIfWhole}>${secret}</code>
        <${Copy} text=${secret} what=${label.toLowerCase()} label="Copy" done=${keep} /></p>
      ${children}
    </div>`;
}

/** A secret that stands before the page, as the answer to what was asked there. */
export const SecretDialog = ({ title, close, ...secret }) => html`
  <${Dialog} title=${title} close=${close} guarded>
    <${Secret} ...${secret} />
    <div class="dialog-actions"><button type="button" class="primary" onClick=${close}>I have copied it</button></div>
  <//>`;
