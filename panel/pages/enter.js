// Sign-in: with a panel link, or with an application's id and secret if the deployment allows it.
import { html, useEffect, useState } from "../parts/html.js";
import { decline, enter, leave, resume, session, signIn } from "../session.js";
import { TAKES_CREDENTIALS, titled } from "../deployment.js";
import { IS_FRAMED } from "../embedding.js";
import { Brand } from "../parts/frame.js";
import { Dialog } from "../parts/dialog.js";
import { Problem } from "../parts/problem.js";
import { TextField } from "../parts/field.js";
import { useAction } from "../parts/load.js";

/** The code in a panel link, or in a part of one. */
const codeIn = (text) => text.trim().split("#code=").pop();

function ByLink() {
  const [link, type] = useState("");
  const open = useAction((text) => enter(codeIn(text)));
  const submit = (event) => {
    event.preventDefault();
    if (link.trim()) open.run(link);
  };
  return html`
    <form onSubmit=${submit}>
      <${TextField} label="Panel link" hint="Works once, within ten minutes of its creation." value=${link}
        change=${type} autocomplete="off" spellcheck="false" placeholder="https://…/panel#code=…" />
      <button class="primary" aria-busy=${open.busy}>Open the link</button>
      <${Problem} refusal=${open.refusal} />
    </form>`;
}

function ByCredentials() {
  const [given, become] = useState({ id: "", secret: "", entity: "" });
  const signingIn = useAction(() => signIn(given.id.trim(), given.secret.trim(), given.entity.trim()));
  const set = (name) => (value) => become({ ...given, [name]: value });
  const submit = (event) => {
    event.preventDefault();
    signingIn.run();
  };
  const wantsEntity = signingIn.refusal?.violation("entity") || given.entity;
  return html`
    <form onSubmit=${submit}>
      <${TextField} label="Application (client id)" value=${given.id} change=${set("id")} autocomplete="off"
        spellcheck="false" required />
      <${TextField} label="Secret" type="password" value=${given.secret} change=${set("secret")} autocomplete="off"
        required hint="Sent to the token issuer, and not stored." />
      ${wantsEntity && html`<${TextField} label="Managing entity" fault=${signingIn.refusal?.violation("entity")}
        value=${given.entity} change=${set("entity")} spellcheck="false" />`}
      <button class="primary" aria-busy=${signingIn.busy}>Sign in</button>
      <${Problem} refusal=${signingIn.refusal} beside=${["entity"]} />
    </form>`;
}

const Ways = () => html`
  <${ByLink} />
  ${TAKES_CREDENTIALS && html`<details class="other-way"><summary>Sign in with an application’s id and secret</summary>
    <${ByCredentials} /></details>`}`;

export function Enter() {
  const { left, unended, refusal } = session();
  useEffect(() => { document.title = titled(); }, []);
  if (unended) return html`<${NotOut} refusal=${refusal} />`;
  if (IS_FRAMED) return html`<${InFrame} refusal=${refusal} />`;
  if (refusal?.isOutage) return html`<${Outage} refusal=${refusal} />`;
  return html`
    <main class="enter">
      <${Brand} />
      <h1>${left ? "You are signed out" : "Sign in with a panel link"}</h1>
      <${Problem} refusal=${refusal} />
      <p>A panel link gives you access to one managing entity for a limited time, without a password. The operator of
        your integration creates one with a call to <code>…/panel/link</code>. On a local installation,${" "}
        <code>make panel</code> prints one. A link works once, and its session ends when you sign out.</p>
      <${Ways} />
    </main>`;
}

const SOON = "The panel tries again every few seconds, and opens as soon as the service responds.";

/** The page while the service is down: it is unknown whether this browser has a session. */
const Outage = ({ refusal }) => html`
  <main class="enter">
    <${Brand} />
    <h1>The panel cannot be opened yet</h1>
    <${Problem} refusal=${refusal} retry=${resume} />
    <p>${SOON}</p>
  </main>`;

/** The page in a frame until the page around it sends a link. */
const InFrame = ({ refusal }) => html`
  <main class="enter">
    <h1>${refusal ? "The panel cannot be opened" : "Opening the panel"}</h1>
    <${Problem} refusal=${refusal} />
    <p>${refusal?.isOutage ? SOON : refusal ? "Reload the page to try again." : "If this takes longer than a few seconds, reload the whole page."}</p>
  </main>`;

/** The question before a followed link is used. */
export function Proposed({ code, entity, running, accept }) {
  const opening = useAction(() => accept(code));
  const declining = useAction(decline);
  useEffect(() => { document.title = titled("Open the panel?"); }, []);
  const { refusal } = session();
  const replaces = running && running !== entity;
  return html`
    <${Dialog} title="Open the panel of ${entity}?" close=${() => declining.run()}>
      ${replaces && html`<p>You are in the panel of <strong>${running}</strong>. Opening this link ends that session in every tab
        of this browser.</p>`}
      <p>Open this link only if you asked for it or know its sender. Everyone with access to${" "}
        <strong>${entity}</strong> can see your changes there.</p>
      <${Problem} refusal=${refusal} />
      <div class="actions">
        <button type="button" class="primary" onClick=${() => opening.run()} aria-busy=${opening.busy}>Open the panel</button>
        <button type="button" onClick=${() => declining.run()}>${running ? `Stay in ${running}` : "Do not open it"}</button>
      </div>
    <//>`;
}

/** The page after a sign-out that did not reach the service. */
const NotOut = ({ refusal }) => html`
  <main class="enter">
    <${Brand} />
    <h1>You are not signed out yet</h1>
    <p>The service could not end your session. Until it does, or the session expires, anyone who uses this browser can
      open the panel.</p>
    <${Problem} refusal=${refusal} retry=${leave} />
  </main>`;

/** The dialog after the end of a session. The page behind it keeps all the text that was typed. */
export function EnterAgain() {
  const again = useAction(() => resume());
  const { entity, other, refusal } = session();
  if (IS_FRAMED) return html`<${Interrupted} refusal=${refusal} />`;
  if (other) return html`<${Elsewhere} entity=${entity} other=${other} refusal=${refusal} />`;
  return html`
    <${Dialog} title="Your session has ended">
      <p>This page keeps your input, and continues as soon as you sign in again.</p>
      <p>Paste a new panel link here, or open it in another tab and come back.</p>
      <p><button type="button" onClick=${() => again.run()} aria-busy=${again.busy}>I opened it in another tab</button>
        </p>
      <${Problem} refusal=${refusal} />
      <${Ways} />
    <//>`;
}

/** The dialog in a frame after the end of a session, until the page around it sends a new link. */
const Interrupted = ({ refusal }) => html`
  <${Dialog} title="Your session has ended">
    <p>The panel continues as soon as the page around it opens a new session. Your input is kept until you reload.</p>
    <p>If this takes longer than a few seconds, reload the page.</p>
    <${Problem} refusal=${refusal} />
  <//>`;

/** The dialog after a link of another managing entity replaced the session of this browser. */
const Elsewhere = ({ entity, other, refusal }) => html`
  <${Dialog} title="Another session is open in this browser">
    <p>It is for <strong>${other}</strong>, and this page is for <strong>${entity}</strong>. This page keeps your input while it is
      open, and continues with a panel link for ${entity}.</p>
    <p><button type="button" onClick=${() => location.assign("/panel")}>Go to ${other}</button></p>
    <${Problem} refusal=${refusal} />
    <${Ways} />
  <//>`;
