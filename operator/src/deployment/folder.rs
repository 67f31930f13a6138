//! A local service. Its `service.env` contains the addresses and credentials of its parts.

use std::{
    collections::BTreeMap,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_secretsmanager::config::Credentials;
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningSettings, sign},
    sign::v4,
};
use base::{Clock, SystemClock};
use http_body_util::Full;
use hyper::{Request, Uri, body::Bytes};
use tokio::net::TcpStream;

use super::DeploymentError;

/// A service's data folder, with its `service.env`.
#[derive(Debug)]
pub struct Folder {
    data: PathBuf,
    values: BTreeMap<String, String>,
}

impl Folder {
    /// Reads `service.env`. A service writes this file when it is ready, and removes it when it ends.
    pub fn open(data: &Path) -> Result<Self, DeploymentError> {
        let path = data.join("service.env");
        let text = fs::read_to_string(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => DeploymentError::NoService(data.to_owned()),
            // This is usually another user's service, whose credentials only that user may read.
            _ => DeploymentError::File { path, source },
        })?;
        let lines = text.lines().filter_map(|line| line.split_once('='));
        let values = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(Self { data: data.to_owned(), values })
    }

    /// Fails if no service listens, since a killed service leaves its `service.env` behind.
    pub async fn check_service(&self) -> Result<(), DeploymentError> {
        let endpoint = self.value("DYNAMODB_ENDPOINT")?;
        let address = endpoint.parse::<Uri>().ok().and_then(|uri| uri.authority().map(ToString::to_string));
        let stopped = |_| DeploymentError::NoService(self.data.clone());
        TcpStream::connect(address.unwrap_or_default()).await.map(drop).map_err(stopped)
    }

    /// A value of `service.env`.
    pub fn value(&self, name: &'static str) -> Result<&str, DeploymentError> {
        let missing = || DeploymentError::ServiceEnv { path: self.data.join("service.env"), name };
        self.values.get(name).map(String::as_str).ok_or_else(missing)
    }

    /// The region and credentials for the service's AWS emulation.
    pub async fn aws(&self) -> Result<SdkConfig, DeploymentError> {
        let id = self.value("AWS_ACCESS_KEY_ID")?;
        let secret = self.value("AWS_SECRET_ACCESS_KEY")?;
        let config = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new(self.value("AWS_REGION")?.to_owned()))
            .credentials_provider(Credentials::new(id, secret, None, None, "service.env"));
        Ok(config.load().await)
    }

    /// A request that invokes a function with this event, without Lambda's SDK, which `make run` would have to compile.
    pub fn invocation(&self, function: &str, event: &[u8]) -> Result<Request<Full<Bytes>>, DeploymentError> {
        let malformed = || DeploymentError::ServiceEnv { path: self.data.join("service.env"), name: "LAMBDA_ENDPOINT" };
        let address = format!("{}/2015-03-31/functions/{function}/invocations", self.value("LAMBDA_ENDPOINT")?);
        let mut request = Request::post(&address).body(Full::from(event.to_vec())).map_err(|_| malformed())?;
        request.uri().authority().ok_or_else(malformed)?;
        let id = self.value("AWS_ACCESS_KEY_ID")?;
        let secret = self.value("AWS_SECRET_ACCESS_KEY")?;
        let identity = Credentials::new(id, secret, None, None, "service.env").into();
        let now = UNIX_EPOCH + Duration::from_secs(SystemClock.now().as_seconds().unsigned_abs());
        let params = v4::SigningParams::builder().identity(&identity).region(self.value("AWS_REGION")?).name("lambda");
        let params = params.time(now).settings(SigningSettings::default()).build().expect("every part is given");
        let signable = SignableRequest::new("POST", &address, std::iter::empty(), SignableBody::Bytes(event));
        let signed = signable.and_then(|signable| sign(signable, &params.into())).map_err(|_| malformed())?;
        signed.into_parts().0.apply_to_request_http1x(&mut request);
        Ok(request)
    }

    /// Locks out other rotations while the file is open, since two concurrent rotations could lose a key.
    pub fn lock(&self) -> Result<File, DeploymentError> {
        let path = self.data.join("rotation.lock");
        let at = |source| DeploymentError::File { path: path.clone(), source };
        let lock = File::options().create(true).write(true).truncate(false).open(&path).map_err(at)?;
        match lock.try_lock() {
            Ok(()) => Ok(lock),
            Err(TryLockError::WouldBlock) => Err(DeploymentError::UnderWay(self.data.clone())),
            Err(TryLockError::Error(source)) => Err(at(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::env::temp_dir;

    use base::{SystemRandom, random::uuid};

    use super::*;

    #[tokio::test]
    async fn without_a_running_service_the_error_says_how_to_start_one() {
        let data = temp_dir().join(uuid(&SystemRandom));
        let missing = Folder::open(&data).expect_err("there is no folder").to_string();
        assert!(missing.contains("make run DATA="), "{missing}");

        // As if the service had been killed: the file exists, but port 1, which is reserved, is closed.
        fs::create_dir(&data).expect("a new folder");
        fs::write(data.join("service.env"), "DYNAMODB_ENDPOINT=http://127.0.0.1:1\n").expect("written");
        let folder = Folder::open(&data).expect("the file is there");
        let stopped = folder.check_service().await.expect_err("nothing listens");
        assert_eq!(stopped.to_string(), missing);
        let incomplete = folder.value("TABLE_NAME").expect_err("it is not there").to_string();
        assert!(incomplete.contains("service.env has no line TABLE_NAME="), "{incomplete}");

        // A folder instead of the file cannot be read, not even by root.
        fs::remove_file(data.join("service.env")).expect("it is ours");
        fs::create_dir(data.join("service.env")).expect("a new folder");
        let unreadable = Folder::open(&data).expect_err("no file");
        assert!(!unreadable.is_refusal() && unreadable.to_string().ends_with("service.env cannot be used"));
        fs::remove_dir_all(data).expect("it is ours");
    }
}
