// A webhook's public keys, for the author of its endpoint. They are not secret and stay visible.
import { html } from "./html.js";
import { Identifier } from "./copy.js";
import { Time } from "./time.js";

export const PublicKeys = ({ keys }) => keys?.length > 0 && html`
  <dl class="facts">
    ${keys.map(({ key, expiresDate }) => html`
      <div key=${key}>
        <dt>${expiresDate ? html`Old public key, until <${Time} date=${expiresDate} as="both" />` : "Public key"}</dt>
        <dd><${Identifier} id=${key} what=${expiresDate ? "the old public key" : "the public key"} /></dd>
      </div>`)}
  </dl>`;
