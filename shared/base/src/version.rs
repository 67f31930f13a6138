//! The version of the service's contract, as responses and deliveries carry it.

/// The one version of the service.
pub const SERVICE_VERSION: &str = "2.0";
/// The header that carries it, both ways.
pub const SERVICE_VERSION_HEADER: &str = "service-version";
