// An address that leads to no page.
import { html } from "../parts/html.js";
import { Page } from "../parts/page.js";

export default () => html`
  <${Page} title="There is no such page"><p>The address names none of the panel’s pages. <a href="/panel/deliveries">Go
    to the deliveries</a>.</p><//>`;
