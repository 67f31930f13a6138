// A link to the guide for receivers, which the deployment serves. It opens in a new tab, since a form or a secret may
// be on this page.
import { html } from "./html.js";

export const Guide = ({ children }) => html`<a href="/receiving" target="_blank" rel="noopener">${children}</a>`;
