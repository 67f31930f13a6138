//! A service's API for one managing entity: tokens, requests and errors.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use hyper::body::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use url::Url;

use crate::{
    failure::{Failure, Problem},
    http_client::{Answer, Client, Outgoing},
    login::{StoredLogin, checked_address},
    machine,
    output::{compact_json, remark},
    profile::Profile,
};

const VERSION: HeaderValue = HeaderValue::from_static("2.0");
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("waypost-cli/", env!("CARGO_PKG_VERSION")));
/// The maximum duration of a request, except a long poll.
pub const WITHIN: Duration = Duration::from_secs(30);
/// The shortest and longest wait for the service's limits, which are counted in windows of minutes.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// How long before expiry a token is renewed, so that it does not expire in transit.
const RENEWED_BEFORE: Duration = Duration::from_secs(60);

/// A service with an application's login.
pub struct Service {
    pub login: StoredLogin,
    client: Client,
    issuer: Url,
    issuer_client: Client,
    token: Mutex<Option<HeldToken>>,
}

struct HeldToken {
    text: String,
    renewed_at: Instant,
}

#[derive(Deserialize, Serialize)]
pub struct TokenAnswer {
    pub access_token: String,
    pub token_type: String,
    pub expires_in: u64,
    #[serde(default)]
    pub scope: String,
}

/// A request below the managing entity's path.
#[derive(Clone)]
pub struct Call<'a> {
    pub method: Method,
    /// The path segments after the managing entity.
    pub path: &'a [&'a str],
    pub query: &'a [(&'a str, String)],
    /// The body, as JSON.
    pub body: Option<String>,
    /// The idempotency key.
    pub key: Option<String>,
    pub within: Duration,
}

impl<'a> Call<'a> {
    pub fn get(path: &'a [&'a str]) -> Self {
        Self { method: Method::GET, path, query: &[], body: None, key: None, within: WITHIN }
    }

    pub fn post(path: &'a [&'a str], body: impl Serialize) -> Self {
        let body = serde_json::to_string(&body).expect("bodies have texts as names");
        Self { method: Method::POST, path, query: &[], body: Some(body), key: None, within: WITHIN }
    }

    pub fn patch(path: &'a [&'a str], body: impl Serialize) -> Self {
        Self { method: Method::PATCH, ..Self::post(path, body) }
    }

    pub fn delete(path: &'a [&'a str]) -> Self {
        Self { method: Method::DELETE, path, query: &[], body: None, key: None, within: WITHIN }
    }
}

#[derive(Deserialize)]
struct ResourceMetadata {
    authorization_servers: Vec<String>,
}

impl Service {
    /// The service for a profile's login.
    pub async fn of_profile(profile: &Profile) -> Result<Self, Failure> {
        Self::open(StoredLogin::load(profile)?).await
    }

    /// The service for a login. If the login has no issuer, the issuer is the one that the service names.
    pub async fn open(mut login: StoredLogin) -> Result<Self, Failure> {
        let address = parsed(&login.address)?;
        let client = Client::new(&address)?;
        let issuer = match &login.issuer {
            Some(issuer) => issuer.clone(),
            None => issuer_of(&client, &login.address).await?,
        };
        let url = parsed(&issuer)?;
        login.issuer = Some(issuer);
        let issuer_client = Client::new(&url)?;
        Ok(Self { login, client, issuer: url, issuer_client, token: Mutex::new(None) })
    }

    /// Gets a new token, which later requests also use.
    pub async fn new_token(&self) -> Result<TokenAnswer, Failure> {
        waiting_for_limits(async || self.requested_token().await).await
    }

    /// A token's rights, as the issuer shows them (RFC 7662).
    pub async fn introspection(&self, token: &str) -> Result<String, Failure> {
        waiting_for_limits(async || self.sent_to_issuer("introspect", ("token", token)).await).await
    }

    /// Sends a form with a parameter and the application's credentials to the issuer.
    async fn sent_to_issuer(&self, endpoint: &str, (name, value): (&str, &str)) -> Result<String, Failure> {
        let url = with_path(&self.issuer, &["oauth2", endpoint]);
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair(name, value)
            .append_pair("client_id", &self.login.client_id)
            .append_pair("client_secret", &self.login.client_secret)
            .finish();
        let mut headers = common_headers();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let outgoing = Outgoing { method: Method::POST, url: &url, headers, body: form.into(), within: WITHIN };
        exchanged(&self.issuer_client, outgoing).await
    }

    async fn requested_token(&self) -> Result<TokenAnswer, Failure> {
        let text = self.sent_to_issuer("token", ("grant_type", "client_credentials")).await?;
        let answer: TokenAnswer = json(&self.issuer, &text)?;
        let lifetime = Duration::from_secs(answer.expires_in);
        let renewed_at = Instant::now() + lifetime.saturating_sub(RENEWED_BEFORE.min(lifetime / 4));
        *self.held() = Some(HeldToken { text: answer.access_token.clone(), renewed_at });
        Ok(answer)
    }

    /// Sends a request, and returns the response's text. Waits while one of the service's limits is reached.
    pub async fn text(&self, call: Call<'_>) -> Result<String, Failure> {
        waiting_for_limits(async || self.authorized(&call).await).await
    }

    /// Sends a request with a token. A refused token is renewed once: it may have been revoked, or the issuer's keys may
    /// have been replaced.
    async fn authorized(&self, call: &Call<'_>) -> Result<String, Failure> {
        let (token, is_new) = self.token().await?;
        match self.sent(call, &token).await {
            Err(failure) if failure.is_of_kind("unauthorized") && !is_new => {
                let token = self.new_token().await?.access_token;
                self.sent(call, &token).await
            }
            answered => answered,
        }
    }

    /// Sends a request, and returns the response's value.
    pub async fn call<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, Failure> {
        self.read(&self.text(call).await?)
    }

    /// Parses a response's text.
    pub fn read<T: DeserializeOwned>(&self, text: &str) -> Result<T, Failure> {
        serde_json::from_str(text).map_err(|_| self.unexpected())
    }

    /// The failure for a response that is not from Waypost.
    pub fn unexpected(&self) -> Failure {
        Failure::Unexpected { address: self.login.address.clone(), status: 200 }
    }

    async fn token(&self) -> Result<(String, bool), Failure> {
        let held = self.held().as_ref().filter(|held| Instant::now() < held.renewed_at).map(|held| held.text.clone());
        match held {
            Some(token) => Ok((token, false)),
            None => Ok((self.new_token().await?.access_token, true)),
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<HeldToken>> {
        // The value is complete even after a panic elsewhere.
        self.token.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn url(&self, path: &[&str]) -> Url {
        let address = parsed(&self.login.address).expect("it was parsed when the service was opened");
        let entity = ["api", "managing-entity", &self.login.entity];
        with_path(&address, &entity.iter().chain(path).copied().collect::<Vec<_>>())
    }

    async fn sent(&self, call: &Call<'_>, token: &str) -> Result<String, Failure> {
        let mut url = self.url(call.path);
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(call.query);
        }
        let mut headers = common_headers();
        let unusable = |_| Failure::Unexpected { address: self.issuer.to_string(), status: 200 };
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(unusable)?;
        bearer.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, bearer);
        let body = call.body.clone().map(Bytes::from);
        if body.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = &call.key {
            let key = HeaderValue::from_str(key).expect("keys have printable characters only");
            headers.insert(HeaderName::from_static("idempotency-key"), key);
        }
        let body = body.unwrap_or_default();
        let outgoing = Outgoing { method: call.method.clone(), url: &url, headers, body, within: call.within };
        exchanged(&self.client, outgoing).await.map_err(|failure| failure.of_request(call.path))
    }
}

/// Repeats a request after the pause that the service requests, while one of its limits is reached.
async fn waiting_for_limits<T>(request: impl AsyncFn() -> Result<T, Failure>) -> Result<T, Failure> {
    let begun = Instant::now();
    loop {
        let answered = request().await;
        let wait = answered.as_ref().err().and_then(Failure::wait_for_limit);
        let Some(wait) = wait.filter(|wait| begun.elapsed().saturating_add(*wait) <= LONGEST_WAIT) else {
            return answered;
        };
        let wait = wait.max(SHORTEST_WAIT);
        remark(format!("Rate limit reached: sending the request again in {} s.", wait.as_secs()));
        machine::pause(wait).await;
    }
}

/// The issuer that a service names (RFC 9728), or the service itself if it has no such document. After any other
/// response, the secret is not sent anywhere.
async fn issuer_of(client: &Client, address: &str) -> Result<String, Failure> {
    let url = with_path(&parsed(address)?, &[".well-known", "oauth-protected-resource"]);
    let outgoing =
        Outgoing { method: Method::GET, url: &url, headers: common_headers(), body: Bytes::new(), within: WITHIN };
    let metadata: ResourceMetadata = match exchanged(client, outgoing).await {
        Ok(text) => json(&url, &text)?,
        Err(failure) if failure.is_missing() => return Ok(address.to_owned()),
        Err(failure) => return Err(failure),
    };
    let named = metadata.authorization_servers.into_iter().next();
    named.map_or_else(|| Ok(address.to_owned()), |issuer| checked_address(&issuer))
}

fn common_headers() -> HeaderMap {
    HeaderMap::from_iter([
        (header::USER_AGENT, USER_AGENT),
        (header::ACCEPT, HeaderValue::from_static("application/json")),
        (HeaderName::from_static("service-version"), VERSION),
    ])
}

/// Sends a request, and returns the text of a 2xx response.
async fn exchanged(client: &Client, outgoing: Outgoing<'_>) -> Result<String, Failure> {
    let url = outgoing.url.clone();
    let answer = client
        .send(outgoing)
        .await
        .map_err(|reason| Failure::Unreachable { address: url.origin().ascii_serialization(), reason })?;
    let text = String::from_utf8_lossy(&answer.body);
    if (200..300).contains(&answer.status) { Ok(text.into_owned()) } else { Err(refusal(&url, &answer, &text)) }
}

fn refusal(url: &Url, answer: &Answer, text: &str) -> Failure {
    let Ok(mut problem) = serde_json::from_str::<Box<Problem>>(text) else {
        return Failure::Unexpected { address: url.origin().ascii_serialization(), status: answer.status };
    };
    let seconds = answer.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    problem.retry_after = seconds.and_then(|seconds| seconds.parse().ok());
    problem.json = compact_json(text);
    Failure::Refused(problem)
}

fn json<T: DeserializeOwned>(url: &Url, text: &str) -> Result<T, Failure> {
    let unexpected = |_| Failure::Unexpected { address: url.origin().ascii_serialization(), status: 200 };
    serde_json::from_str(text).map_err(unexpected)
}

fn parsed(address: &str) -> Result<Url, Failure> {
    address.parse().map_err(|_| Failure::Usage(format!("`{address}` is not an address: run `waypost login`")))
}

/// An address with further segments, each encoded.
fn with_path(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

/// Checks a name that becomes a segment of an address: an empty name, or one consisting only of dots, leads to another
/// address.
pub fn segment(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        "." | ".." => Err("it has only dots".to_owned()),
        name => Ok(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_in_paths() {
        let url = with_path(&parsed("https://api.example/stage").expect("an address"), &["webhook", "a/b ?", "ü"]);
        assert_eq!(url.as_str(), "https://api.example/stage/webhook/a%2Fb%20%3F/%C3%BC");
        let root = with_path(&parsed("https://api.example").expect("an address"), &["oauth2", "token"]);
        assert_eq!(root.as_str(), "https://api.example/oauth2/token");
    }
}
