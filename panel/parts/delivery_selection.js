// The selected deliveries of a list: their number, the button that resends them, and the outcome of each.
import { html, useEffect, useRef, useState } from "./html.js";
import { post } from "../api.js";
import { Action } from "./action.js";
import { Dialog } from "./dialog.js";
import { counted } from "./words.js";
import { forEachOf } from "./load.js";
import { followResent, lastAttemptNumber } from "./resent.js";
import { succeeded } from "../words/results.js";

const deliveries = (count) => counted(count, "delivery", "deliveries");

/**
 * The selection of a view, and the results of the last resending by identifier: "sending", "sent", the `attempt` that
 * followed, or a refusal.
 */
export function useSelection(view) {
  const [chosen, choose] = useState(new Set());
  const [results, become] = useState(new Map());
  const run = useRef(0);
  const forget = () => {
    run.current += 1;
    become(new Map());
  };
  useEffect(() => {
    choose(new Set());
    forget();
    return () => { run.current += 1; };
  }, [view]);
  const set = (ids, isChosen) => choose((before) => {
    const next = new Set(before);
    for (const id of ids) if (isChosen) next.add(id); else next.delete(id);
    return next;
  });
  /** Begins a resending, whose results count until the next one, or until the person leaves the view. */
  const begin = () => {
    forget();
    const mine = run.current;
    const isCurrent = () => run.current === mine;
    const note = (id, result) => isCurrent() && become((before) => new Map(before).set(id, result));
    return { isCurrent, note };
  };
  return { chosen, results, set, begin, forget };
}

/** Summarizes results: the number of deliveries that were resent, their outcomes, and the count of each refusal. */
function summary(results) {
  const all = [...results.values()];
  const refusals = new Map();
  for (const { detail } of all.filter((result) => result.detail)) refusals.set(detail, (refusals.get(detail) ?? 0) + 1);
  const made = all.filter(({ attempt }) => attempt);
  const delivered = made.filter(({ attempt }) => succeeded(attempt)).length;
  const waiting = all.filter((result) => result === "sent").length;
  return { sent: made.length + waiting, refusals: [...refusals],
    outcomes: { delivered, failed: made.length - delivered, waiting } };
}

/** "3 delivered, 1 failed again." */
const outcomeWords = ({ delivered, failed, waiting }) => `${[
  delivered && `${delivered} delivered`, failed && `${failed} failed again`, waiting && `${waiting} not attempted yet`,
].filter(Boolean).join(", ")}.`;

/** `items` are the selected deliveries, and `reload` reads the list again. */
export function Selection({ items, selection, reload }) {
  const [busy, work] = useState(null);
  const [asks, ask] = useState(false);
  const outcome = useRef(null);
  const delivered = items.filter(({ status }) => status === "delivered").length;

  const resend = async () => {
    ask(false);
    const { isCurrent, note } = selection.begin();
    const resent = new Map();
    const progress = { done: 0, all: items.length };
    work(progress);
    await forEachOf(items, async ({ id }) => {
      try {
        note(id, "sending");
        const delivery = await post(`/webhook/delivery/${encodeURIComponent(id)}/resend`);
        resent.set(id, lastAttemptNumber(delivery));
        note(id, "sent");
        selection.set([id], false);
      } catch (refusal) {
        note(id, refusal);
        // The rate limit is reached, or the service is down: the other requests would fail as well.
        if (refusal.status === 429 || refusal.isOutage) return false;
      } finally {
        progress.done += 1;
        work({ ...progress });
      }
      return true;
    });
    work(null);
    outcome.current?.focus();
    await reload();
    await followResent(resent, (ended) => {
      ended.forEach((attempt, id) => note(id, { attempt }));
      return reload();
    }, isCurrent);
  };

  const { sent, refusals, outcomes } = summary(selection.results);
  const isOver = !busy && (sent > 0 || refusals.length > 0);
  if (!items.length && !isOver && !busy) return null;
  return html`
    <section class="selection" aria-label="Selected deliveries">
      <div class="outcome" ref=${outcome} tabIndex="-1">
        ${busy ? html`<p>Resending: ${busy.done} of ${busy.all}…</p>` : html`
          ${isOver && html`<p role="status"><strong>${deliveries(sent)} resent.</strong> ${sent > 0 && outcomeWords(outcomes)}</p>`}
          ${refusals.map(([detail, count]) => html`<p class="fault">${deliveries(count)} not resent: ${detail}</p>`)}
          ${items.length > 0 && html`<p>${deliveries(items.length)} ${isOver ? "still selected" : "selected"}</p>`}`}
      </div>
      <div class="actions">
        ${items.length > 0 && html`<${Action} kind="primary" icon="resend" scope="integrations.write" busy=${busy !== null}
          onClick=${() => (delivered ? ask(true) : resend())}>Resend ${deliveries(items.length)}<//>`}
        ${!busy && html`<button type="button" onClick=${() => {
          selection.set(items.map(({ id }) => id), false);
          selection.forget();
        }}>${items.length ? "Clear" : "Close"}</button>`}
      </div>
      ${asks && html`
        <${Dialog} title="Resend delivered events?" close=${() => ask(false)}>
          <p>${delivered} of the selected deliveries ${delivered === 1 ? "was" : "were"} already delivered. Their
            endpoints will receive the same event again, with the same identifier.</p>
          <div class="dialog-actions"><button type="button" onClick=${() => ask(false)}>Cancel</button>
            <button type="button" class="primary" onClick=${resend}>Resend ${deliveries(items.length)}</button></div>
        <//>`}
    </section>`;
}
