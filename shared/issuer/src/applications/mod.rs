//! Applications: the clients of the token issuer, how their credentials are kept, and how their
//! owners manage them.

pub mod application;
pub mod client_key;
pub mod client_secret;
pub mod credential_allowance;
pub mod credential_removal;
pub mod grants;
pub mod keys;
pub mod left;
pub mod new_application;
pub mod register;
pub mod remove;
pub mod secrets;
pub mod show;
pub mod store;
pub mod view;

pub use application::Application;
pub use client_key::ClientKey;
pub use client_secret::ClientSecret;
pub use store::Applications;
