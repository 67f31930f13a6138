#![doc = include_str!("../README.md")]

pub mod entity;
pub mod jws;
pub mod keys;
pub mod public_key;
pub mod refusal;
mod remembered;
pub mod resource;
pub mod revocations;
pub mod scope;
pub mod signing;
pub mod token;
pub mod verifier;

pub use entity::{AuthorizedEntity, Entities, EntityId, NotAnEntity, OwnerView};
pub use resource::Resource;
pub use scope::{Scope, Scopes, UnknownScope};
pub use token::{Audience, Claims, TokenFault};
pub use verifier::{Unverified, Verifier};
