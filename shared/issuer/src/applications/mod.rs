//! Applications: the clients of the token issuer, their credentials, and their management by their owners.

mod application;
pub mod caller;
pub mod change;
pub(crate) mod client_key;
pub mod client_secret;
pub mod credential_removal;
mod error;
mod key_material;
pub mod keys;
pub mod manage;
pub mod new_application;
pub mod register;
pub mod secrets;
mod store;
mod view;

pub use application::Application;
pub use client_key::ClientKey;
pub use client_secret::ClientSecret;
pub use error::ApplicationError;
pub use store::Applications;
