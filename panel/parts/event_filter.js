// A webhook's filter: JSON that its events' data must match. It is kept as text, since parsing loses digits of numbers.
import { html, useEffect, useState } from "./html.js";
import { getText, post } from "../api.js";
import { Refusal, inputOf, nameOf, violationOf } from "../refusal.js";
import { Action } from "./action.js";
import { Badge } from "./badge.js";
import { Field, SelectField } from "./field.js";
import { Problem } from "./problem.js";
import { Range, daysBack, rangeOf } from "./recovery_range.js";
import { Time } from "./time.js";
import { labelOf, listIncludes, typeOptions, useTypes } from "./known.js";
import { memberOf } from "./json.js";
import { useAction } from "./load.js";
import { counted } from "./words.js";

const MEMBER = "eventFilter";

const PLACEHOLDER = [
  "{",
  '  "name": ["one", "another"],',
  '  "group": {"amount": [{"numeric": [">=", 1000]}]}',
  "}",
].join("\n");

/** The maximum number of events that are shown. */
const SHOWN = 20;

const ANY = { key: "any", label: "Any time" };

const MATCHES = { tone: "good", icon: "delivered" };
const DIFFERS = { tone: "mute", icon: "cancelled" };

/** A webhook, with its filter as text; an empty text without a filter. */
export async function webhookOf(id) {
  const text = await getText(`/webhook/${encodeURIComponent(id)}`);
  return { ...JSON.parse(text), [MEMBER]: memberOf(text, MEMBER) ?? "" };
}

/**
 * The JSON text of a request's body with this filter; `null` for no filter. Throws a `Refusal` if the text is not
 * JSON.
 */
export function withFilter(members, filter) {
  const text = filter.trim() || "null";
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Refusal({ title: "The filter is not valid", detail: "Correct the marked field.",
      properties: { violations: [violationOf(MEMBER, `must be JSON: ${error.message}`)] } });
  }
  return `${JSON.stringify(members).slice(0, -1)},${JSON.stringify(MEMBER)}:${text}}`;
}

/** The violations of the filter, each with the name of the value in the filter. */
function faultOf(refusal) {
  const name = (pointer) => nameOf(pointer.slice(`/${MEMBER}`.length));
  const faults = (refusal?.violations ?? []).filter((violation) => inputOf(violation) === MEMBER);
  return faults.map(({ pointer, detail }) => [name(pointer), detail].filter(Boolean).join(" ")).join("; ");
}

const HINT = "Optional: only events whose data matches this JSON object are sent, in the syntax of EventBridge’s event " +
  "patterns. Empty means all events.";

/** `eventList` is null for every type. */
export function FilterField({ value, eventList, change, refusal, forgive }) {
  const types = useTypes().filter((known) => listIncludes(eventList ?? [], known.value));
  const [wanted, want] = useState("");
  const [ranges] = useState(() => [ANY, ...daysBack()]);
  const [chosen, choose] = useState(ANY);
  const { since, until } = rangeOf(ranges, chosen);
  const [outcome, show] = useState(null);
  const trial = useAction(async () => {
    show(null);
    show(await post("/webhook/event/filter/check", withFilter(
      { eventList: wanted ? [wanted] : eventList ?? [], createdFrom: since, createdUntil: until }, value)));
  });
  useEffect(() => want(""), [eventList]);
  useEffect(() => show(null), [value, eventList, wanted, since, until]);
  const type = (text) => {
    change(text);
    forgive(MEMBER);
    trial.forgive(MEMBER);
  };
  return html`
    <div class="event-filter">
      <${Field} label="Filter" hint=${HINT} fault=${faultOf(refusal) || faultOf(trial.refusal)}>${(tied) => html`
        <textarea ...${tied} rows="6" spellcheck="false" autocomplete="off" value=${value} placeholder=${PLACEHOLDER}
          onInput=${(event) => type(event.target.value)}></textarea>`}<//>
      ${value.trim() && html`
        <div class="range"><${SelectField} label="Event type" value=${wanted} change=${want}
          options=${typeOptions(types, "", eventList ? "All selected types" : undefined)} /><${Range} ranges=${ranges} chosen=${chosen} choose=${choose} /></div>
        ${(since || chosen.key === ANY.key) && html`<div class="actions"><${Action} scope="integrations.read" busy=${trial.busy}
          onClick=${() => trial.run()}>Try on past events<//></div>`}`}
      ${trial.refusal && !faultOf(trial.refusal) && html`<${Problem} refusal=${trial.refusal} />`}
      <div role="status">${outcome && html`<${Outcome} outcome=${outcome} />`}</div>
    </div>`;
}

function Outcome({ outcome: { countIsExact, eventsRead, matchCount, items } }) {
  const types = useTypes();
  const rest = !countIsExact && " Older events were not tried. Choose a range to try them.";
  if (!items.length) {
    return html`<p class="faint">${rest ? `None of the newest ${counted(eventsRead, "event", "events")} has a selected type.${rest}`
      : "There are no such events to try the filter on."}</p>`;
  }
  return html`
    <p><strong>${matchCount} of ${counted(items.length, "event", "events")}</strong>${" "}
      ${matchCount === 1 ? "matches" : "match"}.${rest}</p>
    <ul class="checked-events">${items.slice(0, SHOWN).map(({ id, type, subject, timestamp, matches }) => html`
      <li key=${id}>
        <${Badge} ...${matches ? MATCHES : DIFFERS}>${matches ? "Matches" : "Does not match"}<//>
        <span title="${type}, ${id}">${labelOf(types, type)}${subject && html` <code class="break" dir="auto">${subject}
          </code>`}</span>
        <${Time} date=${timestamp} as="distance" />
      </li>`)}</ul>
    ${items.length > SHOWN && html`<p class="faint">and ${items.length - SHOWN} older ones</p>`}`;
}
