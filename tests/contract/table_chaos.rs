//! A table under load: some calls are refused or slow; they are repeated, without lost or duplicate effects.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::{
    harness::{AwsCall, Entity, Receiver, Settings, Suite, account},
    queue_chaos::{SCHEDULE, complete, publish},
};
use contract_test::contract_test;

/// One of this many matching calls is affected.
fn one_in(
    many: usize,
    meant: impl Fn(&AwsCall) -> bool + Send + Sync + 'static,
) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static {
    let calls = AtomicUsize::new(0);
    move |call| meant(call) && calls.fetch_add(1, Ordering::Relaxed) % many == many - 1
}

#[contract_test]
async fn a_table_that_refuses_and_dawdles_now_and_then_changes_nothing(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default().with("RETRY_SCHEDULE", SCHEDULE)).await;
    let entity = Entity::new(&setup.api, "busy".to_owned()).await;
    let receiver = Receiver::start().await;
    // Each kind of call has a separate error code, so that no call is refused at every repetition.
    let kinds = ["BatchExecuteStatement", "BatchGetItem"];
    let codes = ["ProvisionedThroughputExceededException", "InternalServerError"];
    for (kind, code) in kinds.into_iter().zip(codes) {
        setup.table.refuse(usize::MAX, code, one_in(31, move |call| call.operation == kind));
    }
    let others = move |call: &AwsCall| !kinds.contains(&call.operation.as_str());
    setup.table.refuse(usize::MAX, "ThrottlingException", one_in(61, others));
    setup.table.delay(usize::MAX, Duration::from_millis(300), one_in(17, |_| true));
    let deliveries = publish(&entity, &receiver).await;
    complete(&account(&entity, &receiver, &deliveries, &[]).await);
    assert!(setup.bundle.stop().await.success());
}
