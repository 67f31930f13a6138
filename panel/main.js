// The entry module: opens a session with a panel link's code, or resumes this browser's session, and draws the page at
// the address.
import { html, render, useEffect, useState } from "./parts/html.js";
import { followLinks, go, mayLeave, position, useHere } from "./address.js";
import { applyAccent } from "./deployment.js";
import { IS_FRAMED, entityOfFrame, takeLinksOfPlatform } from "./embedding.js";
import { enter, onSession, propose, refuse, resume, resumeAfterOutage, session, want } from "./session.js";
import { Frame, firstPage } from "./parts/frame.js";
import { Enter, EnterAgain, Proposed } from "./pages/enter.js";
import { Boundary } from "./parts/boundary.js";
import { Notices } from "./parts/notices.js";
import Application from "./pages/application.js";
import Applications from "./pages/applications.js";
import Deliveries from "./pages/deliveries.js";
import Delivery from "./pages/delivery.js";
import EditWebhook from "./pages/webhook_edit.js";
import EventTypes from "./pages/event_types.js";
import Links from "./pages/links.js";
import Missing from "./pages/missing.js";
import NewApplication from "./pages/application_new.js";
import NewWebhook from "./pages/webhook_new.js";
import Providers from "./pages/providers.js";
import Webhook from "./pages/webhook.js";
import Webhooks from "./pages/webhooks.js";

/** The pages by the parts of their address, as in `issuer::panel::views`. */
const PAGES = {
  deliveries: Deliveries,
  "deliveries/*": Delivery,
  webhooks: Webhooks,
  "webhooks/new": NewWebhook,
  "webhooks/*": Webhook,
  "webhooks/*/edit": EditWebhook,
  "event-types": EventTypes,
  providers: Providers,
  applications: Applications,
  "applications/new": NewApplication,
  "applications/*": Application,
  links: Links,
};

/** The name of the page for the parts of an address; without parts, the first page that the session permits. */
function nameOf(parts) {
  const [section, second, third] = parts;
  const exact = parts.join("/") || firstPage();
  if (Object.hasOwn(PAGES, exact)) return exact;
  const general = second && [section, "*", third].filter(Boolean).join("/");
  return parts.length <= 3 && Object.hasOwn(PAGES, general) ? general : null;
}

function Current() {
  const { parts: named, query } = useHere();
  // The first page has two addresses.
  const parts = named.length ? named : [firstPage()];
  const Page = PAGES[nameOf(parts)] ?? Missing;
  const path = parts.join("/");
  // When a page is visited again, it restores its position itself once its content is loaded.
  useEffect(() => { if (!position()) scrollTo(0, 0); }, [path]);
  return html`<${Boundary} key=${path}><${Page} parts=${parts} query=${query} /><//>`;
}

function Panel() {
  const [{ phase, proposed }, become] = useState(session);
  useEffect(() => {
    const listener = () => become(session());
    // The session may have opened since this was rendered.
    listener();
    return onSession(listener);
  }, []);
  if (phase === "opening") return html`<main class="opening"><p role="status">Opening the panel…</p></main>`;
  const asked = proposed && html`<${Proposed} key=${proposed.code} ...${proposed} accept=${openWith} />`;
  if (phase === "closed") return asked ?? html`<${Enter} />`;
  return html`<${Frame}><${Current} /><//>${asked ?? (phase === "ended" && html`<${EnterAgain} />`)}<${Notices} />`;
}

/** Takes the code of a panel link out of the address: it works only once, and must not remain there. */
function takeCode() {
  const code = fragment().get("code");
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

const fragment = () => new URLSearchParams(location.hash.slice(1));

async function begin() {
  applyAccent();
  const entity = entityOfFrame(fragment().get("entity"));
  want(entity);
  const code = takeCode();
  takeLinksOfPlatform(openWith);
  // A new fragment does not load a page: a link pasted into an open panel, or another entity that the platform selects.
  addEventListener("hashchange", () => {
    const named = fragment().get("entity");
    if (IS_FRAMED && named && named !== entity) {
      // None of the previous entity's data may remain on the page.
      location.reload();
      return;
    }
    const later = takeCode();
    if (later) propose(later);
  });
  const root = document.getElementById("panel");
  root.replaceChildren();
  followLinks();
  resumeAfterOutage();
  const opening = code ? propose(code) : resume();
  render(html`<${Panel} />`, root);
  await opening;
}

async function openWith(code) {
  try {
    await enter(code);
    const { phase, place } = session();
    if (phase === "open" && place && mayLeave()) go(place, { replace: true });
  } catch (refusal) {
    refuse(refusal);
  }
}

begin();
