// The dialog shown when two people have changed the same webhook. If both changed the same member, one version must be
// chosen; other changes are kept.
import { html, useState } from "./html.js";
import { Dialog } from "./dialog.js";
import { Time } from "./time.js";
import { deliveryInWords, payloadInWords } from "../words/address.js";
import { orderInWords } from "../words/orders.js";
import { retriesInWords } from "../words/retries.js";
import { signatureInWords } from "../words/signatures.js";

const LABELS = { name: "Name", delivery: "Delivery", eventUrl: "Address", eventList: "Events", eventFilter: "Filter", headers: "Custom headers",
  order: "Order", payload: "Body", maxAttemptsPerSecond: "Attempts per second", timeoutSeconds: "Timeout in seconds",
  retries: "Retries", signature: "Signature" };

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The members that differ, with the sides that changed them. */
function differences(base, mine, theirs) {
  return Object.keys(LABELS).filter((field) => !same(mine[field], theirs[field])).map((field) => {
    const byMe = !same(base[field], mine[field]);
    const byThem = !same(base[field], theirs[field]);
    return { field, both: byMe && byThem, proposed: byMe ? "mine" : "theirs" };
  });
}

/** The form with the chosen value of each member. */
export function merged(base, mine, theirs, choices) {
  const chosen = differences(base, mine, theirs).map(({ field, proposed }) =>
    [field, (choices[field] ?? proposed) === "mine" ? mine[field] : theirs[field]]);
  return { ...mine, ...Object.fromEntries(chosen) };
}

function shown(field, value) {
  if (field === "eventList") return value?.join(", ") ?? "All types";
  if (field === "headers") return value.map(({ name, value: text }) => `${name}: ${text}`).join("\n") || "None";
  if (field === "delivery") return deliveryInWords(value);
  if (field === "payload") return payloadInWords(value);
  if (field === "order") return orderInWords(value);
  if (field === "retries") return retriesInWords(value);
  if (field === "signature") return signatureInWords(value);
  return value || "None";
}

export function Conflict({ base, mine, theirs, when, settle, close }) {
  const [choices, choose] = useState({});
  const differing = differences(base, mine, theirs);
  return html`
    <${Dialog} title="Someone else changed this webhook" close=${close} wide>
      <p>It was saved on <${Time} date=${when} />, after you opened it. Your changes are not lost. Choose the values to
        keep.</p>
      ${differing.length === 0 && html`<p>Both versions are the same.</p>`}
      ${differing.map(({ field, both, proposed }) => html`
        <fieldset class="conflict" key=${field}>
          <legend>${LABELS[field]} <span class="fine">
            ${both ? "changed by both" : proposed === "mine" ? "changed by you" : "changed by the other person"}
            </span></legend>
          ${[["mine", "Your version", mine], ["theirs", "Saved version", theirs]].map(([side, words, form]) => html`
            <label class="side-choice"><input type="radio" name=${field}
              checked=${(choices[field] ?? proposed) === side} onChange=${() => choose({ ...choices, [field]: side })}
              />
              <span><strong>${words}</strong><span class="value" dir="auto">${shown(field, form[field])}</span></span></label>`)}
        </fieldset>`)}
      <div class="dialog-actions"><button type="button" onClick=${close}>Continue editing
        </button> <button type="button" class="primary" onClick=${() => settle(choices)}>Save selection</button>
        </div>
    <//>`;
}
