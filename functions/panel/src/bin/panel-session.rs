//! POST /panel/session: opens a link with its code, or renews the session of the cookie. DELETE /panel/session: ends
//! it.

use base::audit::Action;
use function::{Service, StartError};
use functions_panel::origin;
use gate::{Call, Reply, endpoints};
use http::{Method, header::SET_COOKIE};
use issuer::{
    oauth::signing_keys::SigningKeyCache,
    panel::{
        PanelError, SessionFault,
        cookie::SessionCookies,
        frame_ancestors::FrameAncestors,
        sessions::{OpenSession, PanelSessions, SessionRequest},
    },
};
use problem::{Problem, ProblemKind, no_input};
use storage::SecretSettings;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, ancestors)) = Service::start::<(SecretSettings, FrameAncestors)>().await?;
    let tokens = service.tokens();
    let issuer = SigningKeyCache::start(service.secrets(secrets), tokens.clone(), service.clock()).await;
    let sessions = PanelSessions::new(&service.table(), issuer, tokens.audience().clone(), service.random());
    let base_url = service.settings().base_url.clone();
    let endpoint = SessionEndpoint { sessions, cookies: SessionCookies::of(&base_url, &ancestors), base_url };
    service.serve(endpoints::PANEL_SESSION, endpoint, admit).await
}

/// Opens, renews and ends sessions.
struct SessionEndpoint {
    sessions: PanelSessions,
    cookies: SessionCookies,
    base_url: String,
}

async fn admit(endpoint: &SessionEndpoint, call: Call) -> Result<Reply, Problem> {
    let outcome =
        if call.method() == Method::DELETE { endpoint.close(&call).await } else { endpoint.open(&call).await };
    // Make the browser delete a cookie that has no session.
    outcome.map_err(|problem| match problem.kind {
        ProblemKind::NoPanelSession if !endpoint.is_first_visit(&call) => {
            problem.with_header(SET_COOKIE, endpoint.cookies.take())
        }
        _ => problem,
    })
}

impl SessionEndpoint {
    async fn open(&self, call: &Call) -> Result<Reply, Problem> {
        let wanted = SessionRequest::read(&call.body)?;
        if wanted.code.is_some() {
            call.notes.action(Action::OpenPanelSession);
        }
        origin::check(call.headers(), &self.base_url)?;
        let session = match &wanted.code {
            Some(code) => self.sessions.open(code, &call.notes, call.now).await,
            None => self.sessions.renew(self.session_key(call), &call.notes, call.now).await,
        };
        match session {
            // The page asks on each visit, so a browser without a session is not an error.
            Err(PanelError::Session(SessionFault::NoCookie)) if self.is_first_visit(call) => {
                Ok(Reply::no_content().uncached())
            }
            session => self.let_in(&session?, call),
        }
    }

    /// Whether the browser sent no session cookie, rather than several.
    fn is_first_visit(&self, call: &Call) -> bool {
        call.cookies(self.cookies.name()).is_empty()
    }

    fn session_key<'a>(&self, call: &'a Call) -> Option<&'a str> {
        SessionCookies::key(&call.cookies(self.cookies.name()))
    }

    fn let_in(&self, session: &OpenSession, call: &Call) -> Result<Reply, Problem> {
        let cookie = self.cookies.give(&session.key);
        Reply::ok(&session.view(call.now))?.uncached().with_computed_header(SET_COOKIE, &cookie)
    }

    async fn close(&self, call: &Call) -> Result<Reply, Problem> {
        call.notes.action(Action::EndPanelSession);
        origin::check(call.headers(), &self.base_url)?;
        no_input(&call.body)?;
        self.sessions.end(self.session_key(call), &call.notes, call.now).await?;
        Reply::no_content().uncached().with_computed_header(SET_COOKIE, &self.cookies.take())
    }
}
