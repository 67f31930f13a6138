// Scopes by section, with the meaning of each.
import { html } from "./html.js";
import { Check } from "./field.js";
import { ACTION_MEANINGS, ACTIONS, SECTIONS } from "../words/scopes.js";
import { may } from "../session.js";

/** The scope that an application needs in addition to the right to publish. */
export const PUBLISHING = "integrations.write";

/** The right of an application to publish, in words. */
export function publishingWords({ mayPublish, scopes }) {
  if (!mayPublish) return "It may not publish events.";
  return scopes.includes(PUBLISHING) ? "It may publish events."
    : "It may publish events, but lacks the scope Integrations: Write, which publishing needs.";
}

const ACTION_WORDS = { read: "Read", write: "Write", remove: "Remove" };

/** Only scopes of the current session can be chosen. */
export function ScopePicker({ chosen, change, fault }) {
  const on = new Set(chosen);
  const set = (scope, wanted) => change(wanted ? [...on, scope] : chosen.filter((each) => each !== scope));
  return html`
    <fieldset class="picker ${fault ? "wrong" : ""}" aria-describedby=${fault ? "scopes-fault" : undefined}>
      <legend>Scopes</legend>
      <p class="hint">Select only the scopes that are needed. Each is separate: Write does not include Read. The scopes
        under “AI agents” are for AI agents only. You cannot grant scopes that your session lacks.</p>
      ${fault && html`<p class="fault" id="scopes-fault">
        ${chosen.length ? `Scopes ${fault}` : "Select at least one."}</p>`}
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

/** A list of scopes, by section. */
export const ScopeList = ({ scopes }) => html`
  <dl class="facts scopes">${Object.entries(SECTIONS).map(([section, words]) => {
    const has = ACTIONS.filter((action) => scopes.includes(`${section}.${action}`));
    return has.length > 0 && html`<div key=${section}><dt>${words.label}</dt><dd>
      ${has.map((action) => html`<span class="tag" title=${`${ACTION_MEANINGS[action]}: ${words.unlocks}`}>${ACTION_WORDS[action].toLowerCase()}
      </span> `)}</dd></div>`;
  })}</dl>`;
