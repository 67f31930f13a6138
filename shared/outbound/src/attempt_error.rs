//! Errors of exchanges and of TLS, as sentences for the endpoint's owner.

use std::{error::Error as StdError, io};

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

/// Why an exchange failed: a stable code and a sentence that reveals no internals of this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// The name does not resolve.
    #[error("dns: {0}")]
    Dns(&'static str),
    /// The connection could not be opened, broke, or did not speak HTTP.
    #[error("connect: {0}")]
    Connect(&'static str),
    /// TLS failed.
    #[error("tls: {0}")]
    Tls(&'static str),
    /// A step took too long.
    #[error("timeout: {0}")]
    Timeout(&'static str),
    /// The rules forbid the address.
    #[error("blocked: {0}")]
    Blocked(&'static str),
}

/// The reason for this error, if TLS caused it. Any read may return it: in TLS 1.3, a server rejects a missing client
/// certificate only after the client has finished the handshake (RFC 8446 §4.4.2.4).
pub(crate) fn tls_reason(error: &(dyn StdError + 'static)) -> Option<&'static str> {
    cause(error).map(sentence)
}

/// An error's first cause of this type.
pub(crate) fn cause<'e, E: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        // The `source` of an I/O error skips the inner error.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let found = inner.and_then(|inner| inner.downcast_ref()).or_else(|| error.downcast_ref());
        if found.is_some() {
            return found;
        }
        next = error.source();
    }
    None
}

fn sentence(error: &Error) -> &'static str {
    match error {
        Error::InvalidCertificate(error) => certificate(error),
        Error::NoCertificatesPresented => "the endpoint sent no certificate",
        Error::AlertReceived(alert) => received(*alert),
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType
            | InvalidMessage::UnknownProtocolVersion
            | InvalidMessage::MessageTooLarge
            | InvalidMessage::InvalidEmptyPayload,
        ) => "the endpoint does not speak TLS on this port",
        Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled,
        ) => "the endpoint supports neither TLS 1.2 nor TLS 1.3",
        Error::PeerIncompatible(_) => "the endpoint and the service share no cipher suite or key exchange",
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            "the endpoint sent an unreadable TLS message"
        }
        Error::PeerMisbehaved(_) | Error::DecryptError | Error::PeerSentOversizedRecord => {
            "the endpoint violated the TLS protocol"
        }
        _ => "the endpoint and the service could not agree on TLS",
    }
}

fn certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the endpoint's certificate, or one in its chain, has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the endpoint's certificate, or one in its chain, is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the endpoint's certificate is not valid for its name"
        }
        CertificateError::UnknownIssuer => {
            "the endpoint's certificate is self-signed, its issuer is not trusted, or an intermediate certificate is missing"
        }
        CertificateError::Revoked => "the endpoint's certificate is revoked",
        CertificateError::BadSignature => "the signature on the endpoint's certificate is wrong",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the endpoint's certificate is not a server certificate"
        }
        CertificateError::BadEncoding => "the endpoint's certificate cannot be read",
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "the endpoint's certificate is signed with an algorithm that is not supported"
        }
        // For example, the certificate that `openssl req -x509` creates, which belongs to a certificate authority.
        CertificateError::Other(_) => "the endpoint's certificate is not valid; it may be self-signed",
        _ => "the endpoint's certificate is not valid",
    }
}

/// The sentence for an alert. This service presents no client certificate, so a server that rejects the client's
/// certificate requires one.
fn received(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::CertificateRequired
        | AlertDescription::BadCertificate
        | AlertDescription::NoCertificate
        | AlertDescription::CertificateUnknown => "the endpoint requires a client certificate",
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            "the endpoint refused the TLS handshake: no cipher suite is shared, or a client certificate is required"
        }
        AlertDescription::ProtocolVersion => "the endpoint supports neither TLS 1.2 nor TLS 1.3",
        AlertDescription::UnrecognisedName => "the endpoint has no certificate for its name",
        AlertDescription::AccessDenied => "the endpoint denied access during the TLS handshake",
        AlertDescription::InternalError => "the endpoint ended the TLS connection with an internal error",
        _ => "the endpoint ended the TLS connection with an alert",
    }
}
