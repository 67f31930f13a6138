// Searches the deliveries by a subject, an identifier, a webhook's name or an event type.
import { html, useEffect, useId, useRef, useState } from "./html.js";
import { get } from "../api.js";
import { address, go, mayLeave } from "../address.js";
import { Icon } from "./icon.js";
import { Time } from "./time.js";
import { collect } from "./counts.js";
import { useAction, useLoad } from "./load.js";
import { labelOf } from "./known.js";
import { counted } from "./words.js";

/** The filters that a search replaces. */
const NONE = { cursor: "", event: "", subject: "" };

const lower = (text) => text.trim().toLowerCase();

/** The words and the sign before a number, as in "Booking #B-1017". */
const BEFORE_NUMBER = /^((booking|reservation)[\s:]+)?#?(?=\S*\d\S*$)/i;

/** The webhooks and types whose name contains a text, as `{words, query}`: first the webhooks. */
export function named(text, types, webhooks, isWanted = (name, searched) => name.includes(searched)) {
  const searched = lower(text);
  const hooks = webhooks.filter(({ name }) => isWanted(lower(name), searched))
    .map(({ id, name }) => ({ words: name, query: { webhook: id } }));
  const kinds = types.filter(({ value }) => isWanted(value, searched) || isWanted(lower(labelOf(types, value)), searched))
    .map(({ value }) => ({ words: `${labelOf(types, value)} (${value})`, query: { type: value } }));
  return [...hooks, ...kinds];
}

/**
 * The view for a text: a name adds a filter, a subject replaces all of them. The service finds only whole subjects,
 * so spellings with different capitals are tried one by one. The only similar webhook wins over similar types.
 */
async function viewOf(text, query, types, webhooks) {
  const whole = text.trim();
  const id = whole.replace(BEFORE_NUMBER, "");
  if (id.startsWith("dlv_")) return `/panel/deliveries/${encodeURIComponent(id)}`;
  if (id.startsWith("evt_")) return address("/deliveries", { event: id });
  if (id.startsWith("whk_")) return address("/deliveries", { ...query, ...NONE, webhook: id });
  const [same] = named(whole, types, webhooks, (name, searched) => name === searched);
  if (same) return address("/deliveries", { ...query, ...NONE, ...same.query });
  const found = await Promise.all([...new Set([whole, id, id.toUpperCase(), id.toLowerCase()])].map(async (subject) => {
    const { items } = await get("/webhook/delivery/list", { subject, limit: 1 });
    return items.length > 0 && subject;
  }));
  const subject = found.find(Boolean);
  const [first, next] = subject ? [] : named(whole, types, webhooks);
  const isOnly = first && (!next || (first.query.webhook && !next.query.webhook));
  if (isOnly) return address("/deliveries", { ...query, ...NONE, ...first.query });
  return address("/deliveries", { subject: subject || id });
}

/** Whether the next search that is drawn gets the focus. */
let isWanted = false;

/** A single field. It shows the current subject or event, and removes the filter when it is emptied. */
export function Search({ query, types, webhooks }) {
  const searched = query.subject ?? query.event ?? "";
  const [text, type] = useState(searched);
  const names = useId();
  const field = useRef(null);
  useEffect(() => {
    // After the title, which gets the focus on a new page.
    if (isWanted) requestAnimationFrame(() => field.current?.focus());
    isWanted = false;
  }, []);
  const clear = () => go(address("/deliveries", { ...query, ...NONE }));
  const search = useAction(async () => {
    const view = await viewOf(text, query, types, webhooks);
    // The field shows the subject that was found; it is empty for a webhook or a type, which other fields show.
    type(new URLSearchParams(view.split("?")[1]).get("subject") ?? "");
    go(view);
  });
  const submit = (event) => {
    event.preventDefault();
    if (search.busy) return;
    if (text.trim()) search.run();
    else if (searched) clear();
  };
  return html`
    <form class="search" role="search" onSubmit=${submit} aria-busy=${search.busy ? "true" : undefined}>
      <${Icon} name="search" />
      <input type="text" ref=${field} dir="auto" inputmode="search" enterkeyhint="search" aria-label="Subject, identifier, webhook or type"
        aria-keyshortcuts="Control+K Meta+K" title="Press Ctrl+K or ⌘K to search" list=${names} data-search
        placeholder="Booking number, webhook, event type" spellcheck="false" autocomplete="off" autocapitalize="off"
        value=${text} onInput=${(event) => type(event.target.value)} />
      <datalist id=${names}>
        ${webhooks.map(({ id, name }) => html`<option key=${id} value=${name}>Webhook</option>`)}
        ${types.map(({ label, value }) => html`<option key=${value} value=${value}>${label}</option>`)}
      </datalist>
      ${searched && html`<button type="button" class="quiet" aria-label="Clear the search" title="Clear the search"
        onClick=${clear}><${Icon} name="failed" /></button>`}
      ${search.refusal && html`<p class="fault" role="alert">${search.refusal.message}</p>`}
    </form>`;
}

/** The number of similar names that are shown. */
const MOST = 5;

/** The number of deliveries with a subject, or its events without a delivery. */
async function about(subject) {
  const { items: { length }, exact } = await collect({ subject }, 1);
  if (length) return { found: `${exact ? "" : "at least "}${counted(length, "delivery", "deliveries")}` };
  const { items, nextCursor } = await get("/webhook/event", { subject });
  return { events: items.filter(({ deliveries }) => !deliveries.length), isNone: !items.length && !nextCursor };
}

/** The help after a search without a result: the facts about the subject, or similar names. */
export function NotFound({ subject, types, webhooks }) {
  const { data, loading } = useLoad(() => about(subject), [subject]);
  if (loading) return null;
  const { found, events = [], isNone } = data ?? {};
  if (found) {
    return html`<p>Without the other filters: <a href=${address("/deliveries", { subject })}>${found} about${" "}
      <bdi>${subject}</bdi></a></p>`;
  }
  if (events.length) {
    return html`${events.map(({ id, type, timestamp }) => html`
        <p key=${id}>${labelOf(types, type)} <code>${type}</code>, published <${Time} date=${timestamp} as="both" />: no enabled
          webhook matched</p>`)}
      <p>A <a href="/panel/webhooks">webhook</a> that matches now can replay past events.</p>`;
  }
  const others = named(subject, types, webhooks);
  if (!others.length) return isNone && html`<p>No event was found either. Enter the whole number: a part is not enough.</p>`;
  return html`<p>Did you mean ${others.slice(0, MOST).map(({ words, query }, at) => html`${at > 0 && ", "}<a
      href=${address("/deliveries", query)}><bdi>${words}</bdi></a>`)}${
      others.length > MOST && ` or one of ${others.length - MOST} others`}?</p>`;
}

/** The search field of the current page; otherwise that of the deliveries. */
const FIELD = "main [data-search], main input[type='search']";

/**
 * Ctrl+K or ⌘K moves the focus to the search of the page, or opens the deliveries and their search. A single character
 * could be spoken by accident (WCAG 2.1.4).
 */
export function useSearchKey() {
  useEffect(() => {
    const press = (event) => {
      const { target, key, altKey, ctrlKey, metaKey, shiftKey } = event;
      const isTyped = target.closest?.("input, select, textarea, dialog") || document.querySelector("dialog[open]");
      if (key.toLowerCase() !== "k" || ctrlKey === metaKey || altKey || shiftKey || isTyped) return;
      event.preventDefault();
      const field = document.querySelector(FIELD);
      if (field) field.focus();
      if (field || !mayLeave()) return;
      isWanted = true;
      go("/panel/deliveries");
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
