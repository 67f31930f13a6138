// JSON for people: formatted and coloured, without markup from its content. The text is never rebuilt from parsed
// values, so numbers keep their digits, and members keep their order and repetitions.
import { html, useMemo, useState } from "./html.js";
import { Copy } from "./copy.js";
import { counted } from "./words.js";

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

/**
 * JSON with its escaped characters unescaped. It means the same, but has different bytes, so it is only for display.
 */
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

/** Above this size, a text is not coloured: the browser would have to draw tens of thousands of elements. */
const COLOURED = 60_000;
/** The number of lines shown of a longer text until a person unfolds it. */
const FOLDED = 100;

/** The first lines of a text in parts, each `{text, kind}`. */
function beginning(parts, lines) {
  const kept = [];
  let left = lines;
  for (const part of parts) {
    const found = part.text.split("\n");
    if (found.length > left) return [...kept, { ...part, text: found.slice(0, left).join("\n") }];
    left -= found.length - 1;
    kept.push(part);
  }
  return kept;
}

const linesOf = (parts) => parts.reduce((sum, { text }) => sum + text.split("\n").length - 1, 1);

const Parts = ({ parts, isColoured }) => (isColoured
  ? parts.map(({ kind, text }) => (kind ? html`<span class=${kind}>${text}</span>` : text)) : parts.map(({ text }) => text).join(""));

/**
 * Any text. JSON is formatted, without escapes, and can also be shown raw. Only the first lines of a long text are
 * shown until a person unfolds it. Copying always takes the whole raw text.
 */
export function Text({ text, what }) {
  const canFormat = isJson(text);
  const [isRaw, show] = useState(false);
  const [isWhole, unfold] = useState(false);
  const parts = useMemo(() => (canFormat && !isRaw ? laidOut(readable(text)) : [{ text }]), [text, canFormat, isRaw]);
  const lines = linesOf(parts);
  const isLong = lines > FOLDED;
  return html`
    <div class="code">
      <div class="tools">
        ${canFormat && html`<button type="button" class="small" aria-pressed=${isRaw ? "true" : "false"}
          onClick=${() => show(!isRaw)}>Raw</button>`}
        <${Copy} text=${text} what=${what} label="Copy" />
      </div>
      <pre tabIndex="0" role="region" aria-label=${what} dir=${canFormat ? undefined : "auto"}><code><${Parts}
        parts=${isLong && !isWhole ? beginning(parts, FOLDED) : parts} isColoured=${text.length <= COLOURED} /></code></pre>
      ${isLong && html`<p class="fold"><button type="button" class="small" aria-expanded=${isWhole ? "true" : "false"}
        onClick=${() => unfold(!isWhole)}>${isWhole ? `Show the first ${FOLDED} lines` : `Show all ${counted(lines, "line", "lines")}`}
        </button></p>`}
    </div>`;
}
