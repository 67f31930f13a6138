// JSON for people: formatted and coloured, without markup from its content. The text is never rebuilt from parsed
// values, so that numbers keep their digits, and members their order and repetitions.
import { html, useState } from "./html.js";
import { Copy } from "./copy.js";

/** The tokens of valid JSON: strings, numbers, words and punctuation. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[-+.\w]+|[{}[\],:]/g;

const OPENING = new Set(["{", "["]);
const CLOSING = new Set(["}", "]"]);

/** Whether the text is a JSON object or array. */
function isJson(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object";
  } catch {
    return false;
  }
}

/** The class of a token. */
function kindOf(token, next) {
  if (token[0] === '"') return next === ":" ? "name" : "string";
  return /^[tfn]/.test(token) ? "word" : /^[-\d]/.test(token) ? "number" : "";
}

/** The deepest indentation: thousands of levels would need as many spaces in each line. */
const DEEPEST = 40;

/** The tokens of valid JSON with line breaks and spaces between them, as `{text, kind}`. */
function laidOut(text) {
  const tokens = text.match(TOKENS);
  const parts = [];
  let depth = 0;
  const line = () => parts.push({ text: `\n${"  ".repeat(Math.min(depth, DEEPEST))}` });
  tokens.forEach((token, at) => {
    const [before, next] = [tokens[at - 1], tokens[at + 1]];
    if (CLOSING.has(token)) {
      depth -= 1;
      if (!OPENING.has(before)) line();
    }
    parts.push({ text: token === ":" ? ": " : token, kind: kindOf(token, next) });
    if (OPENING.has(token)) {
      depth += 1;
      if (!CLOSING.has(next)) line();
    } else if (token === ",") {
      line();
    }
  });
  return parts;
}

/** The escapes of JSON strings: a run of UTF-16 units, or another character. */
const ESCAPES = /(?:\\u[\da-f]{4})+|\\./gi;
/** A character that a person can see, or a joiner of some scripts and of emoji. Others could hide or reorder text. */
const VISIBLE = /^(?!["\\])[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\u200c\u200d]$/u;

const escaped = (character) =>
  Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`).join("");

/** JSON with the characters that are escaped in it. It means the same, but has other bytes: it is only for display. */
export const readable = (json) => json.replace(ESCAPES, (escape) => {
  if (escape[1] !== "u") return escape === "\\/" ? "/" : escape;
  return Array.from(JSON.parse(`"${escape}"`), (one) => (VISIBLE.test(one) ? one : escaped(one))).join("");
});

/** Any text for display: JSON without escapes, other texts unchanged. */
export const displayed = (text) => (isJson(text) ? readable(text) : text);

/** JSON on several lines; an empty string stays empty. */
export const formatted = (text) => (text ? laidOut(text).map((part) => part.text).join("") : "");

/** The source text of a member of a JSON object, byte for byte. */
export function memberOf(text, name) {
  let depth = 0;
  let begin = null;
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    if (depth === 1 && begin !== null && (token === "," || token === "}")) return text.slice(begin, index).trim();
    if (OPENING.has(token)) depth += 1;
    if (CLOSING.has(token)) depth -= 1;
    if (depth === 1 && begin === null && token === JSON.stringify(name)) {
      const colon = text.indexOf(":", index + token.length);
      if (text.slice(index + token.length, colon).trim() === "") begin = colon + 1;
    }
  }
  return null;
}

/** Above this size a text is not coloured: the browser would have tens of thousands of elements to draw. */
const COLOURED = 60_000;

function Formatted({ text }) {
  const parts = laidOut(readable(text));
  if (text.length > COLOURED) return parts.map((part) => part.text).join("");
  return parts.map((part) => (part.kind ? html`<span class=${part.kind}>${part.text}</span>` : part.text));
}

/** Any text. JSON is formatted, without escapes, and can also be shown raw. Copying takes the raw text. */
export function Text({ text, what }) {
  const canFormat = isJson(text);
  const [isRaw, show] = useState(false);
  return html`
    <div class="code">
      <div class="tools">
        ${canFormat && html`<button type="button" class="small" aria-pressed=${isRaw ? "true" : "false"}
          onClick=${() => show(!isRaw)}>Raw</button>`}
        <${Copy} text=${text} what=${what} label="Copy" />
      </div>
      <pre tabIndex="0" role="region" aria-label=${what} dir=${canFormat ? undefined : "auto"}><code>${canFormat && !isRaw
        ? html`<${Formatted} text=${text} />` : text}</code></pre>
    </div>`;
}
