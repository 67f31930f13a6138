// The page of an unknown address.
import { html } from "../parts/html.js";
import { Page } from "../parts/page.js";

export default () => html`
  <${Page} title="There is no such page"><p>The panel has no page at this address. <a href="/panel/deliveries">Go
    to the deliveries</a>.</p><//>`;
