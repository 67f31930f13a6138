#![doc = include_str!("../README.md")]

mod contract;
mod error;
mod function;
mod resolve;
mod schedule;
mod store;
mod template;
mod yaml;

pub use contract::contract;
pub use error::TemplateError;
pub use function::{Function, QueueTrigger, Route, ScheduleTrigger};
pub use resolve::{Reference, ResolveError, resolve, resolve_to_text};
pub use schedule::ScheduleError;
pub use store::{Queue, Table};
pub use template::Template;
pub use yaml::{YamlError, yaml_to_json};
