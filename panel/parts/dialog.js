// A modal dialog. The browser's dialog element traps the focus, and returns it on closing.
import { html, useId, useLayoutEffect, useRef } from "./html.js";
import { mayLeave } from "../address.js";

/** `guarded` if closing would lose something (`useGuard`); Escape then asks. */
export function Dialog({ title, close, children, wide, guarded }) {
  const box = useRef(null);
  const name = useId();
  useLayoutEffect(() => {
    const dialog = box.current;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  const leave = () => (!guarded || mayLeave()) && close?.();
  const cancel = (event) => {
    if (!event.cancelable) return;
    event.preventDefault();
    leave();
  };
  // A browser lets a page cancel only the first Escape. The second closes the dialog, so it is opened again.
  const closed = () => {
    if (!box.current) return;
    box.current.showModal();
    leave();
  };
  return html`
    <dialog ref=${box} class=${wide ? "wide" : ""} aria-labelledby=${name} onCancel=${cancel}
      onClose=${closed}>
      <h2 id=${name} tabIndex="-1">${title}</h2>
      ${children}
    </dialog>`;
}
