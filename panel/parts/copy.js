// A button that copies text and confirms it.
import { html } from "./html.js";
import { Icon } from "./icon.js";
import { say } from "./notices.js";

async function copy(text, what, done) {
  try {
    await navigator.clipboard.writeText(text);
    done?.();
    say(`Copied: ${what}.`);
  } catch {
    say("The browser did not let this page copy the text. Select it and copy it with the keyboard.");
  }
}

/** `what` names the copied text, as in "Copy the identifier". With `quiet`, the button shows only an icon. */
export const Copy = ({ text, what, label, quiet, kind = "small", done }) => html`
  <button type="button" class=${quiet ? "quiet" : kind} aria-label=${quiet ? `Copy ${what}` : undefined}
    title=${quiet || label ? `Copy ${what}` : undefined} onClick=${() => copy(typeof text === "function" ? text() : text, what, done)}>
    <${Icon} name="copy" />${!quiet && html`<span>${label ?? `Copy ${what}`}</span>`}
  </button>`;

/** An identifier, with a button to copy it. */
export const Identifier = ({ id, what = "the identifier" }) =>
  html`<span class="identifier"><code>${id}</code><${Copy} text=${id} what=${what} quiet /></span>`;
