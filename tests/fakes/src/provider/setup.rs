//! The configuration of a simulated provider, which covers the differences between real ones.

/// One simulated provider.
#[derive(Clone)]
pub struct Setup {
    /// The first segment of the provider's paths.
    pub name: String,
    /// The client identifier.
    pub client_id: String,
    /// How the client authenticates.
    pub authentication: Authentication,
    /// Whether PKCE is required (RFC 7636).
    pub pkce: bool,
    /// Whether callbacks name the issuer (RFC 9207).
    pub issuer: bool,
    /// The lifetime of an access token in seconds; `None` if it does not expire.
    pub lifetime: Option<u32>,
    /// How using a refresh token affects it.
    pub rotation: Rotation,
    /// The format of a response with tokens.
    pub shape: Shape,
    /// How access is revoked.
    pub revocation: Revocation,
}

/// How a client authenticates.
#[derive(Clone)]
pub enum Authentication {
    /// HTTP Basic with any secret, for a client whose secret the simulator cannot know.
    AnySecret,
    /// HTTP Basic with both parts form-encoded (RFC 6749 §2.3.1).
    Basic(String),
    /// `client_id` and `client_secret` in the form.
    Body(String),
    /// `client_id` and `client_secret` as members of a JSON object, which is the format of the whole request.
    Json(String),
    /// A signed assertion (RFC 7523), verified with this public key (RS256, PKCS #1).
    Assertion(Vec<u8>),
}

/// How using a refresh token affects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// The token remains valid, and responses repeat it.
    Same,
    /// The token remains valid, and responses omit it.
    Unnamed,
    /// A new token replaces it as soon as the new one is used.
    Graceful,
    /// A new token replaces it immediately; using the old one ends the whole grant (RFC 9700 §4.14.2).
    Strict,
}

/// The format of a response with tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The members `expires_in`, `scope` and `account_id`.
    Standard,
    /// The members `expires_at` (in RFC 3339) and `merchant_id`, without a scope; errors are in `errors[]`.
    Square,
    /// The member `stripe_user_id`, without an expiry.
    Stripe,
}

/// How access is revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revocation {
    /// RFC 7009: a POST with the token in a form, authenticated as at the token endpoint.
    Rfc7009,
    /// RFC 7009, but with the method DELETE.
    Delete,
    /// JSON with `client_id` and `access_token` or `merchant_id`, and `Authorization: Client {secret}`.
    Square,
    /// A form with `client_id` and `stripe_user_id`; the secret is a bearer token, or the user name in HTTP Basic.
    Stripe,
}

impl Setup {
    /// A provider that follows RFC 6749 and rotates refresh tokens with a grace period.
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

    /// The client's secret, if the simulator knows it.
    pub(crate) fn secret(&self) -> Option<&str> {
        match &self.authentication {
            Authentication::Basic(secret) | Authentication::Body(secret) | Authentication::Json(secret) => Some(secret),
            Authentication::AnySecret | Authentication::Assertion(_) => None,
        }
    }
}
