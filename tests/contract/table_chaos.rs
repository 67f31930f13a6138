//! The table refuses and dawdles now and then, as one under load does: it is asked again, and nothing is lost or done twice.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::{
    harness::{AwsCall, Entity, Receiver, Settings, Suite, account, tests},
    queue_chaos::{SCHEDULE, complete, publish},
};

tests![a_table_that_refuses_and_dawdles_now_and_then_changes_nothing];

/// Every call of that many.
fn one_in(many: usize) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static {
    let calls = AtomicUsize::new(0);
    move |_| calls.fetch_add(1, Ordering::Relaxed) % many == many - 1
}

async fn a_table_that_refuses_and_dawdles_now_and_then_changes_nothing(suite: Arc<Suite>) {
    let (stood, _permit) = suite.other_bundle_interposed(Settings::default().with("RETRY_SCHEDULE", SCHEDULE)).await;
    let (entity, receiver) = (Entity::new(&stood.api, "busy".to_owned()).await, Receiver::start().await);
    for code in ["ProvisionedThroughputExceededException", "InternalServerError", "ThrottlingException"] {
        stood.table.refuse(usize::MAX, code, one_in(61));
    }
    stood.table.delay(usize::MAX, Duration::from_millis(300), one_in(17));
    let deliveries = publish(&entity, &receiver).await;
    complete(&account(&entity, &receiver, &deliveries, &[]).await);
    assert!(stood.bundle.stop().await.success());
}
