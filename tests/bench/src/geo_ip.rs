//! Updating a geo-IP database as large as the largest free one, from a local server into a folder, and looking
//! addresses up in it.

use std::{
    error::Error,
    hint::black_box,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use base::{Clock, SystemClock, SystemRandom};
use fakes::{
    UpdateServer,
    update_server::{ACCOUNT, LICENCE_KEY},
};
use geo_ip::{DatabaseReader, EditionName, Store, store::FolderStore, testing::DatabaseBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    bundle::{Bundle, BundleSettings},
    function::Subject,
    process::{computed, memory},
    report,
};

const EDITION: &str = "GeoLite2-City";
/// The number of networks in a database of about 60 MB.
const NETWORKS: u32 = 420_000;
const LOOKUPS: u32 = 200_000;

/// A server that provides a large database.
struct Provider {
    server: UpdateServer,
    size: u64,
}

pub struct Measured {
    /// The database's size in bytes.
    pub size: u64,
    /// The time from the call to the response.
    pub time: Duration,
    /// The process's processor time during the update, in kernel and user mode.
    pub computing: Duration,
    /// The process's peak memory, in bytes.
    pub peak: u64,
    /// How long a second update takes, which changes nothing.
    pub unchanged: Duration,
    /// How long a lookup takes on average.
    pub lookup: Duration,
}

/// The member that most readers use.
#[derive(Deserialize)]
struct About {
    country: Country,
}

#[derive(Deserialize)]
struct Country {
    iso_code: String,
}

/// Runs all measurements and prints them.
pub async fn measure() -> Result<(), Box<dyn Error>> {
    let provider = Provider::start().await?;
    let bundle =
        Bundle::start(BundleSettings { geo_ip: Some(&provider.secret()), ..BundleSettings::default() }).await?;
    report::update(&provider.measure(&bundle).await?);
    Ok(())
}

impl Provider {
    /// Creates the database.
    async fn start() -> Result<Self, Box<dyn Error>> {
        let now = SystemClock.now();
        let built = u64::try_from(now.as_seconds())? - 60;
        let database = DatabaseBuilder::new(EDITION, built).with_many(NETWORKS).build();
        let server = UpdateServer::start().await;
        server.offer(EDITION, now.to_string().split('T').next().unwrap_or_default(), &database);
        Ok(Self { server, size: database.len().try_into()? })
    }

    /// The service's secret for this provider.
    fn secret(&self) -> Value {
        json!({"editions": [{
            "edition": EDITION, "source": "maxmind", "url": self.server.url(""),
            "accountId": ACCOUNT, "licenseKey": LICENCE_KEY,
        }]})
    }

    /// Measures an update, a second update, and lookups.
    async fn measure(&self, bundle: &Bundle) -> Result<Measured, Box<dyn Error>> {
        let subject = Subject::geo_ip_update(bundle);
        let store = tempfile::tempdir()?;
        let address = format!("file://{}", store.path().display());
        let more = [
            ("GEO_IP_STORE", address.as_str()),
            ("GEO_IP_ALLOW_HTTP", "true"),
            ("DELIVERY_ALLOWED_NETWORKS", "127.0.0.1/32"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
        ];
        let (mut api, process) = subject.spawn(bundle, &more).await?;
        let process = process.id().ok_or("the function has ended")?;
        let mut times = Vec::new();
        let mut computing = Duration::ZERO;
        for expected in ["published build", "is up to date"] {
            let began = Instant::now();
            let computed = computed(process)?;
            let answer = subject.invoke(&mut api).await?;
            times.push(began.elapsed());
            if times.len() == 1 {
                computing = crate::process::computed(process)?.saturating_sub(computed);
            }
            if !answer["body"].as_str().is_some_and(|body| body.contains(expected)) {
                return Err(format!("the update answered {answer}").into());
            }
        }
        let lookup = look_up(store.path()).await?;
        let peak = memory(process, "VmHWM")?;
        Ok(Measured { size: self.size, time: times[0], computing, peak, unchanged: times[1], lookup })
    }
}

/// The mean time to look up a known address, using a different one each time.
async fn look_up(store: &Path) -> Result<Duration, Box<dyn Error>> {
    let store = Store::Folder(FolderStore::new(store.to_owned()));
    let scratch = tempfile::tempdir()?;
    let edition = EditionName::parse(EDITION).ok_or("an invalid name of an edition")?;
    let clock = Arc::new(SystemClock);
    let random = Arc::new(SystemRandom);
    let reader = DatabaseReader::new(store, "local", edition, scratch.path().to_owned(), clock, random);
    let database = reader.refresh().await?;
    let began = Instant::now();
    for number in 0..LOOKUPS {
        // Each address is far from the previous one, so that it is not in any cache.
        let network = number.wrapping_mul(2_654_435_761) % NETWORKS;
        let address = Ipv4Addr::from(0x0100_0000 + (network << 8) + 77);
        let found = database.lookup::<About>(IpAddr::V4(address))?.ok_or("an address that is unknown")?;
        black_box(found.value.country.iso_code);
    }
    Ok(began.elapsed() / LOOKUPS)
}
