// The frame of every page: navigation and session. In a platform's page, the platform shows its own name and ends the
// session.
import { html, useEffect, useRef } from "./html.js";
import { mayLeave, useHere } from "../address.js";
import { HAS_OWN_NAME, NAME } from "../deployment.js";
import { IS_FRAMED } from "../embedding.js";
import { leave, may, session } from "../session.js";
import { Icon } from "./icon.js";
import { Time, zone } from "./time.js";
import { useTroubled } from "./known.js";
import { useOnline } from "./load.js";
import { Resending } from "./resending.js";
import { useSearchKey } from "./search.js";
import { retryAll, useOutage } from "./outage.js";

const PAGES = [
  ["deliveries", "Deliveries", "integrations.read"],
  ["webhooks", "Webhooks", "integrations.read"],
  ["event-types", "Event types", "integrations.read"],
  ["providers", "Payment providers", "payment.read"],
  ["applications", "Applications", "account.read"],
  ["links", "Panel links", "integrations.read"],
];

const attention = (count) => (count === 1 ? "1 needs attention" : `${count} need attention`);

/** The first page that the session permits; if there is none, a page that says which scope is missing. */
export const firstPage = () => (PAGES.find(([, , scope]) => may(scope)) ?? PAGES[0])[0];

export const Brand = () => html`
  <span class="brand">
    ${HAS_OWN_NAME && html`<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" class="plate" /><path
      d="M16 6v20M11 26h10" class="post" /><path d="M8 8.5h12.5l3.5 3-3.5 3H8z" class="sign" /><path
      d="M24 16.5H13l-3 2.5 3 2.5h11z" class="second" /></svg>`}
    <span>${NAME}</span>
  </span>`;

export function Frame({ children }) {
  const { parts: [current = firstPage(), ...below] } = useHere();
  const { entity, ends, name, note } = session();
  const isOnline = useOnline();
  const troubled = useTroubled();
  useSearchKey();
  const menu = useRef(null);
  // On a phone, the menu is one line that scrolls. This shows the current page's entry.
  useEffect(() => {
    const nav = menu.current;
    const link = nav.querySelector("[aria-current]");
    if (link) nav.scrollLeft = link.offsetLeft - nav.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2;
  }, [current]);
  const pages = PAGES.filter(([, , scope]) => may(scope));
  return html`
    <a class="skip" href="#content" onClick=${toContent}>Skip to content</a>
    <div class="frame">
      <header class="side">
        ${!IS_FRAMED && html`<a class="home" href="/panel/${firstPage()}" aria-label="${NAME}, first page"><${Brand} /></a>`}
        <nav aria-label="Pages" ref=${menu}>
          <ul>${pages.map(([page, label]) => html`
            <li><a href="/panel/${page}" aria-current=${current === page ? (below.length ? "true" : "page")
              : undefined}><${Icon} name=${page} /><span>${label}</span>${page === "webhooks" && troubled > 0 && html`
              <span class="number" title=${attention(troubled)}><span aria-hidden="true">${troubled}</span><span class="unseen">, ${
              attention(troubled)}</span></span>`}</a></li>`)}
          </ul>
        </nav>
        <div class="who">
          <p class="entity" title="The managing entity whose data you see"><strong>${entity}</strong></p>
          ${name && html`<p dir="auto">${name}</p>`}
          ${!IS_FRAMED && html`<p>Session until <${Time} date=${ends} as="clock" /></p>
            <button type="button" class="small" onClick=${() => mayLeave() && leave()}><${Icon}
            name="leave" /><span>Sign out</span></button>`}
        </div>
      </header>
      <main id="content" tabIndex="-1">
        <div role="status"><${Connection} isOnline=${isOnline} /></div>
        <${Resending} />
        ${note && html`<p class="note"><${Icon} name="info" /> ${note}</p>`}
        ${children}
        <p class="zone">Times are in your time zone, ${zone()}.</p>
      </main>
    </div>`;
}

/** Reports a missing connection or an outage, and that the page will continue by itself. */
function Connection({ isOnline }) {
  const since = useOutage();
  if (isOnline && !since) return null;
  return html`
    <p class="note offline"><${Icon} name="warning" /> <strong>${isOnline ? "The service cannot be reached." : "You are offline."}</strong>${" "}
      This page keeps its content${since && html`, as of <${Time} date=${since} as="clock" />,`} and your input. It continues
      ${isOnline ? " by itself when the service responds again." : " when the connection is back."}
      ${isOnline && html`${" "}<button type="button" class="small" onClick=${retryAll}>Try now</button>`}</p>`;
}

/** Moves the focus to the content. A link to a fragment would change the address, and with it the view. */
function toContent(event) {
  event.preventDefault();
  document.getElementById("content").focus();
}
