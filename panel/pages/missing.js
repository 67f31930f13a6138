// The page for an unknown address.
import { html } from "../parts/html.js";
import { Page } from "../parts/page.js";
import { firstPage } from "../parts/frame.js";

export default () => html`
  <${Page} title="Page not found"><p>The panel has no page at this address. <a href="/panel/${firstPage()}">Go to the
    first page</a></p><//>`;
