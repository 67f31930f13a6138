// The session: an access token that exists only in this module's memory, and is renewed by a cookie that no script can read.
import { Refusal, refusalOf, unreachable, violationOf } from "./refusal.js";

/**
 * How long before its expiry a token is renewed, in milliseconds; a short-lived token is renewed at half its
 * lifetime.
 */
const RENEWAL_LEAD_MS = 30_000;

/** Announces to the other tabs of this browser the link whose session was ended; `null` if the browser refuses a channel. */
const tabs = channel();

function channel() {
  try {
    return new BroadcastChannel("waypost-session");
  } catch {
    return null;
  }
}

const listeners = new Set();
/** The managing entity that the page must show; a session of another entity is ignored. */
let wanted = null;
let state = { phase: "opening" };
let token = null;
let renewal = null;
let waiting = [];

/**
 * `phase` is "opening", "closed" (no session yet), "open", or "ended" (the page stays as it is until a new session
 * opens). `unended`: the session of this browser continues, since the request to end it failed. `other`: this browser
 * is now in the session of that managing entity. `proposed`: a link was followed, and the person must confirm it.
 */
export const session = () => state;

export function onSession(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether the token has a scope. The service enforces scopes regardless of this check. */
export const may = (scope) => state.scopes?.includes(scope) ?? false;

/** The path of the managing entity's resources. */
export const entityPath = () => `/api/managing-entity/${encodeURIComponent(state.entity)}`;

/** Whether a retry may succeed. */
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
  return answer.status === 204 ? null : answer.json();
}

/** Renews the session of this browser; `null` if it never had one. */
const renewed = () => ask("POST");

/** Starts the session in the response, and resumes the calls that were waiting for it. */
function open(answer, renewable = true) {
  const entity = answer.managingEntity;
  // Another entity's session must not continue with this page's content.
  if (state.entity && state.entity !== entity) {
    return become({ ...state, phase: "ended", other: entity, refusal: undefined, proposed: undefined });
  }
  if (wanted && wanted !== entity) return become({ phase: "closed" });
  const life = answer.expiresIn * 1000;
  const ends = Date.now() + life;
  token = { text: answer.accessToken, ends, renewed: renewable ? ends - Math.min(RENEWAL_LEAD_MS, life / 2) : ends };
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
 * Keeps the code of a link that was followed until the person decides. Any page can lead a browser to a panel link;
 * without the question, a person could work in a stranger's panel without noticing.
 */
export async function propose(code) {
  const [entity] = code.split("/");
  const running = state.entity ?? (await renewed().then((answer) => answer?.managingEntity, () => null));
  // An earlier refusal has nothing to do with this link.
  become({ ...state, phase: state.phase === "opening" ? "closed" : state.phase, refusal: undefined,
    proposed: { code, entity, running } });
}

/** Discards the proposed link. */
export async function decline() {
  become({ ...state, proposed: undefined, refusal: undefined });
  if (!state.entity) await resume();
}

/** Opens a session with the code of a panel link. If the link was used before, an open session of this browser continues. */
export async function enter(code) {
  try {
    open(await ask("POST", { code }));
  } catch (refusal) {
    const running = await renewed().catch(() => null);
    if (!running || state.phase === "ended") throw refusal;
    open({ ...running, note: "This link was used or has expired. Your open session in this browser continues." });
  }
}

/** Sets the managing entity that the page must show. */
export function want(entity) {
  wanted = entity;
}

/** Resumes the session of this browser, if there is one. */
export async function resume() {
  let refusal;
  try {
    const answer = await renewed();
    if (answer) return open(answer);
  } catch (error) {
    const isOver = error.status >= 400 && error.status < 500;
    refusal = isOver ? undefined : error;
  }
  // Screen readers read a repeated message only if it differs.
  const isSame = refusal && refusal.kind === state.refusal?.kind && refusal.status === state.refusal.status;
  return become({ ...state, phase: state.entity ? "ended" : "closed", refusal: isSame ? state.refusal : refusal });
}

/** The interval at which the panel tries to resume a session while the service is down, in milliseconds. */
const RECOVERY_MS = 5000;

/** Resumes the session as soon as the connection or the service is back. */
export function resumeAfterOutage() {
  // Resuming a session would replace a proposed link.
  const isWaiting = () => state.phase !== "open" && !state.unended && !state.proposed && state.refusal?.isOutage;
  let timer = null;
  const attempt = () => {
    clearTimeout(timer);
    if (!isWaiting()) return;
    if (document.visibilityState === "visible" && navigator.onLine) resume();
    else timer = setTimeout(attempt, RECOVERY_MS);
  };
  onSession(() => {
    clearTimeout(timer);
    if (isWaiting()) timer = setTimeout(attempt, RECOVERY_MS);
  });
  addEventListener("online", attempt);
}

/**
 * Handles a refused link: the panel stays closed, and the page of an open or ended session stays as it is. During an
 * outage, the person can try the link again.
 */
export function refuse(refusal) {
  if (state.proposed && refusal.isOutage) return become({ ...state, refusal });
  const kept = { ...state, proposed: undefined };
  if (state.phase === "open") return become({ ...kept, note: `The link could not be opened. ${refusal.detail}` });
  return become(state.phase === "ended" ? { ...kept, refusal } : { phase: "closed", refusal });
}

/** Signs in with an application's id and secret, if the deployment allows it. Neither is stored. */
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
      title: "Managing entity needed",
      detail: "This application has access to several. Enter the identifier of one of them.",
      properties: { violations: [violationOf("entity", "is required")] },
    });
  }
  open({ accessToken, expiresIn, scope, managingEntity, name: "Signed in with an application" }, false);
}

/** The claims of a token, without verification. Decisions by them are up to the service. */
function claims(text) {
  const [, body] = text.split(".");
  return JSON.parse(atob(body.replaceAll("-", "+").replaceAll("_", "/")));
}

/** Ends the session, here and at the service. If the service cannot be reached, the cookie could reopen it. */
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
  if (link) tabs?.postMessage(link);
  close();
}

function close() {
  token = null;
  become({ phase: "closed", left: true });
}

tabs?.addEventListener("message", ({ data: link }) => {
  if (state.link === link) close();
});

/**
 * The access token, which is renewed before it expires. After the end of the session, the call waits until a new
 * session opens.
 */
export async function accessToken() {
  while (!token || token.renewed <= Date.now()) await renew();
  return token.text;
}

/** Discards a token that the service refused: the next call gets another one. */
export function forget(refused) {
  if (token?.text === refused) token = null;
}

async function renew() {
  const take = (answer) => (answer ? open(answer) : become({ ...state, phase: "ended" }));
  renewal ??= renewed().then(take).finally(() => { renewal = null; });
  try {
    await renewal;
  } catch (refusal) {
    if (mayPass(refusal)) throw refusal;
    become({ ...state, phase: "ended" });
  }
  if (state.phase === "ended") await new Promise((proceed) => waiting.push(proceed));
}
