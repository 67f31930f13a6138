//! What IAM is asked for one part of a call.

use std::fmt;

/// An action on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// As policies name it: `dynamodb:GetItem`.
    pub action: String,
    /// The resource's ARN.
    pub resource: String,
    /// The partition keys that the request names, where it names any: the condition key `dynamodb:LeadingKeys`.
    pub leading_keys: Option<Vec<String>>,
}

impl Access {
    /// An action that is about no partition.
    pub(crate) fn new(action: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { action: action.into(), resource: resource.into(), leading_keys: None }
    }

    /// The same with these partition keys.
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
