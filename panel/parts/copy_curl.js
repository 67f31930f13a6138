// The button that copies a delivery's request as a curl command, and the choice of shell, which the browser remembers.
import { html, useId, useState } from "./html.js";
import { Copy } from "./copy.js";
import { curlOf, curlWords } from "../words/requests.js";
import { SHELLS } from "../words/shells.js";

const KEY = "shell";

/** The chosen shell, or the usual one of the system. A browser may refuse storage, for example in a frame. */
function keptShell() {
  let kept = null;
  try {
    kept = localStorage.getItem(KEY);
  } catch {
    // The most common shell is preselected.
  }
  const isKnown = SHELLS.some(([shell]) => shell === kept);
  return isKnown ? kept : navigator.userAgent.includes("Windows") ? "powershell" : "bash";
}

function keep(shell) {
  try {
    localStorage.setItem(KEY, shell);
  } catch {
    // The choice is remembered until the person leaves the page.
  }
}

export function CopyCurl({ delivery, webhook }) {
  const [shell, choose] = useState(keptShell);
  const name = useId();
  const change = (event) => {
    choose(event.target.value);
    keep(event.target.value);
  };
  return html`
    <span class="copy-curl">
      <${Copy} text=${() => curlOf(delivery, webhook, shell)} what=${curlWords(delivery, webhook, shell)}
        label="Copy as curl" kind="" />
      <label class="unseen" for=${name}>Shell</label>
      <select id=${name} value=${shell} onChange=${change}>
        ${SHELLS.map(([value, words]) => html`<option key=${value} value=${value} selected=${value === shell}>${words}
          </option>`)}
      </select>
    </span>`;
}
