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

use gate::PathBeside;

pub use application::Application;
pub use client_key::ClientKey;
pub use client_secret::ClientSecret;
pub use store::Applications;

/// The path that stands beside an application's own, in the place of its identifier: `…/application/list`.
pub const PATHS_BESIDE: &[PathBeside] = &[PathBeside { parameter: "clientId", name: "list", verb: "GET" }];

/// The name of the path parameter that holds an application's identifier.
const CLIENT_ID_PARAMETER: &str = "clientId";
