//! The authorities that the machine trusts, as TLS needs them.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::CertificateResult;
use tokio::sync::OnceCell;

use crate::attempt_error::AttemptError;

/// The machine's authorities, read when they are asked for: most cold starts of most functions never dial. Kept from then on,
/// but only if there are any: a moment without free file descriptors leaves none, which would be wrong for ever.
#[derive(Debug, Default)]
pub struct Trust(OnceCell<Arc<ClientConfig>>);

impl Trust {
    /// Nothing was read yet.
    pub const fn unread() -> Self {
        Self(OnceCell::const_new())
    }

    /// What TLS needs, with the machine's authorities.
    pub async fn of_machine(&self) -> Result<Arc<ClientConfig>, AttemptError> {
        self.configuration(rustls_native_certs::load_native_certs).await
    }

    /// What TLS needs, with the authorities that were read before or are read now.
    pub async fn configuration(
        &self,
        read: impl FnOnce() -> CertificateResult,
    ) -> Result<Arc<ClientConfig>, AttemptError> {
        self.0.get_or_try_init(async || build(read())).await.cloned()
    }
}

fn build(CertificateResult { certs, errors, .. }: CertificateResult) -> Result<Arc<ClientConfig>, AttemptError> {
    for error in errors {
        tracing::warn!(%error, "some of the machine's certificates could not be read");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certs);
    if roots.is_empty() {
        tracing::error!(
            "the machine has no certificates of authorities, or none could be read: no certificate can be trusted"
        );
        return Err(AttemptError::Tls("the service could not read which certificates it trusts"));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| AttemptError::Tls("the service has no version of TLS to offer"))?;
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
    async fn no_authority_found_is_looked_for_again_and_one_that_was_found_is_kept() {
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
