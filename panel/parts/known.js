// Data that many pages use: the event types, which do not change while the panel is open, and the webhooks.
import { get } from "../api.js";
import { useLoad } from "./load.js";

let catalogue = null;

/** The catalogue of event types, loaded once. */
export function eventTypes() {
  catalogue ??= get("/webhook/event/list").catch((refusal) => {
    catalogue = null;
    throw refusal;
  });
  return catalogue;
}

export const webhooks = () => get("/webhook/list");

/** The event types; empty until they are loaded. */
export const useTypes = () => useLoad(eventTypes, []).data ?? [];
export const useWebhooks = () => useLoad(webhooks, []).data ?? [];

export const labelOf = (types, key) => types.find(({ value }) => value === key)?.label
  ?? (/^[a-z][a-z0-9_]*\.\*$/.test(key) ? `All of ${sectionLabel(sectionOf(key))}` : key);
export const sectionOf = (key) => key.split(".")[0];

/** The types by section, in the order of the catalogue. */
export function bySection(types) {
  const sections = new Map();
  for (const type of types) sections.set(sectionOf(type.value), [...(sections.get(sectionOf(type.value)) ?? []), type]);
  return [...sections];
}

/** "managing_entity" as "Managing entity". */
export const sectionLabel = (section) => (section === "mcp" ? "MCP" : section[0].toUpperCase() + section.slice(1).replaceAll("_", " "));
