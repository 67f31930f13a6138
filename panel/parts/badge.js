// How something stands: a colour, an icon and a word, so that neither colour nor icon is needed to know.
import { html } from "./html.js";
import { Icon } from "./icon.js";

export const Badge = ({ tone, icon, children }) =>
  html`<span class="badge ${tone}"><${Icon} name=${icon} /><span>${children}</span></span>`;
