// The deployment's settings, from the page's meta tags.

const setting = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";

/** The panel's name. */
export const NAME = setting("application-name");
/** Whether the panel has its default name. Only then is its logo shown. */
export const HAS_OWN_NAME = NAME === "Waypost";
/** Whether an application's id and secret are accepted. */
export const TAKES_CREDENTIALS = setting("sign-in").includes("credentials");
/** The origins whose pages may show the panel in a frame. The policy of the page enforces it. */
export const ANCESTORS = setting("frame-ancestors").split(" ").filter(Boolean);

/** The title of a page, in the tab. */
export const titled = (page) => (page ? `${page} · ${NAME}` : NAME);

/**
 * Applies the accent colour; `brand.css` derives the shades. The policy allows a script to set a property, but no
 * style in the page.
 */
export function applyAccent() {
  const accent = setting("accent-color");
  if (!accent) return;
  document.documentElement.style.setProperty("--brand", accent);
  document.documentElement.classList.add("branded");
}
