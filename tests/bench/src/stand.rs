//! What the measured functions need beside them: a running bundle with its table and secrets.

use std::{
    collections::HashMap,
    error::Error,
    fs,
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// A running bundle of debug binaries, of which only table and secrets matter here.
pub struct Stand {
    env: HashMap<String, String>,
    /// A token of the demo application.
    pub token: String,
    _data: TempDir,
    _bundle: Child,
}

impl Stand {
    /// Starts the bundle, with this configuration of geo-IP databases, and fetches a token.
    pub async fn start(geo_ip: &Value) -> Result<Self, Box<dyn Error>> {
        let data = tempfile::tempdir()?;
        let secrets = data.path().join("secrets");
        fs::DirBuilder::new().mode(0o700).create(&secrets)?;
        let mut file =
            fs::File::options().create_new(true).write(true).mode(0o600).open(secrets.join("geo-ip.json"))?;
        file.write_all(geo_ip.to_string().as_bytes())?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut bundle = Command::new("target/debug/local")
            .args(["--port", &port.to_string(), "--stop-with-parent", "--data"])
            .arg(data.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let file = data.path().join("service.env");
        while !file.exists() {
            if let Some(status) = bundle.try_wait()? {
                return Err(format!("the bundle ended at once ({status})").into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let env = read_env(&file)?;
        let mut stand = Self { env, token: String::new(), _data: data, _bundle: bundle };
        let request = reqwest::Client::new().post(format!("{}/oauth2/token", stand.var("AUTH_URL")));
        let answer = request.header("content-type", FORM).body(stand.token_form()).send().await?;
        let answer: Value = serde_json::from_str(&answer.error_for_status()?.text().await?)?;
        stand.token = answer["access_token"].as_str().ok_or("no token")?.to_owned();
        Ok(stand)
    }

    /// A variable of `service.env`.
    pub fn var(&self, name: &str) -> &str {
        self.env.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The form of a token request.
    pub fn token_form(&self) -> String {
        format!(
            "grant_type=client_credentials&client_id={}&client_secret={}",
            self.var("CLIENT_ID"),
            self.var("CLIENT_SECRET")
        )
    }

    /// Makes a webhook and publishes one event of 500 bytes to it; gives the delivery's identifier. Its endpoint is a
    /// closed port, so that a delivery with an attempt is there to be shown.
    pub async fn publish_one(&self) -> Result<String, Box<dyn Error>> {
        let webhook = json!({"name": "bench", "eventUrl": "http://127.0.0.1:1/", "eventList": ["booking.created"]});
        self.post("webhook", &webhook).await?;
        let event = json!({"type": "booking.created", "data": {"text": "x".repeat(500)}});
        let published = self.post("webhook/event", &event).await?;
        Ok(published["deliveries"][0]["deliveryIdentifier"].as_str().ok_or("no delivery")?.to_owned())
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, Box<dyn Error>> {
        let url = format!("{}/api/managing-entity/{}/{path}", self.var("BASE_URL"), self.var("MANAGING_ENTITY"));
        let answer = reqwest::Client::new().post(url).bearer_auth(&self.token).json(body).send().await?;
        Ok(serde_json::from_str(&answer.error_for_status()?.text().await?)?)
    }

    /// The environment of a deployed function.
    pub fn function_env(&self) -> Vec<(&str, &str)> {
        vec![
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("AWS_ENDPOINT_URL_DYNAMODB", self.var("DYNAMODB_ENDPOINT")),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", self.var("SERVICES_ENDPOINT")),
            ("TABLE_NAME", self.var("TABLE_NAME")),
            ("BASE_URL", self.var("BASE_URL")),
            ("AUTH_URL", self.var("AUTH_URL")),
            ("ENVIRONMENT", self.var("ENVIRONMENT")),
            ("SECRETS_PREFIX", "waypost/local/"),
            ("AWS_LAMBDA_FUNCTION_NAME", "bench"),
            ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ]
    }
}

/// The media type of forms.
pub const FORM: &str = "application/x-www-form-urlencoded";

fn read_env(file: &Path) -> std::io::Result<HashMap<String, String>> {
    let text = fs::read_to_string(file)?;
    Ok(text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}
