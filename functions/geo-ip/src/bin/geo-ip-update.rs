//! POST /task/geo-ip-update, and a schedule: keeps the geo-IP databases up to date.

use std::{sync::Arc, time::Duration};

use function::{Service, StartError};
use gate::{Call, Endpoint, Reply};
use geo_ip::{Task, settings::GeoIpSettings, task::TaskRequest};
use problem::Problem;
use storage::secrets::SecretSettings;

/// Longer than other requests may take, since providers are slow, and below the API's limit of 30 seconds.
const ENDPOINT: Endpoint =
    Endpoint::any_scope().taking_json().with_empty_internal_errors().with_deadline(Duration::from_secs(27));

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, geo_ip)) = Service::start::<(SecretSettings, GeoIpSettings)>().await?;
    let secrets = service.secrets(secrets);
    let environment = service.settings().environment.clone();
    let task =
        Arc::new(Task::new((service.aws(), service.table(), secrets), geo_ip, environment, service.clock_and_random()));
    let scheduled = task.clone();
    service
        .serve_with_schedule(
            ENDPOINT,
            move |call| run(task.clone(), call),
            move || {
                let task = scheduled.clone();
                async move { task.scheduled().await }
            },
        )
        .await
}

async fn run(task: Arc<Task>, call: Call) -> Result<Reply, Problem> {
    let request = TaskRequest::read(&call.body, &call.query("live"))?;
    Reply::ok(&task.requested(&request).await?)
}
