// The choice of event types for a webhook: every type, whole sections, or single types.
import { html, useState } from "./html.js";
import { Check } from "./field.js";
import { bySection, sectionLabel, useTypes } from "./known.js";

/** The group of a section, such as `booking.*`. */
const group = (section) => `${section}.*`;

/** `all` explains the choice of all types. */
export function EventPicker({ chosen, change, fault, all = "Including types added later." }) {
  const types = useTypes();
  const [search, type] = useState("");
  const every = chosen === null;
  const wanted = new Set(chosen ?? []);
  const set = (key, on) => {
    const next = new Set(wanted);
    if (on) next.add(key);
    else next.delete(key);
    change([...next]);
  };
  const text = search.trim().toLowerCase();
  const fits = ({ label, value }) => !text || value.includes(text) || label.toLowerCase().includes(text);
  // A search for a section also offers "All of"; a search for one type does not.
  const named = (section) => !text || section.includes(text) || sectionLabel(section).toLowerCase().includes(text);
  const sections = bySection(types).map(([section, members]) => ({ section, members, found: members.filter(fits) }))
    .filter(({ found }) => found.length);
  // A webhook changed through the API may have a narrower group, or a type from a later catalogue.
  const strange = [...wanted].filter((key) => types.length &&
    !types.some(({ value }) => value === key || group(value.split(".")[0]) === key));
  return html`
    <fieldset class="picker ${fault ? "wrong" : ""}" aria-describedby=${fault ? "events-fault" : undefined}>
      <legend>Events</legend>
      <label class="check"><input type="radio" name="events" checked=${every} onChange=${() => change(null)} />
        <span>All types<small>${all}</small></span></label>
      <label class="check"><input type="radio" name="events" checked=${!every} onChange=${() => change([])} />
        <span>Selected types${!every && html`<small>${wanted.size} selected</small>`}</span></label>
      ${fault && html`<p class="fault" id="events-fault">Events ${fault}</p>`}
      ${!every && html`
        <div class="choices">
          <input type="search" aria-label="Search event types" placeholder="Search event types" value=${search}
            onInput=${(event) => type(event.target.value)} />
          <div class="sections" tabIndex="0" role="group" aria-label="Event types">
            ${strange.map((key) => html`<${Check} key=${key} label=${key} value=${true} change=${(on) => set(key, on)}
              />`)}
            ${sections.map(({ section, members, found }) => html`
              <details key=${section} open=${Boolean(text) || undefined}>
                <summary>${sectionLabel(section)} <small>
                  ${wanted.has(group(section)) ? "all"
                  : `${members.filter(({ value }) => wanted.has(value)).length} of ${members.length}`}</small>
                  </summary>
                ${named(section) && html`
                  <${Check} label="All of ${sectionLabel(section)}" hint="${group(section)}, including types added later"
                    value=${wanted.has(group(section))} change=${(on) => set(group(section), on)} />`}
                ${found.map(({ label, value }) => html`<${Check} key=${value} label=${label} hint=${value}
                  disabled=${wanted.has(group(section))} value=${wanted.has(value) || wanted.has(group(section))}
                  change=${(on) => set(value, on)} />`)}
              </details>`)}
            ${sections.length === 0 && html`<p class="faint">No matching type.</p>`}
          </div>
        </div>`}
    </fieldset>`;
}
