// The beginning: comes in with the code of a panel link or with the session that is open in this browser, and draws the page
// that the address names.
import { html, render, useEffect, useState } from "./parts/html.js";
import { followLinks, go, here, mayLeave, useHere } from "./address.js";
import { enter, onSession, propose, refuse, resume, session } from "./session.js";
import { Frame } from "./parts/frame.js";
import { Enter, EnterAgain, Proposed } from "./pages/enter.js";
import { Notices } from "./parts/notices.js";
import { Waiting } from "./parts/empty.js";

/** The pages by the parts of their address; `issuer::panel::views` has the same ones. A page is read when it is first opened. */
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

/** The name of the page that the parts of an address lead to. */
function nameOf(parts) {
  const [section, second, third] = parts;
  const exact = parts.join("/") || "deliveries";
  if (Object.hasOwn(PAGES, exact)) return exact;
  const general = second && [section, "*", third].filter(Boolean).join("/");
  return parts.length <= 3 && Object.hasOwn(PAGES, general) ? general : null;
}

/** A file that is not there is one of an earlier release: the page is read again, once. */
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
  if (!page || page.name !== name) return html`<${Waiting} what="The page is read" />`;
  return html`<${page.Page} key=${parts.join("/")} parts=${parts} query=${query} />`;
}

function Panel() {
  const [{ phase, proposed }, become] = useState(session);
  useEffect(() => {
    const listener = () => become(session());
    // It may have opened since this was drawn.
    listener();
    return onSession(listener);
  }, []);
  if (phase === "opening") return html`<main class="opening"><${Waiting} what="Opening" lines="3" /></main>`;
  const asked = proposed && html`<${Proposed} key=${proposed.code} ...${proposed} accept=${comeIn} />`;
  if (phase === "closed") return asked ?? html`<${Enter} />`;
  return html`<${Frame}><${Current} /><//>${asked ?? (phase === "ended" && html`<${EnterAgain} />`)}<${Notices} />`;
}

/** The code of a panel link in the address, out of which it is taken: it works once, and is not to stay there. */
function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

async function begin() {
  const code = takeCode();
  // A link that is pasted where the panel is open already loads no page.
  addEventListener("hashchange", () => {
    const later = takeCode();
    if (later) propose(later);
  });
  const root = document.getElementById("panel");
  root.replaceChildren();
  followLinks();
  const first = PAGES[nameOf(here().parts)] ?? PAGES.deliveries;
  first().catch(() => null);
  const coming = code ? propose(code) : resume();
  render(html`<${Panel} />`, root);
  await coming;
}

async function comeIn(code) {
  try {
    await enter(code);
    const { phase, place } = session();
    if (phase === "open" && place && mayLeave()) go(place, { replace: true });
  } catch (refusal) {
    refuse(refusal);
  }
}

begin();
