// Every view is an address below /panel: the path names the page, the query its filters and its place. The token is never in it.
import { useEffect, useMemo, useState } from "./parts/html.js";

const listeners = new Set();
const changed = () => listeners.forEach((listener) => listener());

/** What is asked before the page that is shown is left, and its address. */
let guarded = null;

/** Has somebody asked this before they leave the page, until what is returned is called. */
export function guard(question) {
  const mine = { question, href: location.href };
  guarded = mine;
  return () => {
    if (guarded === mine) guarded = null;
  };
}

/** Whether nothing would be lost, or the person leaves all the same. */
export const mayLeave = () => !guarded || confirm(guarded.question);

/** An address of the panel; members of `query` that are empty are left out. */
export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given).toString();
  return `/panel${path}${text ? `?${text}` : ""}`;
}

/** Where the browser is: the path below /panel as its parts, and the query. */
export function here() {
  const parts = location.pathname.split("/").slice(2).filter(Boolean).map(decoded);
  return { parts, query: Object.fromEntries(new URLSearchParams(location.search)) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Goes to an address of the panel. */
export function go(to, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", to);
  changed();
}

/** Where the browser is, and again whenever it goes elsewhere. */
export function useHere() {
  const [href, move] = useState(location.href);
  useEffect(() => {
    const listener = () => move(location.href);
    listeners.add(listener);
    // It may have gone elsewhere since this was drawn.
    listener();
    return () => listeners.delete(listener);
  }, []);
  return useMemo(here, [href]);
}

/** Lets links to pages of the panel be followed without loading it again; a new tab or a download stays the browser's. */
export function followLinks() {
  addEventListener("popstate", () => {
    // A panel link in the address bar leaves no page.
    if (location.hash.startsWith("#code=")) return;
    if (mayLeave()) changed();
    else history.pushState(null, "", guarded.href);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    const own = link && link.origin === location.origin && link.pathname.startsWith("/panel/") && !link.dataset.leave;
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!own || !plain || link.target || event.defaultPrevented) return;
    event.preventDefault();
    if (link.href !== location.href && mayLeave()) go(link.href);
  });
}
