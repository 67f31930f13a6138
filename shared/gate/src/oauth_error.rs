//! Problems in the words of an OAuth 2 client (RFC 6749 §5.2).

use problem::ProblemKind;

/// The `error` of RFC 6749 §5.2, or of RFC 8707 §2, for a kind of Problem. A kind for which neither has a word gets the
/// nearest of RFC 6749 §4.1.2.1, which clients know as well.
pub const fn error_code(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::InvalidClient => "invalid_client",
        ProblemKind::InvalidScope => "invalid_scope",
        ProblemKind::InvalidTarget => "invalid_target",
        ProblemKind::UnsupportedResponseType => "unsupported_response_type",
        ProblemKind::UnsupportedGrantType => "unsupported_grant_type",
        ProblemKind::ForeignToken => "unauthorized_client",
        ProblemKind::ServiceUnavailable | ProblemKind::TooManyAttempts => "temporarily_unavailable",
        ProblemKind::InternalError => "server_error",
        _ => "invalid_request",
    }
}

/// A detail in the characters that RFC 6749 §5.2 allows: printable ASCII without `"` and `\`.
pub fn error_description(detail: &str) -> String {
    detail
        .chars()
        .map(|letter| if matches!(letter, ' '..='~') && letter != '"' && letter != '\\' { letter } else { '\'' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_only_the_characters_that_the_rfc_allows() {
        assert_eq!(error_description("no \"x\" \\ or é\n!"), "no 'x' ' or ''!");
    }
}
