// Opens the session: with the code of a link, or with the cookie of a session that goes on.

const code = new URLSearchParams(location.hash.slice(1)).get('code');
// The code must not stay in the address, where a bookmark would keep it.
if (code) history.replaceState(null, '', location.pathname + location.search);

const show = (text) => {
  document.getElementById('panel').firstElementChild.textContent = text;
};

const answer = await fetch('/panel/session', {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: code ? JSON.stringify({ code }) : undefined,
});
const body = await answer.json();
show(answer.ok ? `The panel of ${body.managingEntity} is open until ${body.sessionEndsDate}.` : body.detail);
