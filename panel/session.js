// Who is here: an access token that lives in this module's memory and nowhere else, and the session that renews it by a
// cookie, which no script can read.
import { Refusal, refusalOf, unreachable } from "./refusal.js";

/** A token is renewed so many milliseconds before its end, or at half its life where that is short. */
const AHEAD = 30_000;

/** Tells the other tabs of this browser which link's session was ended. */
const tabs = new BroadcastChannel("waypost-session");

const listeners = new Set();
let state = { phase: "opening" };
let token = null;
let renewal = null;
let waiting = [];

/**
 * `phase` is "opening", "closed" (no session yet), "open", or "ended" (the page stays as it is until somebody comes in again).
 * With `unended`, the session of this browser goes on, since the service could not be told to end it. With `other`, this browser
 * is in the session of that managing entity now. With `proposed`, a link was followed, and the person is asked about it.
 */
export const session = () => state;

export function onSession(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether the token has a scope. Without it the service refuses, whatever is shown here. */
export const may = (scope) => state.scopes?.includes(scope) ?? false;

/** Where the managing entity's resources stand. */
export const entityPath = () => `/api/managing-entity/${encodeURIComponent(state.entity)}`;

/** Whether the service may answer otherwise in a moment. */
const mayPass = ({ status }) => status === 0 || status === 429 || status >= 500;

function become(next) {
  state = next;
  listeners.forEach((listener) => listener());
}

async function ask(method, body) {
  let answer;
  try {
    const headers = body ? { "Content-Type": "application/json" } : {};
    answer = await fetch("/panel/session", { method, headers, body: body && JSON.stringify(body) });
  } catch {
    throw unreachable();
  }
  if (!answer.ok) throw await refusalOf(answer);
  return answer.status === 204 ? {} : answer.json();
}

/** Takes the session that was answered, and lets the calls go on that waited for it. */
function open(answer, renewable = true) {
  const entity = answer.managingEntity;
  // Another entity's session must not go on with what stands on this page.
  if (state.entity && state.entity !== entity) {
    return become({ ...state, phase: "ended", other: entity, refusal: undefined, proposed: undefined });
  }
  const life = answer.expiresIn * 1000;
  const ends = Date.now() + life;
  token = { text: answer.accessToken, ends, renewed: renewable ? ends - Math.min(AHEAD, life / 2) : ends };
  become({
    phase: "open",
    entity,
    name: answer.name,
    place: answer.place,
    scopes: answer.scope.split(" "),
    link: answer.linkIdentifier,
    ends: answer.sessionEndsDate ?? new Date(ends).toISOString(),
    note: answer.note,
  });
  waiting.splice(0).forEach((proceed) => proceed());
}

/**
 * Keeps the code of a link that was followed until the person decides. Any page can lead a browser to a panel link, and
 * the person would work in the panel of a stranger without noticing.
 */
export async function propose(code) {
  const [entity] = code.split("/");
  const running = state.entity ?? (await ask("POST").then((answer) => answer.managingEntity, () => null));
  become({ ...state, phase: state.phase === "opening" ? "closed" : state.phase, proposed: { code, entity, running } });
}

/** Forgets the link that was followed. */
export async function decline() {
  become({ ...state, proposed: undefined });
  if (!state.entity) await resume();
}

/** Comes in with the code of a panel link. A link that was followed twice leads on if the browser is in already. */
export async function enter(code) {
  try {
    open(await ask("POST", { code }));
  } catch (refusal) {
    const running = await ask("POST").catch(() => null);
    if (!running || state.phase === "ended") throw refusal;
    open({ ...running, note: "This link was used or has ended. You are in the session that is open in this browser." });
  }
}

/** Goes on with the session that is open in this browser, if there is one. */
export async function resume() {
  try {
    open(await ask("POST"));
  } catch (refusal) {
    const isOver = refusal.status >= 400 && refusal.status < 500;
    become({ ...state, phase: state.entity ? "ended" : "closed", refusal: isOver ? undefined : refusal });
  }
}

/** The link was refused: the panel stays closed, and a page whose session has ended stays as it is. */
export const refuse = (refusal) => become(
  state.phase === "ended" ? { ...state, refusal, proposed: undefined } : { phase: "closed", refusal });

/** Comes in with an application's id and secret, where the deployment allows it. Neither is kept. */
export async function signIn(clientId, secret, entity) {
  const form = new URLSearchParams({ grant_type: "client_credentials", client_id: clientId, client_secret: secret });
  let answer;
  try {
    answer = await fetch("/oauth2/token", { method: "POST", body: form });
  } catch {
    throw unreachable();
  }
  if (!answer.ok) throw await refusalOf(answer);
  const { access_token: accessToken, expires_in: expiresIn, scope } = await answer.json();
  const covered = claims(accessToken).managing_entities ?? [];
  const managingEntity = entity || covered[0];
  if (managingEntity === "*" || (!entity && covered.length > 1)) {
    throw new Refusal({
      title: "Which managing entity?",
      detail: "This application acts for several. Write the identifier of the one that you want to see.",
      properties: { violations: [{ field: "entity", message: "must be named" }] },
    });
  }
  open({ accessToken, expiresIn, scope, managingEntity, name: "Signed in with an application" }, false);
}

/** What a token says of itself. The service alone decides by it. */
function claims(text) {
  const [, body] = text.split(".");
  return JSON.parse(atob(body.replaceAll("-", "+").replaceAll("_", "/")));
}

/** Ends the session, here and at the service. While the service cannot be told, the cookie would open it again. */
export async function leave() {
  const { link } = state;
  try {
    await ask("DELETE");
  } catch (refusal) {
    if (link && mayPass(refusal)) {
      token = null;
      return become({ phase: "closed", unended: true, link, refusal });
    }
  }
  if (link) tabs.postMessage(link);
  close();
}

function close() {
  token = null;
  become({ phase: "closed", left: true });
}

tabs.addEventListener("message", ({ data: link }) => {
  if (state.link === link) close();
});

/** The access token; renewed when it is about to end. When the session has ended, it waits until somebody comes in again. */
export async function accessToken() {
  while (!token || token.renewed <= Date.now()) await renew();
  return token.text;
}

/** The service refused a token: the next call gets another. */
export function forget(refused) {
  if (token?.text === refused) token = null;
}

async function renew() {
  renewal ??= ask("POST").then(open).finally(() => { renewal = null; });
  try {
    await renewal;
  } catch (refusal) {
    if (mayPass(refusal)) throw refusal;
    become({ ...state, phase: "ended" });
  }
  if (state.phase === "ended") await new Promise((proceed) => waiting.push(proceed));
}
