//! The version of the service's contract in responses and deliveries.

/// The service's version.
pub const SERVICE_VERSION: &str = "2.0";
/// The header with the version, in requests and responses.
pub const SERVICE_VERSION_HEADER: &str = "service-version";
