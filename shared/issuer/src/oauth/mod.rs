//! The token issuer: OAuth 2's client_credentials grant (RFC 6749 §4.4), introspection, revocation, and the issuer's
//! metadata (RFC 8414).

pub mod assertion;
pub mod client_authentication;
pub mod client_credentials;
pub mod credentials;
pub mod form;
pub mod guesses;
pub mod introspect;
pub mod metadata;
pub mod pepper;
pub mod revoke;
pub mod signing_keys;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod token_form;
