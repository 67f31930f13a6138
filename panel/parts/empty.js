// The placeholder for an empty list: why it is empty, and the first step.
import { html } from "./html.js";
import { Icon } from "./icon.js";

export const Empty = ({ icon, title, children }) => html`
  <div class="empty"><span class="medal"><${Icon} name=${icon} /></span><h2>${title}</h2>${children}</div>`;

/** The placeholder during the first load. */
export const Waiting = ({ what, lines = 5 }) => html`
  <div class="waiting" role="status"><span class="unseen">${what}…</span>
    ${Array.from({ length: lines }, () => html`<i aria-hidden="true"></i>`)}</div>`;
