//! The settings of the geo-IP store and downloads.

use std::path::PathBuf;

use base::{
    Environment, FromEnvironment,
    environment::{AtLeastOne, Switch},
};
use outbound::addresses::{AddressRules, Networks};

use crate::StoreAddress;

/// The settings of the geo-IP store and downloads: `GEO_IP_STORE`, `GEO_IP_ALLOW_HTTP` and `DELIVERY_ALLOWED_NETWORKS`.
#[derive(Debug, Clone)]
pub struct GeoIpSettings {
    /// `file:///folder` or `s3://bucket/prefix`.
    pub store: StoreAddress,
    /// The rules for providers' addresses: the networks of deliveries, and `http` only on one machine.
    pub rules: AddressRules,
    /// `TMPDIR`: the folder for temporary files.
    pub scratch: PathBuf,
    /// `AWS_LAMBDA_FUNCTION_MEMORY_SIZE`, in MB: databases are verified in memory.
    pub memory: u32,
}

/// The settings of geo-IP downloads: `GEO_IP_ALLOW_HTTP` and `DELIVERY_ALLOWED_NETWORKS`.
#[derive(Debug, Clone)]
pub struct FetchSettings {
    /// The rules for providers' addresses.
    pub rules: AddressRules,
}

impl FromEnvironment for FetchSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let networks = environment.parsed("DELIVERY_ALLOWED_NETWORKS", Networks(Vec::new()));
        let allow_http = environment.parsed("GEO_IP_ALLOW_HTTP", Switch(false));
        Some(Self { rules: AddressRules { allowed_networks: networks?.0, allow_http: allow_http?.0 } })
    }
}

impl FromEnvironment for GeoIpSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let store = environment.required("GEO_IP_STORE").and_then(|address| {
            address.parse().map_err(|error| environment.fault("GEO_IP_STORE", &address, &error)).ok()
        });
        let fetching = FetchSettings::from_environment(environment);
        let memory = environment.parsed("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", AtLeastOne(512));
        let scratch = environment.optional("TMPDIR").unwrap_or_else(|| "/tmp".to_owned()).into();
        Some(Self { store: store?, rules: fetching?.rules, scratch, memory: memory?.0 })
    }
}
