// A status as colour, icon and word: the word alone is enough to understand it.
import { html } from "./html.js";
import { Icon } from "./icon.js";

export const Badge = ({ tone, icon, children }) =>
  html`<span class="badge ${tone}"><${Icon} name=${icon} /><span>${children}</span></span>`;

/** The mark of a delivery whose event was sent as a test of the webhook, with the space after it. */
export const TestBadge = ({ delivery }) => delivery.test && html`<${Badge} tone="mute" icon="info">Test<//>${" "}`;
