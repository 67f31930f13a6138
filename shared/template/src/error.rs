//! The errors of reading a template.

use crate::{ScheduleError, YamlError};

/// Why a string is not a supported template.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The text is not YAML.
    #[error("the template is not one YAML document")]
    Yaml(#[source] YamlError),
    /// A required part is missing.
    #[error("the template has no `{0}`")]
    Section(&'static str),
    /// A resource's member is missing or has an unsupported form.
    #[error("{resource}: missing or not understood: {what}")]
    Member {
        /// The resource's logical id.
        resource: String,
        /// The member.
        what: &'static str,
    },
    /// A schedule's expression is not understood.
    #[error(transparent)]
    Schedule(ScheduleError),
    /// A schedule's input is not JSON.
    #[error("a schedule's input is not JSON")]
    Input(#[source] serde_json::Error),
}
