// An error message, with the request's id to quote.
import { html } from "./html.js";
import { Identifier } from "./copy.js";
import { Icon } from "./icon.js";
import { Words } from "./words.js";
import { inputOf, nameOf } from "../refusal.js";

/** The words of a refusal for a person who has no token and no application. */
function wordsOf({ kind, title, detail, message, properties = {} }) {
  if (kind === "insufficient-scope") {
    const scope = properties.requiredScope ? `the scope \`${properties.requiredScope}\`` : "a scope";
    return { title: "Your session does not permit this",
      text: `It lacks ${scope}. Ask the sender of the panel link for a new link with this scope.` };
  }
  // The detail names only the first violation, so all of them are listed below it.
  const { length } = properties.violations ?? [];
  if (length > 1) return { title, text: `${length} values are missing or invalid.` };
  const advice = kind === "entity-not-covered" ? " Ask for a panel link from an application that covers it." : "";
  return { title: title ?? "Something went wrong", text: `${afterTitle(detail ?? message, title)}${advice}` };
}

/** A detail that does not repeat the title. */
function afterTitle(detail, title) {
  if (!title || !detail.startsWith(title)) return detail;
  const rest = detail.slice(title.length).replace(/^[;,:.]\s*/, "");
  return rest && rest[0].toUpperCase() + rest.slice(1);
}

export function Problem({ refusal, retry, beside }) {
  if (!refusal) return null;
  const shown = new Set(beside);
  const others = (refusal.violations ?? []).filter((violation) => !shown.has(inputOf(violation)));
  // Messages next to a field are not repeated here, and need no request id.
  if (refusal.status && refusal.violations?.length && !others.length) {
    return html`
      <div class="problem" role="alert">
        <${Icon} name="warning" /><p><strong>Some values are missing or invalid.</strong> Correct the marked fields.</p>
      </div>`;
  }
  const { title, text } = wordsOf(refusal);
  return html`
    <div class="problem" role="alert">
      <${Icon} name="warning" />
      <div>
        <p><strong>${title}.</strong> <${Words} text=${text} /></p>
        ${others.length > 0 && html`<ul>${others.map(({ pointer, detail, ...found }) => html`<li><code>${nameOf(pointer) || found.in}</code> <${Words} text=${detail} /></li>`)}</ul>`}
        ${refusal.requestId && html`<p class="fine">If you ask for help, include this request id: <${Identifier}
          id=${refusal.requestId} what="the request's id" /></p>`}
        ${retry && ![403, 404].includes(refusal.status) && html`<p><button type="button" class="small" onClick=${retry}>Try again</button></p>`}
      </div>
    </div>`;
}
