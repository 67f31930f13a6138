// Coming in: by a panel link, and by an application's id and secret where the deployment allows it.
import { html, useEffect, useState } from "../parts/html.js";
import { decline, enter, leave, resume, session, signIn } from "../session.js";
import { Brand } from "../parts/frame.js";
import { Dialog } from "../parts/dialog.js";
import { Problem } from "../parts/problem.js";
import { TextField } from "../parts/field.js";
import { useAction } from "../parts/load.js";

/** Whether an application's id and secret are taken here. The page says so, as the deployment is set up. */
const takesCredentials = () => document.querySelector('meta[name="sign-in"]')?.content.includes("credentials");

/** The code in a panel link, or in what was copied of it. */
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
      <${TextField} label="Panel link" hint="It works once, for ten minutes after it was made." value=${link}
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
        required hint="It goes to the token issuer and is not kept." />
      ${wantsEntity && html`<${TextField} label="Managing entity" fault=${signingIn.refusal?.violation("entity")}
        value=${given.entity} change=${set("entity")} spellcheck="false" />`}
      <button class="primary" aria-busy=${signingIn.busy}>Sign in</button>
      <${Problem} refusal=${signingIn.refusal} beside=${["entity"]} />
    </form>`;
}

const Ways = () => html`
  <${ByLink} />
  ${takesCredentials() && html`<details class="other-way"><summary>Sign in with an application’s id and secret</summary>
    <${ByCredentials} /></details>`}`;

export function Enter() {
  const { left, unended, refusal } = session();
  useEffect(() => { document.title = "Waypost"; }, []);
  if (unended) return html`<${NotOut} refusal=${refusal} />`;
  return html`
    <main class="enter">
      <${Brand} />
      <h1>${left ? "You are signed out" : "Come in by a panel link"}</h1>
      <${Problem} refusal=${refusal} retry=${refusal?.kind === "unreachable" && resume} />
      <p>A panel link lets you see one managing entity’s webhooks and deliveries, for a while, without a password.
        Whoever runs your integration makes one with a call to <code>…/panel/link
        </code>; on one machine, <code>make panel</code> prints one. A link works once, and ends when you sign out.</p>
      <${Ways} />
    </main>`;
}

/** The question before a link that was followed is used. */
export function Proposed({ code, entity, running, accept }) {
  const opening = useAction(() => accept(code));
  const declining = useAction(decline);
  useEffect(() => { document.title = "Open the panel? · Waypost"; }, []);
  const replaces = running && running !== entity;
  return html`
    <${Dialog} title="Open the panel of ${entity}?" close=${() => declining.run()}>
      ${replaces && html`<p>You are in the panel of <strong>${running}</strong>. Opening this link ends that session in every tab
        of this browser.</p>`}
      <p>A link led here. Open it only if you asked for it or know who sent it: what you type there is seen by others who have
        access to <strong>${entity}</strong>.</p>
      <div class="actions">
        <button type="button" class="primary" onClick=${() => opening.run()} aria-busy=${opening.busy}>Open the panel</button>
        <button type="button" onClick=${() => declining.run()}>${running ? `Stay in ${running}` : "Do not open it"}</button>
      </div>
    <//>`;
}

/** The service could not be told that the session is to end. */
const NotOut = ({ refusal }) => html`
  <main class="enter">
    <${Brand} />
    <h1>You are not signed out yet</h1>
    <p>The service could not end your session. Until it does, or the session comes to its end, the panel opens for everybody at
      this browser.</p>
    <${Problem} refusal=${refusal} retry=${leave} />
  </main>`;

/** The session has ended while a page is open. The page stays as it is, with all that was typed. */
export function EnterAgain() {
  const again = useAction(() => resume());
  const { entity, other, refusal } = session();
  if (other) return html`<${Elsewhere} entity=${entity} other=${other} refusal=${refusal} />`;
  return html`
    <${Dialog} title="Your session has ended">
      <p>Nothing that you typed is lost: this page goes on where it is as soon as you are in again.</p>
      <p>Open a new panel link in another tab and come back here, or paste it.</p>
      <p><button type="button" onClick=${() => again.run()} aria-busy=${again.busy}>I opened one in another tab</button>
        </p>
      <${Problem} refusal=${refusal} />
      <${Ways} />
    <//>`;
}

/** A link of another managing entity was opened in this browser, and took the session's place. */
const Elsewhere = ({ entity, other, refusal }) => html`
  <${Dialog} title="Another session is open in this browser">
    <p>It is for <strong>${other}</strong>, and this page is for <strong>${entity}</strong>. What you typed stays here as long as
      this page is open; it goes on with a panel link for ${entity}.</p>
    <p><button type="button" onClick=${() => location.assign("/panel")}>Go to ${other}</button></p>
    <${Problem} refusal=${refusal} />
    <${Ways} />
  <//>`;
