// Every view has an address below /panel: the path identifies the page, and the query contains its filters and its
// position. The token is never part of it.
import { useEffect, useMemo, useRef, useState } from "./parts/html.js";

const listeners = new Set();
const changed = () => listeners.forEach((listener) => listener());

/** The question before a person leaves the current page, and the address of that page. */
let guarded = null;

/** Asks this question before a person leaves the page, until the returned function is called. */
export function guard(question) {
  const mine = { question, href: location.href };
  guarded = mine;
  return () => {
    if (guarded === mine) guarded = null;
  };
}

/** Whether the page can be left: nothing would be lost, or the person confirms. */
export const mayLeave = () => !guarded || confirm(guarded.question);

/** An address of the panel; empty members of `query` are omitted. */
export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given).toString();
  return `/panel${path}${text ? `?${text}` : ""}`;
}

/** The current address: the parts of the path below /panel, and the query. */
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

/** The position of this history entry when the person left it: the scroll offset, and the link that was followed. */
export const position = () => history.state?.position;

function keepPosition(link) {
  history.replaceState({ position: { y: scrollY, link } }, "", location.href);
}

/** Opens an address of the panel. `link` is the `href` of the followed link. */
export function go(to, { replace = false, link } = {}) {
  if (!replace) keepPosition(link);
  history[replace ? "replaceState" : "pushState"](replace ? history.state : null, "", to);
  changed();
}

/** Returns to the position of a view that is visited again, once it is `ready`. A new view begins at the top. */
export function usePosition(view, ready) {
  const shown = useRef(null);
  useEffect(() => {
    if (!ready || shown.current === view) return;
    const isFirst = shown.current === null;
    shown.current = view;
    const { y = 0, link } = position() ?? {};
    if (y || !isFirst) scrollTo(0, y);
    if (link) document.querySelector(`a[href="${CSS.escape(link)}"]`)?.focus({ preventScroll: true });
  }, [view, ready]);
}

/** The current address; renders again when it changes. */
export function useHere() {
  const [href, move] = useState(location.href);
  useEffect(() => {
    const listener = () => move(location.href);
    listeners.add(listener);
    // The address may have changed since this was rendered.
    listener();
    return () => listeners.delete(listener);
  }, []);
  return useMemo(here, [href]);
}

/** Follows links to pages of the panel without a reload; the browser handles new tabs and downloads. */
export function followLinks() {
  // The browser would restore the position before the content is there.
  history.scrollRestoration = "manual";
  addEventListener("pagehide", () => keepPosition(position()?.link));
  addEventListener("popstate", () => {
    // A panel link pasted into the address bar does not leave the page.
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
    if (link.href !== location.href && mayLeave()) go(link.href, { link: link.getAttribute("href") });
  });
}
