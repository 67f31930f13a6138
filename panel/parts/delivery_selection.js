// The deliveries selected in a list: their number, the button that resends them, and each one's outcome.
import { html, useEffect, useRef, useState } from "./html.js";
import { Action } from "./action.js";
import { Dialog } from "./dialog.js";
import { counted } from "./words.js";
import { dismissResending, outcomeWords, resendAll, stopResending, summary, useResending } from "./resending.js";

const deliveries = (count) => counted(count, "delivery", "deliveries");

/** "1 of the selected deliveries was". */
const of = (count, one, many) => `${count} of the selected deliveries ${count === 1 ? one : many}`;

const NONE = new Map();

/** The selection of a view, its last resending or `null`, and the results of that. */
export function useSelection(view) {
  const [chosen, choose] = useState(new Set());
  const current = useResending();
  useEffect(() => choose(new Set()), [view]);
  const set = (ids, isChosen) => choose((before) => {
    const next = new Set(before);
    for (const id of ids) if (isChosen) next.add(id); else next.delete(id);
    return next;
  });
  const resending = current?.view === view ? current : null;
  return { view, chosen, set, resending, results: resending?.results ?? NONE };
}

/** `items` are the selected deliveries, and `reload` reads the list again. */
export function Selection({ items, selection, reload }) {
  const { chosen, resending, results, set, view } = selection;
  const [asks, ask] = useState(false);
  const outcome = useRef(null);
  const alive = useRef(true);
  const latest = useRef(reload);
  latest.current = reload;
  useEffect(() => () => { alive.current = false; }, []);
  const delivered = items.filter(({ status }) => status === "delivered").length;
  const held = items.filter(({ waitingFor }) => waitingFor === "order").length;
  const isBusy = resending?.phase === "sending";

  const resend = async () => {
    ask(false);
    let isFirst = true;
    await resendAll(view, items, {
      sent: (id) => set([id], false),
      changed: async () => {
        if (isFirst) outcome.current?.focus();
        isFirst = false;
        if (alive.current) await latest.current();
      },
    });
  };

  const { sent, refused, refusals, outcomes } = summary(results);
  const isOver = !isBusy && (sent > 0 || refusals.length > 0);
  if (!items.length && !isOver && !isBusy) return null;
  return html`
    <section class="selection" aria-label="Selected deliveries">
      <div class="outcome" ref=${outcome} tabIndex="-1">
        ${isBusy ? html`<p>Resending: ${sent + refused} of ${resending.count}… You can leave this page.</p>` : html`
          ${isOver && html`<p role="status"><strong>${deliveries(sent)} resent.</strong> ${sent > 0 && outcomeWords(outcomes)}</p>`}
          ${refusals.map(([detail, count]) => html`<p class="fault">${deliveries(count)} not resent: ${detail}</p>`)}
          ${items.length > 0 && html`<p>${deliveries(items.length)} ${isOver ? "still selected" : "selected"}</p>`}`}
      </div>
      <div class="actions">
        ${isBusy && html`<button type="button" onClick=${stopResending}>Stop</button>`}
        ${!isBusy && items.length > 0 && html`<${Action} kind="primary" icon="resend" scope="integrations.write"
          onClick=${() => (delivered || held ? ask(true) : resend())}>Resend ${deliveries(items.length)}<//>`}
        ${!isBusy && html`<button type="button" onClick=${() => {
          set([...chosen], false);
          dismissResending();
        }}>${items.length ? "Clear" : "Close"}</button>`}
      </div>
      ${asks && html`
        <${Dialog} title="Resend these events?" close=${() => ask(false)}>
          ${delivered > 0 && html`<p>${of(delivered, "was", "were")} already delivered. ${delivered === 1 ? "Its endpoint"
            : "Their endpoints"} will receive the same event again, with the same identifier.</p>`}
          ${held > 0 && html`<p>${of(held, "is", "are")} waiting for an earlier event about the same subject. Resending
            does not wait for it.</p>`}
          <div class="dialog-actions"><button type="button" onClick=${() => ask(false)}>Cancel</button>
            <button type="button" class="primary" onClick=${resend}>Resend ${deliveries(items.length)}</button></div>
        <//>`}
    </section>`;
}
