//! How a simulated provider is set up: what the real ones differ in.

/// One simulated provider.
#[derive(Clone)]
pub struct Setup {
    /// The first segment of its paths.
    pub name: String,
    /// The client that it knows.
    pub client_id: String,
    /// How that client shows who it is.
    pub authentication: Authentication,
    /// Whether it insists on PKCE (RFC 7636).
    pub pkce: bool,
    /// Whether its callbacks name their issuer (RFC 9207).
    pub issuer: bool,
    /// How long an access token lives, in seconds, if it ends at all.
    pub lifetime: Option<u32>,
    /// What becomes of a refresh token that is used.
    pub rotation: Rotation,
    /// What an answer looks like that grants something.
    pub shape: Shape,
    /// How access is given back.
    pub revocation: Revocation,
}

/// How a client shows who it is.
#[derive(Clone)]
pub enum Authentication {
    /// HTTP Basic with any secret: for a client whose secret the simulator cannot know.
    AnySecret,
    /// HTTP Basic, both parts form-encoded (RFC 6749 §2.3.1).
    Basic(String),
    /// `client_id` and `client_secret` in the form.
    Body(String),
    /// The same as members of a JSON object, which then is the form of the whole request.
    Json(String),
    /// A signed assertion (RFC 7523), verified with this public key: RS256, PKCS #1.
    Assertion(Vec<u8>),
}

/// What becomes of a refresh token that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// It stays, and answers repeat it.
    Same,
    /// It stays, and answers do not name it.
    Unnamed,
    /// A new one replaces it, from the first time on that the new one is used.
    Graceful,
    /// A new one replaces it at once; a use of the old one ends the whole grant (RFC 9700 §4.14.2).
    Strict,
}

/// What an answer looks like that grants something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `expires_in`, `scope`, `account_id`.
    Standard,
    /// `expires_at` in RFC 3339, `merchant_id`, no scope; errors in `errors[]`.
    Square,
    /// `stripe_user_id`, no expiry.
    Stripe,
}

/// How access is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revocation {
    /// RFC 7009: a POST with the token in a form; the client shows who it is as with tokens.
    Rfc7009,
    /// The same with the verb DELETE.
    Delete,
    /// JSON with `client_id` and `access_token` or `merchant_id`, and `Authorization: Client {secret}`.
    Square,
    /// A form with `client_id` and `stripe_user_id`; the secret is a bearer token, or the name in HTTP Basic.
    Stripe,
}

impl Setup {
    /// A provider that does what RFC 6749 says, and rotates refresh tokens with a grace.
    pub fn new(name: &str, client_id: &str, authentication: Authentication) -> Self {
        Self {
            name: name.to_owned(),
            client_id: client_id.to_owned(),
            authentication,
            pkce: false,
            issuer: false,
            lifetime: Some(3_600),
            rotation: Rotation::Graceful,
            shape: Shape::Standard,
            revocation: Revocation::Rfc7009,
        }
    }

    /// The client's secret, where there is one and it is known.
    pub(crate) fn secret(&self) -> Option<&str> {
        match &self.authentication {
            Authentication::Basic(secret) | Authentication::Body(secret) | Authentication::Json(secret) => Some(secret),
            Authentication::AnySecret | Authentication::Assertion(_) => None,
        }
    }
}
