// Data that many pages use: the event types, which do not change while the panel is open, and the webhooks.
import { useEffect, useState } from "./html.js";
import { get } from "../api.js";
import { may } from "../session.js";
import { useLoad, usePolling } from "./load.js";

let catalogue = null;

/** The catalogue of event types, loaded once. */
export function eventTypes() {
  catalogue ??= get("/webhook/event/list").catch((refusal) => {
    catalogue = null;
    throw refusal;
  });
  return catalogue;
}

/** The number of webhooks that need attention, from the last list that any page has read. */
let troubled = 0;
/** When the list was last requested. */
let requested = 0;
const listeners = new Set();

export async function webhooks() {
  requested = Date.now();
  const list = await get("/webhook/list");
  troubled = list.filter(needsAttention).length;
  listeners.forEach((listener) => listener(troubled));
  return list;
}

/** Whether deliveries to a webhook do not arrive: it fails, is paused, or was disabled by the service. */
export const needsAttention = ({ deliveryState, disabledReason }) =>
  ["failing", "paused"].includes(deliveryState) || Boolean(disabledReason);

/** The maximum age of the number, in milliseconds. */
const TROUBLED_MS = 60_000;

/** The number of webhooks that need attention. It is read only if no page reads the list of webhooks. */
export function useTroubled() {
  const [count, become] = useState(troubled);
  const read = async () => {
    if (Date.now() - requested < TROUBLED_MS || !may("integrations.read")) return;
    // A failed call is repeated after the next interval.
    await webhooks().catch(() => null);
  };
  useEffect(() => {
    become(troubled);
    listeners.add(become);
    // The page that is being drawn may read the list itself.
    const timer = setTimeout(read, 1000);
    return () => {
      clearTimeout(timer);
      listeners.delete(become);
    };
  }, []);
  usePolling(read, TROUBLED_MS / 2, true);
  return count;
}

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

/** Whether a list of types and groups includes a type; an empty list includes every type. */
export const listIncludes = (list, key) => list.length === 0 ||
  list.some((wanted) => wanted === key || (wanted.endsWith(".*") && key.startsWith(wanted.slice(0, -1))));

/** The options of a field for a type, in the order of the catalogue and named with their section. */
export function typeOptions(types, chosen, all = "All event types") {
  const known = bySection(types).flatMap(([section, members]) =>
    members.map(({ label, value }) => [value, `${sectionLabel(section)} · ${label}`]));
  const strange = chosen && !known.some(([value]) => value === chosen) ? [[chosen, chosen]] : [];
  return [["", all], ...strange, ...known];
}

/** "managing_entity" as "Managing entity". */
export const sectionLabel = (section) => (section === "mcp" ? "MCP" : section[0].toUpperCase() + section.slice(1).replaceAll("_", " "));
