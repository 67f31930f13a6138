//! `service.env`: addresses and credentials for clients, in the format that the contract tests read.

use std::fmt::Write;

use issuer::panel::links::CreatedLink;
use operator::applications::Credentials;

use crate::{
    aws::{Endpoints, REGION},
    bundle::ENVIRONMENT,
    data_folder::DataFolder,
    table::TABLE_NAME,
};

/// The demo application's managing entity.
pub const MANAGING_ENTITY: &str = "demo-hotel";

/// The values that `service.env` contains.
pub struct ServiceEnv<'a> {
    /// The address of the API and the issuer.
    pub base_url: &'a str,
    /// The demo application's credentials.
    pub demo: &'a Credentials,
    /// The platform application's credentials.
    pub platform: &'a Credentials,
    /// The key that operational tasks require.
    pub task_key: &'a str,
    /// The address of the Lambda API.
    pub lambda_endpoint: &'a str,
    /// The addresses of the other AWS stand-ins, and the operator's credentials.
    pub aws: &'a Endpoints,
    /// The store for published geo-IP databases.
    pub geo_ip_store: &'a str,
}

impl ServiceEnv<'_> {
    /// The file's content, with one `NAME=value` per line.
    pub fn content(&self) -> String {
        let lines = [
            ("BASE_URL", self.base_url),
            ("AUTH_URL", self.base_url),
            ("MANAGING_ENTITY", MANAGING_ENTITY),
            ("CLIENT_ID", &self.demo.client_id),
            ("CLIENT_SECRET", &self.demo.client_secret),
            ("PLATFORM_CLIENT_ID", &self.platform.client_id),
            ("PLATFORM_CLIENT_SECRET", &self.platform.client_secret),
            ("TASK_KEY", self.task_key),
            ("ENVIRONMENT", ENVIRONMENT),
            ("DYNAMODB_ENDPOINT", &self.aws.table),
            ("TABLE_NAME", TABLE_NAME),
            ("GEO_IP_STORE", self.geo_ip_store),
            ("S3_ENDPOINT", &self.aws.services),
            ("SERVICES_ENDPOINT", &self.aws.services),
            ("LAMBDA_ENDPOINT", self.lambda_endpoint),
            // AWS SDKs and tools read these names. Some tools know only one of the two names for the region.
            ("AWS_REGION", REGION),
            ("AWS_DEFAULT_REGION", REGION),
            ("AWS_ACCESS_KEY_ID", &self.aws.credentials.access_key_id),
            ("AWS_SECRET_ACCESS_KEY", &self.aws.credentials.secret_access_key),
        ];
        lines.iter().fold(String::new(), |mut content, (name, value)| {
            // Writing to a `String` cannot fail.
            let _ = writeln!(content, "{name}={value}");
            content
        })
    }
}

/// Commands for a first request, which can be pasted into a shell, and a panel link. The commands read the secret from
/// the file, so they do not contain it.
pub fn greeting(base_url: &str, data: &DataFolder, panel: &CreatedLink) -> String {
    let file = data.service_env();
    let file = file.display();
    format!(
        r#"
Waypost answers at {base_url}   (contract: {base_url}/openapi.json; logs: {logs})

  . '{file}'
  TOKEN=$(curl -s "$AUTH_URL/oauth2/token" -u "$CLIENT_ID:$CLIENT_SECRET" -d grant_type=client_credentials |
    sed 's/.*"access_token":"\([^"]*\)".*/\1/')
  curl -s "$BASE_URL/api/managing-entity/$MANAGING_ENTITY/webhook/event/list" -H "Authorization: Bearer $TOKEN"

Panel: {panel}
The link works once, within ten minutes; `make panel` creates another.

Press Ctrl-C to stop; the data is kept."#,
        panel = panel.url.expose(),
        logs = data.logs().display(),
    )
}
