//! AWS and an endpoint for a function that is measured alone, behind TLS and a network with emulated round trips.

use std::{error::Error, fs, net::SocketAddr, path::PathBuf, time::Duration};

use axum::{Router, http::StatusCode};
use fakes::{Authority, TlsFront};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::{announcements::Announcements, bundle::Bundle, counting_proxy::CountingProxy, network::Network};

/// The services that a function calls.
pub struct Cloud {
    pub table: CountingProxy,
    pub queue: Announcements,
    to_table: Way,
    to_queue: Way,
    to_secrets: Way,
    /// The path to the endpoint, which has no delay, regardless of the round trip to AWS.
    to_endpoint: Way,
    authority: PathBuf,
    _folder: TempDir,
}

/// A network path that ends in TLS.
struct Way {
    network: Network,
    _front: TlsFront,
}

impl Way {
    async fn to(server: SocketAddr, authority: &Authority) -> std::io::Result<Self> {
        let front = TlsFront::start(authority.issue(&["127.0.0.1"], false), server).await;
        Ok(Self { network: Network::to(front.address)?, _front: front })
    }

    fn address(&self) -> String {
        format!("https://{}", self.network.address)
    }
}

impl Cloud {
    /// Starts a cloud in front of a bundle's table and secrets.
    pub async fn before(bundle: &Bundle) -> Result<Self, Box<dyn Error>> {
        let authority = Authority::new();
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("authority.pem");
        fs::write(&file, authority.pem())?;
        let table = CountingProxy::start().await?;
        let queue = Announcements::start().await?;
        table.forward_to(bundle.var("DYNAMODB_ENDPOINT"));
        table.sign_as(bundle.aws_caller());
        let table_address = table.address.trim_start_matches("http://").parse()?;
        let secrets = bundle.var("SERVICES_ENDPOINT").trim_start_matches("http://").parse()?;
        Ok(Self {
            to_table: Way::to(table_address, &authority).await?,
            to_queue: Way::to(queue.address, &authority).await?,
            to_secrets: Way::to(secrets, &authority).await?,
            to_endpoint: Way::to(endpoint().await?, &authority).await?,
            table,
            queue,
            authority: file,
            _folder: folder,
        })
    }

    /// The address of an endpoint that responds immediately.
    pub fn endpoint(&self) -> String {
        self.to_endpoint.address()
    }

    /// Sets the duration of a round trip to the table, queue and secrets.
    pub fn set_round_trip(&self, time: Duration) {
        for way in [&self.to_table, &self.to_queue, &self.to_secrets] {
            way.network.set_round_trip(time);
        }
    }

    /// The number of connections opened so far, to AWS and to the endpoint.
    pub fn connections(&self) -> [u64; 2] {
        let aws = [&self.to_table, &self.to_queue, &self.to_secrets];
        [aws.map(|way| way.network.connections()).iter().sum(), self.to_endpoint.network.connections()]
    }

    /// The mean delay of a table call, in excess of the round trip.
    pub fn lateness(&self) -> Duration {
        self.to_table.network.lateness()
    }

    /// The variables that make a function call this cloud.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let authority = self.authority.display().to_string();
        let mut variables = vec![
            ("AWS_ENDPOINT_URL_DYNAMODB", self.to_table.address()),
            ("AWS_ENDPOINT_URL_SQS", self.to_queue.address()),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", self.to_secrets.address()),
            ("AWS_CA_BUNDLE", authority.clone()),
            ("SSL_CERT_FILE", authority),
            ("DELIVERY_ALLOWED_NETWORKS", "127.0.0.1/32".to_owned()),
        ];
        variables.extend(self.queue.variables());
        variables
    }
}

async fn endpoint() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let service = Router::new().fallback(async || StatusCode::NO_CONTENT);
    tokio::spawn(async move { axum::serve(listener, service).await });
    Ok(address)
}
