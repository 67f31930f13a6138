// The boundary around a page. If a page cannot be drawn, the menu and the other pages still work.
import { Component, html } from "./html.js";
import { Icon } from "./icon.js";
import { Page } from "./page.js";
import { Text } from "./json.js";

export class Boundary extends Component {
  static getDerivedStateFromError(fault) {
    return { fault };
  }

  componentDidCatch(fault) {
    console.error(fault);
  }

  render({ children }, { fault }) {
    return fault ? html`<${Failed} fault=${fault} />` : children;
  }
}

const Failed = ({ fault }) => html`
  <${Page} title="This page cannot be shown">
    <div class="problem" role="alert">
      <${Icon} name="warning" />
      <div>
        <p><strong>The panel could not show this page.</strong> The fault is in the panel; no data was
          changed.</p>
        <p><button type="button" class="small" onClick=${() => location.reload()}>Reload the page</button></p>
      </div>
    </div>
    <p>If a reload does not help, send this report to the service’s operator:</p>
    <${Text} text=${reportOf(fault)} what="the report" />
  <//>`;

/** A line of a stack trace, which ends with the position in the script. */
const POSITION = /:\d+:\d+\)?$/;

/**
 * The report of a fault. It contains no data and no secrets: the query of the address is left out, and so is quoted
 * text in the message, which may come from a response.
 */
export function reportOf(fault) {
  const message = String(fault?.message ?? fault).replace(/".*"/s, "\"…\"");
  const positions = String(fault?.stack ?? "").split("\n").filter((line) => POSITION.test(line));
  return [
    `${fault?.name ?? "Error"}: ${message}`,
    ...positions,
    `Page: ${location.pathname}`,
    `Time: ${new Date().toISOString()}`,
    `Browser: ${navigator.userAgent}`,
  ].join("\n");
}
