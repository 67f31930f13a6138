// A button for an action. If the session lacks the action's scope, the button names the scope.
import { html } from "./html.js";
import { Icon } from "./icon.js";
import { may } from "../session.js";
import { say } from "./notices.js";

export function Action({ scope, icon, kind = "", busy, onClick, children, type = "button" }) {
  const allowed = !scope || may(scope);
  const press = (event) => {
    if (busy) event.preventDefault();
    else if (allowed) onClick?.(event);
    else say(`Your session lacks the scope ${scope}. Ask the sender of the panel link for a new link with this scope.`);
  };
  return html`
    <button type=${allowed ? type : "button"} class=${kind} aria-disabled=${!allowed || busy ? "true" : undefined}
      aria-busy=${busy ? "true" : undefined} title=${allowed ? undefined : `Needs the scope ${scope}`} onClick=${press}>
      ${icon && html`<${Icon} name=${icon} />`}<span>${children}</span>
    </button>`;
}

/** A link that looks like a button. */
export const LinkButton = ({ to, icon, kind = "", children }) =>
  html`<a class="button ${kind}" href=${to}>${icon && html`<${Icon} name=${icon} />`}<span>${children}</span></a>`;
