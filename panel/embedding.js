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

const needsLink = ({ phase, refusal, proposed, left }) =>
  (phase === "closed" || phase === "ended") && !refusal && !proposed && !left;

/**
 * Informs the platform's page once that there is no session, and opens the link that it sends, with `open`. The person is not
 * asked, as about a link in an address: only a page that the deployment lists can send it.
 */
export function takeLinksOfPlatform(open) {
  if (!IS_FRAMED) return;
  let hasAsked = false;
  onSession(() => {
    if (session().phase === "open") hasAsked = false;
    if (hasAsked || !needsLink(session())) return;
    hasAsked = true;
    ANCESTORS.forEach((origin) => window.parent.postMessage({ type: "waypost.session-ended" }, origin));
  });
  addEventListener("message", ({ data, origin, source }) => {
    const isOfPlatform = source === window.parent && ANCESTORS.includes(origin);
    if (isOfPlatform && data?.type === "waypost.open-link") open(String(data.url).split("#code=").pop());
  });
}
