//! Applications: the clients of the token issuer, how their credentials are kept, and how their
//! owners manage them.

mod application;
pub mod caller;
pub(crate) mod client_key;
pub mod client_secret;
mod credential_allowance;
pub mod credential_removal;
mod error;
mod key_material;
pub mod keys;
pub mod new_application;
mod published;
pub mod publishing;
pub mod register;
pub mod remaining_credentials;
pub mod remove;
pub mod rename;
pub mod secrets;
pub mod show;
mod store;
mod view;

pub use application::Application;
pub use client_key::ClientKey;
pub use client_secret::ClientSecret;
pub use error::ApplicationError;
pub use store::Applications;
