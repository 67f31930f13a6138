//! A running bundle with its table and secrets, which is either measured itself or provides a measured function's
//! environment.

use std::{
    collections::HashMap,
    error::Error,
    fs,
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use fakes::AwsCaller;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{counting_proxy::CountingProxy, load::Target, reader::Feed};

/// A running bundle, with its variables and tokens.
pub struct Bundle {
    env: HashMap<String, String>,
    /// The demo application's token.
    pub token: String,
    /// The platform application's token, which is valid for every managing entity.
    pub platform_token: String,
    /// The id of the main process.
    pub process_id: u32,
    http: reqwest::Client,
    folder: TempDir,
    _process: Child,
}

/// A bundle's settings.
#[derive(Default)]
pub struct BundleSettings<'a> {
    /// The geo-IP configuration, if any.
    pub geo_ip: Option<&'a Value>,
    /// The functions that run as release builds. All others run as debug builds.
    pub release: &'a [&'a str],
    pub variables: &'a [(&'a str, &'a str)],
    /// A proxy between the functions and the table.
    pub proxy: Option<&'a CountingProxy>,
}

impl Bundle {
    /// Starts the bundle and fetches tokens.
    pub async fn start(settings: BundleSettings<'_>) -> Result<Self, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let data = folder.path().join("data");
        let binaries = folder.path().join("functions");
        link_functions(&binaries, settings.release)?;
        if let Some(geo_ip) = settings.geo_ip {
            let secrets = data.join("secrets");
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&secrets)?;
            let file = fs::File::options().create_new(true).write(true).mode(0o600).open(secrets.join("geo-ip.json"));
            file?.write_all(geo_ip.to_string().as_bytes())?;
        }
        let mut command = Command::new("target/debug/local");
        command.args(["--stop-with-parent", "--quiet", "--port", &free_port()?.to_string()]);
        command.arg("--data").arg(&data).arg("--binaries").arg(&binaries);
        if let Some(proxy) = settings.proxy {
            let port = free_port()?;
            proxy.forward_to(&format!("http://127.0.0.1:{port}"));
            command.args(["--table-port", &port.to_string(), "--functions-table", &proxy.address]);
        }
        // The made-up bookings do not conform to their schema, so each would cause a warning.
        command.env("EVENT_VALIDATION", "off");
        // Functions must keep running when idle, so that their processor time can be measured.
        command.args(["--function-idle", "24h"]).envs(settings.variables.iter().copied());
        let mut process = command.stdin(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn()?;
        let file = data.join("service.env");
        while !file.exists() {
            if let Some(status) = process.try_wait()? {
                return Err(format!("the bundle ended at once ({status})").into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let process_id = process.id().ok_or("the bundle has ended")?;
        let env = read_env(&file)?;
        let token = String::new();
        let platform_token = String::new();
        let http = reqwest::Client::new();
        let mut bundle = Self { env, token, platform_token, process_id, http, folder, _process: process };
        if let Some(proxy) = settings.proxy {
            proxy.sign_as(bundle.aws_caller());
        }
        bundle.token = bundle.token_of("CLIENT").await?;
        bundle.platform_token = bundle.token_of("PLATFORM_CLIENT").await?;
        Ok(bundle)
    }

    /// A new token for the demo application.
    pub async fn token(&self) -> Result<String, Box<dyn Error>> {
        self.token_of("CLIENT").await
    }

    async fn token_of(&self, client: &str) -> Result<String, Box<dyn Error>> {
        let request = self.http.post(format!("{}/oauth2/token", self.var("AUTH_URL")));
        let answer = request.header("content-type", FORM).body(self.form_of(client)).send().await?;
        let answer: Value = serde_json::from_str(&answer.error_for_status()?.text().await?)?;
        Ok(answer["access_token"].as_str().ok_or("no token")?.to_owned())
    }

    /// The folder that contains the functions' logs.
    pub fn logs(&self) -> PathBuf {
        self.folder.path().join("data/logs")
    }

    /// The operator's credentials for the table, the queues and the secrets.
    pub fn aws_caller(&self) -> AwsCaller {
        AwsCaller::new(self.var("AWS_ACCESS_KEY_ID"), self.var("AWS_SECRET_ACCESS_KEY"))
    }

    /// The value of a variable in `service.env`.
    pub fn var(&self, name: &str) -> &str {
        self.env.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The demo application's token request.
    pub fn token_form(&self) -> String {
        self.form_of("CLIENT")
    }

    fn form_of(&self, client: &str) -> String {
        let [id, secret] = ["ID", "SECRET"].map(|part| self.var(&format!("{client}_{part}")));
        format!("grant_type=client_credentials&client_id={id}&client_secret={secret}")
    }

    /// Creates a webhook and publishes one event with 500 bytes of text to it; returns the delivery's identifier. The
    /// endpoint is a closed port, so the delivery has a failed attempt.
    pub async fn publish_one(&self) -> Result<String, Box<dyn Error>> {
        let entity = self.var("MANAGING_ENTITY");
        self.hook(entity, "http://127.0.0.1:1/").await?;
        let event = json!({"type": "booking.created", "data": {"text": "x".repeat(500)}});
        let published = self.post(entity, "webhook/event", &event).await?;
        Ok(published["deliveries"][0]["deliveryIdentifier"].as_str().ok_or("no delivery")?.to_owned())
    }

    /// The path for publishing a managing entity's events as the platform.
    pub fn target(&self, entity: &str) -> Target {
        Target {
            address: self.var("BASE_URL").to_owned(),
            path: format!("/api/managing-entity/{entity}/webhook/event"),
            token: self.platform_token.clone(),
        }
    }

    /// Creates a webhook for a managing entity; returns its identifier.
    pub async fn hook(&self, entity: &str, url: &str) -> Result<String, Box<dyn Error>> {
        let webhook = json!({"name": "bench", "eventUrl": url, "eventList": ["booking.created"]});
        let made = self.post(entity, "webhook", &webhook).await?;
        Ok(made["id"].as_str().ok_or("no webhook")?.to_owned())
    }

    /// Creates a pull webhook for a managing entity.
    pub async fn feed(&self, entity: &str) -> Result<Feed, Box<dyn Error>> {
        let webhook = json!({"name": "bench", "delivery": "pull", "eventList": ["booking.created"]});
        let made = self.post(entity, "webhook", &webhook).await?;
        let webhook = made["id"].as_str().ok_or("no webhook")?;
        let path = format!("/api/managing-entity/{entity}/webhook/{webhook}/feed");
        Ok(Feed::new(Target { path, ..self.target(entity) }))
    }

    /// Reads one of a managing entity's resources.
    pub async fn get(&self, entity: &str, path: &str) -> Result<Value, Box<dyn Error>> {
        self.answer(self.http.get(self.address(entity, path))).await
    }

    /// Posts a request on behalf of a managing entity.
    pub async fn post(&self, entity: &str, path: &str, body: &Value) -> Result<Value, Box<dyn Error>> {
        self.answer(self.http.post(self.address(entity, path)).json(body)).await
    }

    /// Removes one of a managing entity's resources.
    pub async fn delete(&self, entity: &str, path: &str) -> Result<Value, Box<dyn Error>> {
        self.answer(self.http.delete(self.address(entity, path))).await
    }

    fn address(&self, entity: &str, path: &str) -> String {
        format!("{}/api/managing-entity/{entity}/{path}", self.var("BASE_URL"))
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Value, Box<dyn Error>> {
        let answer = request.bearer_auth(&self.platform_token).send().await?;
        Ok(serde_json::from_str(&answer.error_for_status()?.text().await?)?)
    }

    /// The environment of a deployed function.
    pub fn function_env(&self) -> Vec<(&str, &str)> {
        vec![
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", self.var("AWS_ACCESS_KEY_ID")),
            ("AWS_SECRET_ACCESS_KEY", self.var("AWS_SECRET_ACCESS_KEY")),
            ("AWS_ENDPOINT_URL_DYNAMODB", self.var("DYNAMODB_ENDPOINT")),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", self.var("SERVICES_ENDPOINT")),
            ("TABLE_NAME", self.var("TABLE_NAME")),
            ("BASE_URL", self.var("BASE_URL")),
            ("AUTH_URL", self.var("AUTH_URL")),
            ("ENVIRONMENT", self.var("ENVIRONMENT")),
            ("SECRETS_PREFIX", "waypost/local/"),
            // `mcp` requires these variables at startup, although the bench makes it send no messages.
            ("QUEUE_URL", self.var("SERVICES_ENDPOINT")),
            ("SLOW_QUEUE_URL", self.var("SERVICES_ENDPOINT")),
            ("AWS_LAMBDA_FUNCTION_NAME", "bench"),
            ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ]
    }
}

/// The media type of forms.
pub const FORM: &str = "application/x-www-form-urlencoded";

/// Links all functions into a folder: these as release builds, the others as the program that `make run` uses.
fn link_functions(folder: &Path, release: &[&str]) -> Result<(), Box<dyn Error>> {
    fs::create_dir(folder)?;
    for family in fs::read_dir("functions")? {
        for function in fs::read_dir(family?.path().join("src/bin"))? {
            let source = function?.path();
            let name = source.file_stem().ok_or("a file has a name")?;
            let is_measured = release.iter().any(|release| name == *release);
            let program =
                if is_measured { Path::new("target/release").join(name) } else { "target/debug/functions".into() };
            let found = fs::canonicalize(&program).map_err(|error| format!("{}: {error}", program.display()))?;
            symlink(found, folder.join(name))?;
        }
    }
    Ok(())
}

fn free_port() -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn read_env(file: &Path) -> std::io::Result<HashMap<String, String>> {
    let text = fs::read_to_string(file)?;
    Ok(text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}
