//! Why a connection's last refresh returned no new tokens, as the connection's owner sees it.

use std::fmt;

use outbound::AttemptError;
use serde::{Deserialize, Serialize};

/// The code for a fault of this service.
const SERVICE: &str = "service";
/// Separates the code from the sentence in the table.
const SEPARATOR: &str = ": ";

/// A stable code and a sentence that reveals no internals of this service and no text from the provider. The table
/// stores both as one string, as release 1.0.0 did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct LastError {
    /// The code, one of `ConnectionErrorCode` in openapi.yaml.
    pub code: String,
    /// The sentence.
    pub detail: String,
}

impl LastError {
    /// An error with this code and sentence.
    pub fn new(code: &str, detail: impl Into<String>) -> Self {
        Self { code: code.to_owned(), detail: detail.into() }
    }

    /// A fault of this service, which its operator has to fix.
    pub fn of_service() -> Self {
        Self::new(
            SERVICE,
            "this service cannot request new tokens from the provider until its operator fixes the \
                            fault",
        )
    }
}

impl fmt::Display for LastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{SEPARATOR}{}", self.code, self.detail)
    }
}

impl From<LastError> for String {
    fn from(error: LastError) -> Self {
        error.to_string()
    }
}

impl From<String> for LastError {
    fn from(text: String) -> Self {
        match text.split_once(SEPARATOR) {
            Some((code, detail)) => Self::new(code, detail),
            None => Self::new(SERVICE, text),
        }
    }
}

impl From<&AttemptError> for LastError {
    fn from(error: &AttemptError) -> Self {
        error.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_sentence_are_read_back_as_they_were_written() {
        let refused = LastError::new("status", "the provider answered 503: try later");
        for error in [refused, LastError::of_service(), (&AttemptError::Dns("no such name")).into()] {
            let stored = serde_json::to_value(&error).expect("JSON");
            assert_eq!(stored, format!("{}: {}", error.code, error.detail));
            assert_eq!(serde_json::from_value::<LastError>(stored).expect("an error"), error);
        }
    }

    #[test]
    fn an_attempt_without_an_answer_keeps_its_code() {
        assert_eq!(LastError::from(&AttemptError::Dns("no such name")), LastError::new("dns", "no such name"));
    }
}
