// JSON for people: formatted and coloured, without markup from its content.
import { html } from "./html.js";
import { ExactNumber } from "../api.js";
import { Copy } from "./copy.js";

/** JSON as text; an exact number keeps its source text. */
export function formatted(value, indent = 2, depth = 0) {
  if (value instanceof ExactNumber) return value.source;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const members = isList
    ? value.map((member) => formatted(member, indent, depth + 1))
    : Object.entries(value).map(([name, member]) =>
      `${JSON.stringify(name)}:${indent ? " " : ""}${formatted(member, indent, depth + 1)}`);
  const [first, last] = isList ? "[]" : "{}";
  if (members.length === 0) return first + last;
  const line = indent ? `\n${" ".repeat(indent * (depth + 1))}` : "";
  return `${first}${line}${members.join(`,${line}`)}${indent ? `\n${" ".repeat(indent * depth)}` : ""}${last}`;
}

const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** The tokens of the text, each with its class. */
function coloured(text) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(TOKENS)) {
    const [whole, string, colon] = found;
    parts.push(text.slice(end, found.index));
    const kind = string ? (colon ? "name" : "string") : /^[tfn]/.test(whole) ? "word" : "number";
    parts.push(html`<span class=${kind}>${string ?? whole}</span>`, colon ?? "");
    end = found.index + whole.length;
  }
  return [...parts, text.slice(end)];
}

/** Above this size a text is not coloured: the browser would have tens of thousands of elements to draw. */
const COLOURED = 60_000;

export function Json({ value, what }) {
  const text = formatted(value);
  return html`
    <div class="code">
      <div class="tools"><${Copy} text=${text} what=${what} label="Copy" /></div>
      <pre tabIndex="0" role="region" aria-label=${what}><code>${text.length > COLOURED ? text : coloured(text)}</code>
        </pre>
    </div>`;
}

/** Any text, unchanged; JSON is formatted. */
export function Text({ text, what }) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (value !== null && typeof value === "object") return html`<${Json} value=${value} what=${what} />`;
  return html`
    <div class="code">
      <div class="tools"><${Copy} text=${text} what=${what} label="Copy" /></div>
      <pre tabIndex="0" role="region" aria-label=${what}><code>${text}</code></pre>
    </div>`;
}
