// Tabs according to the ARIA Authoring Practices: one is in the tab order, arrow keys select the others.
import { html, useId, useRef } from "./html.js";

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** `tabs` are `{id, label, content}`; only the chosen tab's `content` is drawn. */
export function Tabs({ label, tabs, chosen, choose, upright }) {
  const name = useId();
  const list = useRef(null);
  const current = tabs.find(({ id }) => id === chosen) ?? tabs[0];
  const move = (event) => {
    const at = tabs.indexOf(current);
    const ends = { Home: 0, End: tabs.length - 1 };
    const next = event.key in STEPS ? (at + STEPS[event.key] + tabs.length) % tabs.length : ends[event.key];
    if (next === undefined) return;
    event.preventDefault();
    choose(tabs[next].id);
    list.current.children[next].focus();
  };
  return html`
    <div class="tabs ${upright ? "upright" : ""}">
      <div role="tablist" aria-label=${label} aria-orientation=${upright ? "vertical" : "horizontal"} ref=${list}
        onKeyDown=${move}>
        ${tabs.map((tab) => html`
          <button type="button" role="tab" key=${tab.id} id="${name}-${tab.id}" aria-controls="${name}-panel"
            aria-selected=${tab === current ? "true" : "false"} tabIndex=${tab === current ? 0 : -1}
              onClick=${() => choose(tab.id)}>${tab.label}</button>`)}
      </div>
      <div role="tabpanel" id="${name}-panel" aria-labelledby="${name}-${current.id}" tabIndex="0">${current.content()}
        </div>
    </div>`;
}
