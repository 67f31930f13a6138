// The panel in a frame of a platform's page. The two exchange messages; a browser delivers a message of the panel only to a
// page of a listed origin, and the panel reads only those of such a page.
import { ANCESTORS } from "./deployment.js";
import { onSession, session } from "./session.js";

export const IS_FRAMED = window.self !== window.top;

/** The managing entity that the platform's page names in the address of the frame; also after a reload of the frame. */
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

/** The most requests for a link until a session opens: a page that sends unusable links is not asked without end. */
const MOST_REQUESTS = 3;
/** The pause after a link that did not open a session, in milliseconds. */
const PAUSE_MS = 2000;

const needsLink = ({ phase, proposed, left }) => (phase === "closed" || phase === "ended") && !proposed && !left;

/**
 * Asks the platform's page for a link when there is no session, and opens the link that it sends, with `open`. The person is not
 * asked, as about a link in an address: only a page that the deployment lists can send it.
 */
export function takeLinksOfPlatform(open) {
  if (!IS_FRAMED) return;
  let requests = 0;
  const ask = () => {
    if (requests >= MOST_REQUESTS || !needsLink(session())) return;
    requests += 1;
    ANCESTORS.forEach((origin) => window.parent.postMessage({ type: "waypost.session-ended" }, origin));
  };
  onSession(() => {
    const { phase, refusal } = session();
    if (phase === "open") requests = 0;
    else if (requests === 0 && !refusal) ask();
  });
  // The session is resumed then; if there is none, the page is asked again.
  addEventListener("online", () => { requests = 0; });
  addEventListener("message", async ({ data, origin, source }) => {
    const isOfPlatform = source === window.parent && ANCESTORS.includes(origin);
    if (!isOfPlatform || data?.type !== "waypost.open-link") return;
    await open(String(data.url).split("#code=").pop());
    if (session().phase !== "open") setTimeout(ask, PAUSE_MS);
  });
}
