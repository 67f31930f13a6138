//! Performing a history's steps about databases.

use std::{sync::Arc, time::Duration};

use base::pause;
use geo_ip::{EditionName, rollback, task::TaskRequest};
use serde_json::{Value, json};

use super::{EDITIONS, ENVIRONMENT, GeoIpAction, ProviderMood};
use crate::{
    aws::{TASK_KEY, bucket::Bucket},
    cloud::Cloud,
    sandbox::Function,
};

/// Longer than any sandbox stays frozen.
const THAWED: Duration = Duration::from_secs(2 * 60 * 60);

/// Performs one step.
pub async fn act(cloud: &Arc<Cloud>, action: GeoIpAction) {
    let world = &cloud.world;
    match action {
        GeoIpAction::Release(edition) => {
            let now = world.clock.millis();
            world.state().geo_ip.providers[edition].release(now);
        }
        GeoIpAction::Serve(edition, mood) => world.state().geo_ip.providers[edition].mood = mood,
        GeoIpAction::Update => drop(update(cloud).await),
        GeoIpAction::UpdateByRequest(live) => {
            let body = json!({ "key": TASK_KEY, "environment": ENVIRONMENT }).to_string();
            let report = cloud.invoke(Function::UpdateGeoIp, move |bundle| async move {
                let request = TaskRequest::read(body.as_bytes(), if live { &["true"] } else { &[] });
                let request = request.map_err(|problem| format!("{problem:?}"))?;
                bundle.geo_ip().requested(&request).await.map_err(|error| base::logging::chain(&error))
            });
            let report = report.await;
            world.note(|| format!("the requested update ends: {report:?}"));
        }
        GeoIpAction::RollBack(edition) | GeoIpAction::Unblock(edition) => {
            let edition = EditionName::parse(EDITIONS[edition]).expect("the name of an edition");
            let goes_back = matches!(action, GeoIpAction::RollBack(_));
            let blocked = last_blocked(&world.state().geo_ip.bucket, &edition);
            let done = cloud.invoke(Function::ManageGeoIp, move |bundle| async move {
                let store = bundle.geo_ip_store();
                if goes_back {
                    let back = rollback::roll_back(&store, ENVIRONMENT, &edition).await;
                    back.map(|_| ()).map_err(|error| base::logging::chain(&error))
                } else {
                    let unblocked = rollback::unblock(&store, ENVIRONMENT, &edition, &blocked).await;
                    unblocked.map(|_| ()).map_err(|error| base::logging::chain(&error))
                }
            });
            let done = done.await;
            world.note(|| format!("the operator's command ends: {done:?}"));
        }
    }
}

/// The most recently blocked release, as the pointer shows it to the operator.
fn last_blocked(bucket: &Bucket, edition: &EditionName) -> String {
    let pointer = bucket.object(&format!("{ENVIRONMENT}/{edition}/current.json")).unwrap_or_default();
    let pointer: Value = serde_json::from_slice(pointer).unwrap_or_default();
    let last = pointer["blocked"].as_array().and_then(|blocked| blocked.last()?.as_str());
    last.unwrap_or_default().to_owned()
}

/// Performs the schedule's update of all editions.
async fn update(cloud: &Arc<Cloud>) -> Option<Result<String, String>> {
    let report = cloud.invoke(Function::UpdateGeoIp, |bundle| async move {
        match bundle.geo_ip().scheduled().await {
            Ok(report) if report.success => Ok(report.message),
            Ok(report) => Err(report.message),
            Err(error) => Err(base::logging::chain(&error)),
        }
    });
    let report = report.await;
    cloud.world.note(|| format!("the update ends: {report:?}"));
    report
}

/// Updates without faults when no sandbox is frozen any more: every edition has a new release.
pub async fn finish(cloud: &Arc<Cloud>) {
    pause(THAWED).await;
    let now = cloud.world.clock.millis();
    for provider in &mut cloud.world.state().geo_ip.providers {
        provider.mood = ProviderMood::Serves(50);
        provider.release(now);
    }
    let report = update(cloud).await;
    cloud.world.state().geo_ip.last_update = report;
}
