// An error message, with the request's id to quote.
import { html } from "./html.js";
import { Identifier } from "./copy.js";
import { Icon } from "./icon.js";

/** The remedy for a refusal, if there is one. */
function advice({ kind, properties }) {
  if (kind === "insufficient-scope") {
    const scope = properties.requiredScope ? `the scope ${properties.requiredScope}` : "a scope";
    return `Your session lacks ${scope}. Ask the sender of the panel link for one with this scope.`;
  }
  return kind === "entity-not-covered" ? "Ask for a panel link of an application that covers it." : null;
}

export function Problem({ refusal, retry, beside }) {
  if (!refusal) return null;
  const shown = new Set(beside);
  const others = (refusal.violations ?? []).filter(({ field }) => !shown.has(field.split(/[[.]/)[0]));
  // Messages beside a field are not repeated here, and need no request id.
  if (refusal.status && refusal.violations?.length && !others.length) {
    return html`
      <div class="problem" role="alert">
        <${Icon} name="warning" /><p><strong>Not complete yet.</strong> Look at the fields that are marked.</p>
      </div>`;
  }
  return html`
    <div class="problem" role="alert">
      <${Icon} name="warning" />
      <div>
        <p><strong>${refusal.title ?? "Something went wrong here"}.</strong> ${refusal.detail ?? refusal.message}</p>
        ${advice({ properties: {}, ...refusal }) && html`<p>${advice(refusal)}</p>`}
        ${others.length > 0 && html`<ul>${others.map(({ field, message }) => html`<li><code>${field}</code> ${message}
          </li>`)}</ul>`}
        ${refusal.requestId && html`<p class="fine">Quote this request when you ask for help: <${Identifier}
          id=${refusal.requestId} what="the request's id" /></p>`}
        ${retry && refusal.status !== 404 && html`<p><button type="button" class="small" onClick=${retry}>Try again</button></p>`}
      </div>
    </div>`;
}
