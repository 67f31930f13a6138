// The panel in a frame on a platform's page. The panel exchanges messages only with pages of a listed origin.
import { ANCESTORS } from "./deployment.js";
import { onSession, session } from "./session.js";

export const IS_FRAMED = window.self !== window.top;

/** The managing entity that the platform's page puts into the frame's address. It is kept for a reload of the frame. */
export function entityOfFrame(named) {
  if (!IS_FRAMED) return null;
  // A browser that blocks cookies in frames may refuse storage as well.
  try {
    if (named) sessionStorage.setItem("entity", named);
    return sessionStorage.getItem("entity");
  } catch {
    return named;
  }
}

/** The maximum number of requests for a link until a session opens, in case the page sends only unusable links. */
const MOST_REQUESTS = 3;
/** The pause after a link that did not open a session, in milliseconds. */
const PAUSE_MS = 2000;
/**
 * The longest pause before a request after an outage: each request costs a link, and an entity can create 60 an
 * hour.
 */
const LONGEST_REST_MS = 600_000;

const needsLink = ({ phase, proposed, left }) => (phase === "closed" || phase === "ended") && !proposed && !left;

/**
 * Asks the platform's page for a link if there is no session, and opens the link that the page sends, with `open`. The
 * person is not asked, unlike for a link in an address, since only a page that the deployment lists can send it.
 */
export function takeLinksOfPlatform(open) {
  if (!IS_FRAMED) return;
  let requests = 0;
  const ask = () => {
    if (requests >= MOST_REQUESTS || !needsLink(session())) return;
    requests += 1;
    ANCESTORS.forEach((origin) => window.parent.postMessage({ type: "waypost.session-ended" }, origin));
  };
  let wasOutage = false;
  let rest = 0;
  onSession(() => {
    const { phase, refusal } = session();
    const isBack = wasOutage && !refusal;
    wasOutage = Boolean(refusal?.isOutage);
    if (phase === "open") {
      requests = 0;
      rest = 0;
    } else if (isBack) {
      // If there is no session after an outage, the page is asked once more. Links may fail for longer than other
      // requests, so the wait before each such request is longer than the one before.
      setTimeout(() => {
        if (!needsLink(session())) return;
        requests = MOST_REQUESTS - 1;
        ask();
      }, rest);
      rest = Math.min(2 * rest + 15_000, LONGEST_REST_MS);
    } else if (requests === 0 && !refusal) {
      ask();
    }
  });
  addEventListener("message", async ({ data, origin, source }) => {
    const isOfPlatform = source === window.parent && ANCESTORS.includes(origin);
    if (!isOfPlatform || data?.type !== "waypost.open-link") return;
    await open(String(data.url).split("#code=").pop());
    if (session().phase !== "open") setTimeout(ask, PAUSE_MS);
  });
}
