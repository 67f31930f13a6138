// A webhook's fields: as typed, and as the API accepts them.
import { html, useLayoutEffect, useState } from "./html.js";
import { Icon } from "./icon.js";
import { SelectField, TextField } from "./field.js";
import { EventPicker } from "./event_picker.js";
import { FilterField, withFilter } from "./event_filter.js";
import { formatted } from "./json.js";
import { Refusal, violationOf } from "../refusal.js";
import { DELIVERIES, PAYLOADS } from "../words/address.js";
import { ORDERS } from "../words/orders.js";
import { RETRIES } from "../words/retries.js";
import { SIGNATURES } from "../words/signatures.js";

/** The members with a field, which shows their violations. */
export const FIELDS = ["name", "delivery", "eventUrl", "eventList", "eventFilter", "headers", "order", "payload",
  "maxAttemptsPerSecond", "timeoutSeconds", "retries", "signature"];

export const BLANK = { name: "", delivery: "push", eventUrl: "", eventList: null, eventFilter: "", headers: [], order: "none",
  payload: "full", maxAttemptsPerSecond: "", timeoutSeconds: "15", retries: "default", signature: "hmac" };

/** The form of a webhook: `eventList` is null for every type, and the filter is text. */
export const typed = ({ name, delivery, eventUrl = "", eventList, eventFilter, headers, order, payload, maxAttemptsPerSecond,
  timeoutSeconds = 15, retries = "default", signature }) => ({
  name,
  delivery,
  eventUrl,
  eventList: eventList.length ? eventList : null,
  eventFilter: formatted(eventFilter),
  headers: Object.entries(headers).map(([header, value]) => ({ name: header, value })),
  order,
  payload,
  maxAttemptsPerSecond: String(maxAttemptsPerSecond ?? ""),
  timeoutSeconds: String(timeoutSeconds),
  retries,
  signature,
});

/** The text as a number; `null` for an empty field. Any other text is sent unchanged, so that the API refuses it. */
const numberOf = (text) => (text.trim() === "" ? null : Number.isNaN(Number(text)) ? text : Number(text));

const asked = ({ name, delivery, eventUrl, eventList, headers, order, payload, maxAttemptsPerSecond, timeoutSeconds,
  retries, signature }) => ({
  name: name.trim(),
  delivery,
  eventList: eventList ?? [],
  order,
  payload,
  signature,
  // A webhook that is read from a feed has none of these.
  ...delivery === "push" && {
    eventUrl: eventUrl.trim(),
    headers: Object.fromEntries(headers.filter((header) => header.name.trim()).map((header) =>
      [header.name.trim(), header.value])),
    maxAttemptsPerSecond: numberOf(maxAttemptsPerSecond),
    timeoutSeconds: numberOf(timeoutSeconds),
    retries,
  },
});

/** The index of the first header whose name is missing or repeated: an object would lose it. -1 if there is none. */
function lostHeader(headers) {
  const names = headers.map(({ name }) => name.trim().toLowerCase());
  return names.findIndex((name, at) => (name ? names.indexOf(name) < at : headers[at].value));
}

/**
 * The request to the API as JSON, with further members. "Selected types" without a selection would mean every type to
 * the API, so it is refused here.
 */
export function finished(form, more = {}) {
  const violations = [
    form.eventList?.length === 0 && violationOf("eventList", "must include at least one type, or all types"),
    form.delivery === "push" && lostHeader(form.headers) >= 0 && violationOf("headers", "must each have a unique name"),
  ].filter(Boolean);
  if (violations.length) throw new Refusal({ status: 400, properties: { violations } });
  return withFilter({ ...asked(form), ...more }, form.eventFilter);
}

/** The members of the folded fields. */
const MORE = ["eventFilter", "headers", "maxAttemptsPerSecond", "timeoutSeconds", "retries", "payload", "order", "signature"];

/** Where the events are sent, and which; the other fields are folded, unless the webhook is `kept`, or one of them is wrong. */
export function WebhookFields({ form, change, refusal, forgive, kept = false }) {
  const set = (name) => (value) => {
    change({ ...form, [name]: value });
    forgive(name);
  };
  const fault = (field) => refusal?.violation(field);
  const [isOpen, open] = useState(kept);
  const isFaulty = MORE.some(fault);
  // Before the focus moves to the first error, since that must be visible.
  useLayoutEffect(() => { if (isFaulty) open(true); }, [isFaulty]);
  return html`
    <h2>Where</h2>
    <${TextField} label="Name" hint="Helps you recognize the webhook in lists." value=${form.name} change=${set("name")}
      fault=${fault("name")} autocomplete="off" required />
    <${SelectField} label="Delivery" value=${form.delivery} change=${set("delivery")} fault=${fault("delivery")}
      hint="A program behind a firewall can read events from a feed, without a public address." options=${DELIVERIES} />
    ${form.delivery === "push" && html`<${TextField} label="Address" type="url"
      hint="The endpoint that receives the events: https, at a public host. Query values are not shown again."
      value=${form.eventUrl} change=${set("eventUrl")} fault=${fault("eventUrl")}
      placeholder="https://hooks.example.com/waypost" autocomplete="off" spellcheck="false" required />`}
    <h2>What</h2>
    <${EventPicker} chosen=${form.eventList} change=${set("eventList")} fault=${fault("eventList")} />
    <details class="more" open=${isOpen || isFaulty} onToggle=${(event) => open(event.currentTarget.open)}>
      <summary>More settings <small>filter, ${form.delivery === "push" && "headers, rate, timeout, retries, "}body, order, signature</small></summary>
      <${MoreFields} ...${{ form, change, refusal, forgive, kept, set, fault }} />
    </details>`;
}

const MoreFields = ({ form, change, refusal, forgive, kept, set, fault }) => html`
    <${FilterField} value=${form.eventFilter} eventList=${form.eventList} change=${(text) =>
      change({ ...form, eventFilter: text })} refusal=${refusal} forgive=${forgive} />
    ${form.delivery === "push" && html`<${HeaderFields} headers=${form.headers} change=${set("headers")}
      fault=${fault("headers")} kept=${kept} />`}
    <${SelectField} label="Body" value=${form.payload} change=${set("payload")} fault=${fault("payload")}
      hint="Without its data, an event has only its identifier, type and subject; the receiver reads the rest from the API."
      options=${PAYLOADS} />
    ${form.delivery === "push" && html`<${TextField} label="Attempts per second" inputmode="numeric"
      hint="The maximum number of requests per second, from 1 to 100. Empty means no limit."
      value=${form.maxAttemptsPerSecond} change=${set("maxAttemptsPerSecond")} fault=${fault("maxAttemptsPerSecond")}
      autocomplete="off" />
      <${TextField} label="Timeout in seconds" inputmode="numeric"
      hint="How long the endpoint may take to respond, from 1 to 15 seconds." value=${form.timeoutSeconds}
      change=${set("timeoutSeconds")} fault=${fault("timeoutSeconds")} autocomplete="off" required />
      <${SelectField} label="Retries" value=${form.retries} change=${set("retries")} fault=${fault("retries")}
      hint="How long failed attempts are retried. Choose less if late events are of no use." options=${RETRIES} />`}
    <${SelectField} label="Order" value=${form.order} change=${set("order")} fault=${fault("order")}
      hint="In order, an event waits until the previous one with the same subject is delivered, is cancelled or fails permanently."
      options=${ORDERS} />
    <${SelectField} label="Signature" value=${form.signature} change=${set("signature")} fault=${fault("signature")}
      hint=${`With a key pair, the endpoint can verify requests with a public key and needs no secret.${
        kept ? " If you turn this off, the public keys stop working at once." : ""}`} options=${SIGNATURES} />`;

function HeaderFields({ headers, change, fault, kept }) {
  const set = (at, member, value) => change(headers.map((header, index) =>
    (index === at ? { ...header, [member]: value } : header)));
  const lost = fault && lostHeader(headers);
  return html`
    <fieldset class="header-fields ${lost < 0 ? "wrong" : ""}">
      <legend>Custom headers</legend>
      <p class="hint">Sent with every request, for example a credential for your endpoint. Values are not shown
        again${kept ? ": *** keeps the stored value" : ""}.</p>
      ${headers.map(({ name, value }, at) => html`
        <div class="header-field ${at === lost ? "wrong" : ""}">
          <input type="text" aria-label="Name of header ${at + 1}" placeholder="X-Api-Key" value=${name}
            spellcheck="false" autocomplete="off" onInput=${(event) => set(at, "name", event.target.value)} />
          <input type="text" aria-label="Value of header ${at + 1}" placeholder="Value" value=${value}
            spellcheck="false" autocomplete="off" onInput=${(event) => set(at, "value", event.target.value)} />
          <button type="button" class="small" aria-label="Remove header ${at + 1}"
            onClick=${() => change(headers.filter((_, index) => index !== at))}><${Icon} name="failed" /></button>
        </div>`)}
      ${fault && html`<p class="fault">Headers ${fault}</p>`}
      <button type="button" class="small" onClick=${() => change([...headers, { name: "", value: "" }])}>
        <${Icon} name="plus" /><span>Add a header</span></button>
    </fieldset>`;
}
