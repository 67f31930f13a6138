//! POST /task/geo-ip-update, and a schedule: keeps the geo-IP databases up to date.

use std::{sync::Arc, time::Duration};

use shared::{
    Service, StartError,
    geo_ip::Task,
    http::Endpoint,
    settings::{GeoIpSettings, SecretSettings},
};

/// Longer than other requests may take, since providers are slow, and below the API's limit of 30 seconds.
const ENDPOINT: Endpoint =
    Endpoint::any_scope().taking_json().with_empty_internal_errors().with_deadline(Duration::from_secs(27));

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, geo_ip)) = Service::start::<(SecretSettings, GeoIpSettings)>().await?;
    let task = Arc::new(Task::new(&service, secrets, geo_ip));
    let scheduled = task.clone();
    service
        .serve_with_schedule(
            ENDPOINT,
            move |call| {
                let task = task.clone();
                async move { task.answer(&call).await }
            },
            move || {
                let task = scheduled.clone();
                async move { task.scheduled().await }
            },
        )
        .await
}
