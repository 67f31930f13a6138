// A question that stands before the page. The browser's own dialog keeps the focus inside, and gives it back.
import { html, useEffect, useId, useRef } from "./html.js";

export function Dialog({ title, close, children, wide }) {
  const box = useRef(null);
  const name = useId();
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.isConnected && before.focus();
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    close?.();
  };
  return html`
    <dialog ref=${box} class=${wide ? "wide" : ""} aria-labelledby=${name} onCancel=${cancel}>
      <h2 id=${name} tabIndex="-1">${title}</h2>
      ${children}
    </dialog>`;
}
