//! Reads template.yaml and openapi.yaml, so that routes, settings and the table's shape stand in one place.
//!
//! Three readers share it: `local`, which runs what the template declares; the build scripts of functions that need the
//! routes or the contract at compile time; and the tests that hold template, contract and functions to each other. It
//! is pure (text in, values out) and small, because a build script pays for every dependency twice.

mod error;
mod function;
mod resolve;
mod schedule;
mod store;
mod template;
mod yaml;

pub use error::TemplateError;
pub use function::{Function, QueueTrigger, Route, ScheduleTrigger};
pub use resolve::{Reference, ResolveError, resolve, resolve_to_text};
pub use schedule::ScheduleError;
pub use store::{Queue, Table};
pub use template::Template;
pub use yaml::{YamlError, yaml_to_json};
