// A secret that is shown this once.
import { html } from "./html.js";
import { Copy } from "./copy.js";
import { Icon } from "./icon.js";

export const Secret = ({ label, secret, children }) => html`
  <div class="secret">
    <p class="secret-title"><${Icon} name="key" /><strong>${label}</strong> <span class="fine">Shown this once. Copy it
      to where it is needed, now.</span></p>
    <p class="secret-text"><code>${secret}</code><${Copy} text=${secret} what=${label.toLowerCase()} label="Copy" /></p>
    ${children}
  </div>`;
