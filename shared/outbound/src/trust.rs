//! The TLS configuration with the machine's trusted authorities.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::CertificateResult;
use tokio::sync::OnceCell;

use crate::attempt_error::AttemptError;

/// The machine's authorities, read on first use, since most functions never dial. An empty result is not kept, since it
/// may be due to a temporary lack of file descriptors.
#[derive(Debug, Default)]
pub struct Trust(OnceCell<Arc<ClientConfig>>);

impl Trust {
    /// A configuration that has not been read yet.
    pub const fn unread() -> Self {
        Self(OnceCell::const_new())
    }

    /// The TLS configuration with the machine's authorities.
    pub async fn of_machine(&self) -> Result<Arc<ClientConfig>, AttemptError> {
        self.configuration(rustls_native_certs::load_native_certs).await
    }

    /// The TLS configuration. The authorities are read now unless they have been read before.
    pub async fn configuration(
        &self,
        read: impl FnOnce() -> CertificateResult,
    ) -> Result<Arc<ClientConfig>, AttemptError> {
        self.0.get_or_try_init(async || build(read())).await.cloned()
    }
}

fn build(CertificateResult { certs, errors, .. }: CertificateResult) -> Result<Arc<ClientConfig>, AttemptError> {
    for error in errors {
        tracing::warn!(%error, "some of this machine's certificates could not be read and are ignored");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certs);
    if roots.is_empty() {
        tracing::error!(
            "this machine has no readable CA certificates, so TLS connections fail: install CA certificates"
        );
        return Err(AttemptError::Tls("the service could not read its trusted certificates"));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| AttemptError::Tls("the service supports no TLS version"))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{CertificateDer, pem::PemObject};

    use super::*;

    fn found(pem: &[u8]) -> CertificateResult {
        let mut found = CertificateResult::default();
        found.certs = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().expect("certificates");
        found
    }

    #[tokio::test]
    async fn missing_authorities_are_read_again_and_found_ones_are_kept() {
        let trust = Trust::unread();
        let none = trust.configuration(|| found(b"")).await;
        assert!(matches!(none, Err(AttemptError::Tls(_))));
        let first = trust
            .configuration(|| found(include_bytes!("../../storage/src/aws/roots.pem")))
            .await
            .expect("authorities");
        let again = trust.configuration(|| panic!("they are kept")).await.expect("the same");
        assert!(Arc::ptr_eq(&first, &again));
    }
}
