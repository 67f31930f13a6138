// Scopes, by section, with what each allows.
import { html } from "./html.js";
import { Check } from "./field.js";
import { ACTION_MEANINGS, ACTIONS, SECTIONS } from "../words/scopes.js";
import { may } from "../session.js";

/** The scope without which an application that has the right to publish cannot use it. */
export const PUBLISHING = "integrations.write";

/** What an application may publish, in words. */
export function publishingWords({ mayPublish, scopes }) {
  if (!mayPublish) return "It may not publish events.";
  return scopes.includes(PUBLISHING) ? "It may publish events."
    : "It may publish events once it also has Integrations: Write.";
}

const ACTION_WORDS = { read: "Read", write: "Write", remove: "Remove" };

/** A link gives no more than the session that makes it has. */
export function ScopePicker({ chosen, change, fault }) {
  const on = new Set(chosen);
  const set = (scope, wanted) => change(wanted ? [...on, scope] : chosen.filter((each) => each !== scope));
  return html`
    <fieldset class="picker ${fault ? "wrong" : ""}">
      <legend>What it may do</legend>
      <p class="hint">Choose only what the integration needs. Each scope is separate: Write does not include Read. AI agents
        alone need the scopes under “AI agents”. Scopes that your own session lacks cannot be given.</p>
      ${fault && html`<p class="fault">${chosen.length ? `Scopes ${fault}` : "Choose one at least."}</p>`}
      <div class="scope-sections">
        ${Object.entries(SECTIONS).map(([section, words]) => html`
          <div class="scope-section" role="group" aria-label=${words.label} key=${section}>
            <strong>${words.label}</strong>
            <p class="hint">${words.unlocks}. Risk: ${words.risk}.</p>
            ${ACTIONS.map((action) => html`<${ScopeCheck} key=${action} scope="${section}.${action}"
              label=${ACTION_WORDS[action]} hint=${ACTION_MEANINGS[action]} on=${on} set=${set} />`)}
          </div>`)}
      </div>
    </fieldset>`;
}

const ScopeCheck = ({ scope, label, hint, on, set }) =>
  html`<${Check} label=${label} hint=${hint} value=${on.has(scope)} disabled=${!may(scope)}
    change=${(wanted) => set(scope, wanted)} />`;

/** The scopes that something has, by section. */
export const ScopeList = ({ scopes }) => html`
  <dl class="facts scopes">${Object.entries(SECTIONS).map(([section, words]) => {
    const has = ACTIONS.filter((action) => scopes.includes(`${section}.${action}`));
    return has.length > 0 && html`<div key=${section}><dt>${words.label}</dt><dd>
      ${has.map((action) => html`<span class="tag" title=${`${ACTION_MEANINGS[action]}: ${words.unlocks}`}>${ACTION_WORDS[action].toLowerCase()}
      </span> `)}</dd></div>`;
  })}</dl>`;
