//! What IAM decides on: one access that a call makes.

use std::fmt;

/// An action on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// The name of the action in policies, such as `dynamodb:GetItem`.
    pub action: String,
    /// The resource's ARN.
    pub resource: String,
    /// The request's partition keys, if any, for the condition key `dynamodb:LeadingKeys`.
    pub leading_keys: Option<Vec<String>>,
}

impl Access {
    /// An access without partition keys.
    pub(crate) fn new(action: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { action: action.into(), resource: resource.into(), leading_keys: None }
    }

    /// Adds these partition keys.
    pub(crate) fn with_keys(self, keys: Vec<String>) -> Self {
        Self { leading_keys: Some(keys), ..self }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.action, self.resource)?;
        match &self.leading_keys {
            Some(keys) => write!(f, " for {}", keys.join(", ")),
            None => Ok(()),
        }
    }
}
