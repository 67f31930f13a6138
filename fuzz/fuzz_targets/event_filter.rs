//! Filters of webhooks: an accepted filter keeps within the limits, reads the same from its stored text, and is
//! compared with any data without a panic. The first line is the filter, the rest is the data.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use webhooks::subscriptions::filter::{
    EventFilter, MAX_BYTES, data::EventData, matching::{FilterOutcome, Steps}, pattern::Pattern,
};

fuzz_target!(|text: &str| {
    let (filter, data) = text.split_once('\n').unwrap_or((text, "{}"));
    let Ok(filter) = EventFilter::read(filter) else { return };
    assert!(filter.as_str().len() <= MAX_BYTES);
    assert_eq!(EventFilter::read(filter.as_str()).as_ref(), Ok(&filter));
    let Ok(data) = serde_json::from_str::<&RawValue>(data) else { return };
    let data = EventData::read(data);
    let raw = serde_json::from_str::<&RawValue>(filter.as_str()).expect("a filter is JSON");
    let pattern = Pattern::read(raw).expect("an accepted filter is accepted again");
    let matches = pattern.matches(&data, &mut Steps(u32::MAX)).expect("enough steps");
    let outcome = if matches { FilterOutcome::Matches } else { FilterOutcome::Differs };
    assert_eq!(filter.compare(&data, &mut Steps(u32::MAX)), outcome);
});
