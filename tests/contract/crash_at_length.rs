//! A long run of the power cuts in `crash`. It runs on demand only.

use std::sync::Arc;

use crate::{crash::power_cuts, harness::Suite};
use contract_test::contract_test;

#[contract_test(on_demand)]
async fn twenty_power_cuts_lose_nothing_of_ten_thousand_events(suite: Arc<Suite>) {
    power_cuts(&suite, 20, 500).await;
}
