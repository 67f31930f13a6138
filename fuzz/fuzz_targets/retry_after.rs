//! `Retry-After`: any value results in a pause of at most a day, or in none.
#![no_main]

use std::time::Duration;

use http::StatusCode;
use libfuzzer_sys::fuzz_target;
use base::Time;
use outbound::HttpResponse;

fuzz_target!(|input: (u32, &str)| {
    let (seconds, text) = input;
    let now = Time::from_millis(i64::from(seconds) * 1_000);
    let answer = |status| HttpResponse { status, location: None, retry_after: Some(text.to_owned()), media_type: None, body: Vec::new(), truncated: false };
    let pause = answer(StatusCode::TOO_MANY_REQUESTS).pause_asked_for(now);
    assert!(pause.is_none_or(|pause| pause <= Duration::from_secs(24 * 60 * 60)));
    assert_eq!(answer(StatusCode::SERVICE_UNAVAILABLE).pause_asked_for(now), pause);
    assert_eq!(answer(StatusCode::INTERNAL_SERVER_ERROR).pause_asked_for(now), None);
    if let Ok(seconds) = text.parse::<u64>() {
        // More than ten years are ignored.
        let expected = (seconds <= 315_576_000).then(|| Duration::from_secs(seconds.min(24 * 60 * 60)));
        // Rust accepts a plus sign, HTTP does not.
        assert!(pause == expected || text.starts_with('+'), "{text}: {pause:?}");
    }
});
