//! The work of operators on a deployment, on AWS or in a folder of this machine: they provide it with secrets and keys before
//! its first request, and look after its keys, applications and data. Not part of any deployed binary.
//!
//! Each module is a use case without a terminal. The program `waypost-admin` (`operator/waypost-admin`) reads its arguments,
//! calls one of them and prints the result. `local` calls the same ones when it starts.

// Futures within futures: from the runtime down to the SDK's innermost they are deeper than the compiler expects.
#![recursion_limit = "256"]

mod audit;

pub mod applications;
pub mod data_keys;
pub mod deployment;
pub mod geo_ip_databases;
pub mod private_file;
pub mod provision;
pub mod replaced_secret;
pub mod signing_keys;
pub mod webhook_index;

pub use deployment::{Deployment, DeploymentError};
