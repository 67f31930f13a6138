// A secret that is shown only once. The panel asks before a person leaves the page without copying it.
import { html, useState } from "./html.js";
import { Copy } from "./copy.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";
import { useGuard } from "./guard.js";

export function Secret({ label, secret, children }) {
  const [copied, become] = useState(false);
  const keep = () => become(true);
  const keepIfWhole = () => String(getSelection()).includes(secret) && keep();
  // The page's notice does not reach screen readers while a dialog is open, so the box also says "Copied".
  useGuard(!copied && `The ${label.toLowerCase()} is shown only once, and you have not copied it. Leave anyway?`);
  return html`
    <div class="secret">
      <p class="secret-title"><${Icon} name="key" /><strong>${label}</strong> <span class="fine">Shown only once. Copy it
        now.</span></p>
      <p class="secret-text"><code onCopy=${keepIfWhole}>${secret}</code>
        <${Copy} text=${secret} what=${label.toLowerCase()} label="Copy" done=${keep} /></p>
      <p class="fine" role="status">${copied && "Copied."}</p>
      ${children}
    </div>`;
}

/** A secret in a dialog, after the action that created it. */
export const SecretDialog = ({ title, close, ...secret }) => html`
  <${Dialog} title=${title} close=${close} guarded>
    <${Secret} ...${secret} />
    <div class="dialog-actions"><button type="button" class="primary" onClick=${close}>I have copied it</button></div>
  <//>`;
