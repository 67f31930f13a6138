// Fields of a form, each with its label, hint and error.
import { html, useId } from "./html.js";

/** `control(attributes)` draws the input element. */
export function Field({ label, hint, fault, children: control }) {
  const name = useId();
  const describedBy = [hint && `${name}-hint`, fault && `${name}-fault`].filter(Boolean).join(" ") || undefined;
  return html`
    <div class="field ${fault ? "wrong" : ""}">
      <label for=${name}>${label}</label>
      ${control({ id: name, "aria-describedby": describedBy, "aria-invalid": fault ? "true" : undefined })}
      ${hint && html`<p class="hint" id="${name}-hint">${hint}</p>`}
      ${fault && html`<p class="fault" id="${name}-fault">${label} ${fault}</p>`}
    </div>`;
}

export const TextField = ({ label, hint, fault, value, change, ...rest }) => html`
  <${Field} label=${label} hint=${hint} fault=${fault}>${(tied) =>
    html`<input type="text" dir="auto" ...${rest} ...${tied} value=${value} onInput=${(event) => change(event.target.value)} />`}
      <//>`;

export const SelectField = ({ label, hint, fault, value, change, options, ...rest }) => html`
  <${Field} label=${label} hint=${hint} fault=${fault}>${(tied) => html`
    <select ...${rest} ...${tied} value=${value} onChange=${(event) => change(event.target.value)}>
      ${options.map(([option, words]) => html`<option key=${option} dir="auto" value=${option} selected=${option === value}>
        ${words}</option>`)}
    </select>`}<//>`;

export const Check = ({ label, hint, value, change, disabled }) => html`
  <label class="check"><input type="checkbox" checked=${value} disabled=${disabled}
    onChange=${(event) => change(event.target.checked)} />
    <span>${label}${hint && html`<small>${hint}</small>`}</span></label>`;

export const Switch = ({ label, value, change }) => html`
  <button type="button" class="switch" role="switch" aria-checked=${value ? "true" : "false"}
    onClick=${() => change(!value)}><i aria-hidden="true"></i>${label}</button>`;
