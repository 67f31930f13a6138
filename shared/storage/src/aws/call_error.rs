//! An error of a call to AWS, in words. What the SDK says of an answer that it does not know is a debug form of Rust's, with
//! the whole answer in it.

use std::error::Error;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use base::logging;

/// The code and the message of AWS, or what kept the call from being answered.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct CallError(String);

impl CallError {
    /// The same of an SDK's error.
    pub fn of<E: ProvideErrorMetadata + Error + 'static>(error: &SdkError<E>) -> Self {
        let SdkError::ServiceError(answer) = error else { return Self(logging::chain(error)) };
        Self(match (answer.err().code(), answer.err().message()) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (Some(said), None) | (None, Some(said)) => said.to_owned(),
            (None, None) => format!("status {}", answer.raw().status().as_u16()),
        })
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{
        config::http::HttpResponse,
        error::{ConnectorError, ErrorMetadata},
        operation::get_item::GetItemError,
    };

    use super::*;

    fn answered(metadata: ErrorMetadata) -> String {
        let raw = HttpResponse::new(500.try_into().expect("a status"), "the whole answer".into());
        CallError::of(&SdkError::service_error(GetItemError::generic(metadata), raw)).to_string()
    }

    #[test]
    fn an_error_of_aws_is_a_sentence_and_no_debug_form() {
        let code = || ErrorMetadata::builder().code("InternalServerError");
        assert_eq!(answered(code().message("try again").build()), "InternalServerError: try again");
        assert_eq!(answered(code().build()), "InternalServerError");
        assert_eq!(answered(ErrorMetadata::builder().build()), "status 500");
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let unreachable: SdkError<GetItemError> = SdkError::dispatch_failure(ConnectorError::io(refused.into()));
        let said = CallError::of(&unreachable).to_string();
        assert!(said.ends_with("connection refused") && !said.contains(['{', '(']), "{said}");
    }
}
