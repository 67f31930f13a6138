#![doc = include_str!("../README.md")]
// The futures from the runtime down to the SDK are nested deeper than the default limit.
#![recursion_limit = "256"]

mod whole_table;

pub mod applications;
pub mod canary;
pub mod data_keys;
pub mod deliveries;
pub mod demo_provider;
pub mod deployment;
pub mod failing_webhooks;
pub mod geo_ip_databases;
pub mod guesses;
pub mod panel_links;
pub mod provision;
pub mod signing_keys;

pub use deployment::{Deployment, DeploymentError};
