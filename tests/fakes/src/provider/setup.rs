//! Configuration of a simulated provider: the differences between the real ones.

/// One simulated provider.
#[derive(Clone)]
pub struct Setup {
    /// The first segment of its paths.
    pub name: String,
    /// The client's identifier.
    pub client_id: String,
    /// The client's authentication.
    pub authentication: Authentication,
    /// Whether PKCE is required (RFC 7636).
    pub pkce: bool,
    /// Whether callbacks name the issuer (RFC 9207).
    pub issuer: bool,
    /// Lifetime of an access token in seconds; `None` if it does not expire.
    pub lifetime: Option<u32>,
    /// What happens when a refresh token is used.
    pub rotation: Rotation,
    /// The format of a response with tokens.
    pub shape: Shape,
    /// How access is revoked.
    pub revocation: Revocation,
}

/// How a client authenticates.
#[derive(Clone)]
pub enum Authentication {
    /// HTTP Basic with any secret: for a client whose secret the simulator cannot know.
    AnySecret,
    /// HTTP Basic, both parts form-encoded (RFC 6749 §2.3.1).
    Basic(String),
    /// `client_id` and `client_secret` in the form.
    Body(String),
    /// `client_id` and `client_secret` as members of a JSON object, which is the format of the whole request.
    Json(String),
    /// A signed assertion (RFC 7523), verified with this public key: RS256, PKCS #1.
    Assertion(Vec<u8>),
}

/// What happens when a refresh token is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// The token remains valid, and responses repeat it.
    Same,
    /// The token remains valid, and responses omit it.
    Unnamed,
    /// A new token replaces it when the new one is first used.
    Graceful,
    /// A new token replaces it at once; using the old one ends the whole grant (RFC 9700 §4.14.2).
    Strict,
}

/// The format of a response with tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `expires_in`, `scope`, `account_id`.
    Standard,
    /// `expires_at` in RFC 3339, `merchant_id`, no scope; errors in `errors[]`.
    Square,
    /// `stripe_user_id`, no expiry.
    Stripe,
}

/// How access is revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revocation {
    /// RFC 7009: a POST with the token in a form, and the client authentication of the token endpoint.
    Rfc7009,
    /// RFC 7009 with the verb DELETE.
    Delete,
    /// JSON with `client_id` and `access_token` or `merchant_id`, and `Authorization: Client {secret}`.
    Square,
    /// A form with `client_id` and `stripe_user_id`; the secret is a bearer token, or the name in HTTP Basic.
    Stripe,
}

impl Setup {
    /// A provider that follows RFC 6749, and rotates refresh tokens with a grace period.
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

    /// The client's secret, if it is known.
    pub(crate) fn secret(&self) -> Option<&str> {
        match &self.authentication {
            Authentication::Basic(secret) | Authentication::Body(secret) | Authentication::Json(secret) => Some(secret),
            Authentication::AnySecret | Authentication::Assertion(_) => None,
        }
    }
}
