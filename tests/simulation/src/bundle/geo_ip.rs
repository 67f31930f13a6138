//! The use cases for geo-IP databases in one sandbox.

use std::{path::PathBuf, sync::Arc};

use geo_ip::{Store, StoreAddress, Task, settings::GeoIpSettings};
use storage::secrets::Secrets;

use super::{Bundle, rules};
use crate::{
    aws::{SECRETS_PREFIX, bucket::BUCKET},
    geo_ip::{ENVIRONMENT, ProviderWires},
};

impl Bundle {
    fn address(&self) -> StoreAddress {
        StoreAddress::S3 { bucket: BUCKET.to_owned(), prefix: String::new() }
    }

    /// The use case that updates databases.
    pub fn geo_ip(&self) -> Task {
        let settings = GeoIpSettings { store: self.address(), rules: rules(), scratch: self.scratch(), memory: 512 };
        let secrets = Secrets::connect(&self.aws, SECRETS_PREFIX);
        let network = ProviderWires { world: Arc::clone(&self.world), sandbox: Arc::clone(&self.sandbox) };
        Task::new(&self.aws, secrets, settings, ENVIRONMENT.to_owned(), self.clock.clone(), self.random.clone())
            .on(Arc::new(network))
    }

    /// The published databases, for an operator.
    pub fn geo_ip_store(&self) -> Store {
        Store::open(self.address(), &self.aws)
    }

    /// The folder that serves as the sandbox's disk.
    fn scratch(&self) -> PathBuf {
        let folder = self.disk.get_or_init(|| tempfile::tempdir().expect("this machine has room for a folder"));
        folder.path().to_owned()
    }
}
