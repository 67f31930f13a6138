// The focus after an action: the first field with an error, or the title if the pressed button is gone.
import { useLayoutEffect, useRef } from "./html.js";

const FAULTY = "[aria-invalid='true'], .wrong :is(input, textarea, select)";

/** For the element that contains the fields of an action: moves the focus to the first error after each refusal. */
export function useFaultFocus({ busy, refusal }) {
  const box = useRef(null);
  // Together with the error's text, not a moment later. Not when a field is changed, since that also changes the
  // refusal.
  useLayoutEffect(() => {
    if (!busy && refusal) box.current?.querySelector(FAULTY)?.focus();
  }, [busy]);
  return box;
}

/** Moves the focus to the title of the page, once the page is drawn. */
export const focusTitle = () =>
  requestAnimationFrame(() => document.querySelector("main h1")?.focus({ preventScroll: true }));
