// The entry module: opens a session with the code of a panel link, or resumes the session of this browser, and draws the page
// of the address.
import { html, render, useEffect, useState } from "./parts/html.js";
import { followLinks, go, here, mayLeave, useHere } from "./address.js";
import { enter, onSession, propose, refuse, resume, session } from "./session.js";
import { Frame, firstPage } from "./parts/frame.js";
import { Enter, EnterAgain, Proposed } from "./pages/enter.js";
import { Notices } from "./parts/notices.js";
import { Waiting } from "./parts/empty.js";

/** The pages by the parts of their address, as in `issuer::panel::views`. A page's module is loaded when it is first opened. */
const PAGES = {
  deliveries: () => import("./pages/deliveries.js"),
  "deliveries/*": () => import("./pages/delivery.js"),
  webhooks: () => import("./pages/webhooks.js"),
  "webhooks/new": () => import("./pages/webhook_new.js"),
  "webhooks/*": () => import("./pages/webhook.js"),
  "webhooks/*/edit": () => import("./pages/webhook_edit.js"),
  "event-types": () => import("./pages/event_types.js"),
  providers: () => import("./pages/providers.js"),
  applications: () => import("./pages/applications.js"),
  "applications/new": () => import("./pages/application_new.js"),
  "applications/*": () => import("./pages/application.js"),
  links: () => import("./pages/links.js"),
};
const missing = () => import("./pages/missing.js");

/** The name of the page for the parts of an address; without parts, the first that the session permits. */
function nameOf(parts) {
  const [section, second, third] = parts;
  const exact = parts.join("/") || firstPage();
  if (Object.hasOwn(PAGES, exact)) return exact;
  const general = second && [section, "*", third].filter(Boolean).join("/");
  return parts.length <= 3 && Object.hasOwn(PAGES, general) ? general : null;
}

/** Loads a page's module. A missing file belongs to an earlier release: the whole page is reloaded, once. */
async function loaded(read) {
  try {
    const page = await read();
    sessionStorage.removeItem("reloaded");
    return page;
  } catch (error) {
    if (sessionStorage.getItem("reloaded")) throw error;
    sessionStorage.setItem("reloaded", "yes");
    location.reload();
    return new Promise(() => {});
  }
}

function Current() {
  const { parts, query } = useHere();
  const name = nameOf(parts);
  const [page, become] = useState(null);
  useEffect(() => {
    let left = false;
    loaded(PAGES[name] ?? missing).then((module) => left || become({ name, parts, Page: module.default }));
    return () => { left = true; };
  }, [name, parts.length]);
  useEffect(() => scrollTo(0, 0), [parts.join("/")]);
  if (!page || page.name !== name) return html`<${Waiting} what="Loading the page" />`;
  return html`<${page.Page} key=${parts.join("/")} parts=${parts} query=${query} />`;
}

function Panel() {
  const [{ phase, proposed }, become] = useState(session);
  useEffect(() => {
    const listener = () => become(session());
    // The session may have opened since this was drawn.
    listener();
    return onSession(listener);
  }, []);
  if (phase === "opening") return html`<main class="opening"><${Waiting} what="Opening" lines="3" /></main>`;
  const asked = proposed && html`<${Proposed} key=${proposed.code} ...${proposed} accept=${openWith} />`;
  if (phase === "closed") return asked ?? html`<${Enter} />`;
  return html`<${Frame}><${Current} /><//>${asked ?? (phase === "ended" && html`<${EnterAgain} />`)}<${Notices} />`;
}

/** Takes the code of a panel link out of the address: it works once, and must not remain there. */
function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

async function begin() {
  const code = takeCode();
  // A link that is pasted into an open panel loads no page.
  addEventListener("hashchange", () => {
    const later = takeCode();
    if (later) propose(later);
  });
  const root = document.getElementById("panel");
  root.replaceChildren();
  followLinks();
  const first = PAGES[nameOf(here().parts)] ?? PAGES.deliveries;
  first().catch(() => null);
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
