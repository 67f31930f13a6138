//! Applications: the clients of the token issuer, how their credentials are kept, and how their owners manage them.

pub mod application;
pub mod client_key;
pub mod client_secret;
pub mod credential_removal;
mod grants;
pub mod keys;
pub mod new_application;
pub mod register;
pub mod remove;
pub mod secrets;
pub mod show;
pub mod store;
mod view;

pub use application::Application;
pub use client_key::ClientKey;
pub use client_secret::ClientSecret;
pub use store::Applications;

/// The name of the path parameter that holds an application's identifier.
const CLIENT_ID_PARAMETER: &str = "clientId";
