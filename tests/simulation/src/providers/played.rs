//! The simulated providers: permissions, codes and tokens (RFC 6749), and how they end (RFC 7009).

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use base::pause;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::{Mood, Provider};
use crate::{
    endpoints::{Request, read},
    journal::Actor,
    sandbox::Sandbox,
    world::World,
};

/// Longer than the service waits for a provider.
const TOO_LATE: Duration = Duration::from_secs(12);
/// How long tokens are valid at the beginning of a history.
const LIFE: Duration = Duration::from_secs(1_200);

/// The state of all providers.
#[derive(Debug, Default)]
pub struct Played {
    /// Each provider's current reaction; a provider without an entry responds immediately.
    pub moods: BTreeMap<Provider, Mood>,
    /// How long new tokens are valid.
    pub lives: BTreeMap<Provider, Duration>,
    /// All permissions that people have given.
    pub grants: Vec<Grant>,
    /// The codes that reached the providers, in order of arrival.
    pub codes: Vec<String>,
}

/// A permission that a person gave.
#[derive(Debug)]
pub struct Grant {
    /// The provider where it was given.
    pub provider: Provider,
    /// The tenant that requested the permission.
    pub tenant: usize,
    /// The person's account.
    pub account: String,
    /// The state that the service sent.
    pub state: String,
    /// The code, which can be used once.
    pub code: String,
    /// When the permission was revoked, in milliseconds.
    pub revoked: Option<u64>,
    /// All tokens issued; only the last ones are valid.
    pub issues: Vec<Issue>,
}

/// Tokens that a provider issued.
#[derive(Debug, Clone)]
pub struct Issue {
    /// The access token.
    pub access: String,
    /// The refresh token.
    pub refresh: String,
    /// When the tokens were issued, in milliseconds.
    pub at: u64,
    /// Whether the complete response was sent in time.
    pub delivered: bool,
    /// The invocation that requested the tokens.
    pub invocation: u64,
}

/// A provider's response: its status, its body, and which tokens the body contains.
struct Answer {
    status: u16,
    body: String,
    issued: Option<(usize, usize)>,
}

impl Answer {
    fn new(status: u16, body: &str) -> Self {
        Self { status, body: body.to_owned(), issued: None }
    }

    fn text(&self) -> String {
        let length = self.body.len();
        format!("HTTP/1.1 {} Played\r\ncontent-length: {length}\r\n\r\n{}", self.status, self.body)
    }
}

impl Played {
    /// Records a permission that a person gives. Returns the code.
    pub fn permit(&mut self, provider: Provider, tenant: usize, account: String, state: String) -> String {
        let code = format!("code-{}", self.grants.len());
        let grant = Grant { provider, tenant, account, state, code: code.clone(), revoked: None, issues: Vec::new() };
        self.grants.push(grant);
        code
    }

    /// Withdraws a tenant's latest permission, as the account's owner can.
    pub fn withdraw(&mut self, provider: Provider, tenant: usize, now: u64) {
        let mut grants = self.grants.iter_mut().rev();
        if let Some(grant) = grants.find(|grant| grant.provider == provider && grant.tenant == tenant) {
            grant.revoked.get_or_insert(now);
        }
    }

    /// Ends all faults. From then on, tokens are valid for half an hour.
    pub fn recover(&mut self) {
        self.moods.clear();
        self.lives = Provider::ALL.map(|provider| (provider, Duration::from_secs(1_800))).into();
    }

    /// Carries out a request at a provider.
    fn work(&mut self, provider: Provider, path: &str, form: &BTreeMap<String, String>, at: (u64, u64)) -> Answer {
        let dead = || Answer::new(400, r#"{"error":"invalid_grant"}"#);
        let member = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        if path.ends_with("/revoke") {
            let token = member("token");
            let grant = self.grants.iter_mut().find(|grant| grant.issues.iter().any(|issue| issue.refresh == token));
            if let Some(grant) = grant {
                grant.revoked.get_or_insert(at.0);
            }
            return Answer::new(200, "{}");
        }
        let number = match member("grant_type") {
            "authorization_code" => {
                let code = member("code");
                self.codes.push(code.to_owned());
                let Some(number) = self.grants.iter().position(|grant| grant.code == code) else { return dead() };
                let grant = &mut self.grants[number];
                if !grant.issues.is_empty() {
                    // RFC 6749 §4.1.2: if a code is presented twice, the tokens issued for it should be revoked.
                    grant.revoked.get_or_insert(at.0);
                }
                number
            }
            _ => {
                let token = member("refresh_token");
                let current = |grant: &Grant| grant.issues.last().is_some_and(|issue| issue.refresh == token);
                let Some(number) = self.grants.iter().position(current) else { return dead() };
                number
            }
        };
        if self.grants[number].revoked.is_some() {
            return dead();
        }
        self.issue(provider, number, at)
    }

    fn issue(&mut self, provider: Provider, number: usize, (now, invocation): (u64, u64)) -> Answer {
        let life = self.lives.get(&provider).copied().unwrap_or(LIFE);
        let grant = &mut self.grants[number];
        let turn = grant.issues.len();
        let access = format!("access-{number}-{turn}");
        let kept = grant.issues.last().filter(|_| provider == Provider::Steady).map(|issue| issue.refresh.clone());
        let is_new = kept.is_none();
        let refresh = kept.unwrap_or_else(|| format!("refresh-{number}-{turn}"));
        let mut body = json!({
            "access_token": access, "token_type": "bearer", "expires_in": life.as_secs(), "account_id": grant.account,
        });
        if is_new {
            body["refresh_token"] = refresh.clone().into();
        }
        grant.issues.push(Issue { access, refresh, at: now, delivered: false, invocation });
        Answer { status: 200, body: body.to_string(), issued: Some((number, turn)) }
    }
}

/// The end of a connection that a provider serves.
pub async fn serve(world: Arc<World>, sandbox: Arc<Sandbox>, is_closed: Arc<AtomicBool>, mut stream: DuplexStream) {
    if let Ok(Some(request)) = read(&mut stream).await {
        react(&world, &sandbox, &mut stream, request).await;
    }
    is_closed.store(true, Relaxed);
}

async fn react(world: &World, sandbox: &Sandbox, stream: &mut DuplexStream, Request { path, body, .. }: Request) {
    let provider = if path.starts_with("/rotating/") { Provider::Rotating } else { Provider::Steady };
    let form: BTreeMap<_, _> = url::form_urlencoded::parse(&body).into_owned().collect();
    let now = world.clock.millis();
    let (mood, answer) = {
        let mut state = world.state();
        let mood = state.providers.moods.get(&provider).copied().unwrap_or(Mood::Answers(5));
        let work =
            |state: &mut crate::world::State| state.providers.work(provider, &path, &form, (now, sandbox.invocation()));
        let answer = mood.works().then(|| work(&mut state));
        if answer.is_none()
            && let Some(code) = form.get("code")
        {
            state.providers.codes.push(code.clone());
        }
        let issued = answer.as_ref().and_then(|answer| answer.issued);
        let time = world.now();
        state
            .journal
            .note(time, Actor::World, || format!("provider {path} reacts {mood:?} to {form:?}, and issues {issued:?}"));
        (mood, answer)
    };
    let answer = answer.unwrap_or_else(|| match mood {
        Mood::ErrorWithSuccess => Answer::new(200, r#"{"error":"temporarily_unavailable"}"#),
        Mood::WrongClient => Answer::new(401, r#"{"error":"invalid_client"}"#),
        _ => Answer::new(500, "{}"),
    });
    let text = match mood {
        Mood::Answers(wait) => {
            pause(Duration::from_millis(wait)).await;
            answer.text()
        }
        Mood::Twice => answer.text().repeat(2),
        Mood::GrantsWithError if answer.issued.is_some() => {
            let body = answer.body.replacen('{', r#"{"error":"temporarily_unavailable","#, 1);
            Answer { body, ..Answer::new(200, "") }.text()
        }
        Mood::TooLate => {
            pause(TOO_LATE).await;
            answer.text()
        }
        Mood::BreaksAfter => return,
        Mood::Half => {
            let mut text = answer.text();
            text.truncate(text.len() - answer.body.len() / 2 - 1);
            text
        }
        Mood::FailsAfter => Answer::new(500, "{}").text(),
        Mood::Busy(seconds) => {
            format!("HTTP/1.1 429 Played\r\nretry-after: {seconds}\r\ncontent-length: 2\r\n\r\n{{}}")
        }
        Mood::Silent => {
            let _ = stream.read(&mut [0]).await;
            return;
        }
        _ => answer.text(),
    };
    let sent = stream.write_all(text.as_bytes()).await.is_ok();
    let whole = matches!(mood, Mood::Answers(_) | Mood::Twice | Mood::GrantsWithError);
    if let Some((grant, turn)) = answer.issued {
        world.state().providers.grants[grant].issues[turn].delivered = sent && whole;
    }
}
