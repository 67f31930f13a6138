//! Repeats requests while the service is unable to respond, and reports this once.

use std::{cell::Cell, time::Duration};

use crate::{
    failure::Failure,
    machine,
    output::{Output, remark},
    service::{Call, Service},
};

/// The pauses between requests, unless the service asks for longer ones.
pub const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause that a service may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(300);
/// How many times a request with an idempotency key is sent if the service does not respond.
const TIMES: u32 = 3;

/// Retries the requests of a command that runs until it is stopped.
pub struct Patience<'a> {
    output: Output,
    /// The service's address.
    address: &'a str,
    /// The number of failed requests that are being repeated. Several can fail at once, but one notice is enough.
    failing: Cell<usize>,
}

/// The pause before the next request.
fn pause_before_next(asked: Option<Duration>, usual: Duration) -> Duration {
    asked.map_or(usual, |asked| asked.clamp(usual, LONGEST_ASKED))
}

impl<'a> Patience<'a> {
    pub fn new(output: Output, address: &'a str) -> Self {
        Self { output, address, failing: Cell::new(0) }
    }

    /// Repeats a request while its failure is temporary.
    pub async fn repeat<T>(&self, request: impl AsyncFn() -> Result<T, Failure>) -> Result<T, Failure> {
        let mut pause = FIRST_PAUSE;
        let mut failed = false;
        loop {
            match request().await {
                Err(failure) if failure.is_temporary() => {
                    if !failed && self.failing.replace(self.failing.get() + 1) == 0 {
                        self.output.remark(format!("{} Trying again until the service answers.", failure.sentence()));
                    }
                    failed = true;
                    machine::pause(pause_before_next(failure.retry_after(), pause)).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                answered => {
                    let is_last = failed && self.failing.replace(self.failing.get() - 1) == 1;
                    if is_last && answered.is_ok() {
                        self.output.remark(format!("{} answers again.", self.address));
                    }
                    return answered;
                }
            }
        }
    }
}

/// Sends a request with its idempotency key, or with a random one, and returns the response's text. Repeats the request
/// while its failure is temporary. Prints the key before the first repetition, since a person may stop the program, and
/// the advice for the key if there is no response in the end.
pub async fn text_with_key(
    service: &Service,
    mut call: Call<'_>,
    advice: impl FnOnce(&str) -> String,
) -> Result<String, Failure> {
    let key = call.key.take().map_or_else(machine::random_text, Ok)?;
    let send = async || service.text(Call { key: Some(key.clone()), ..call.clone() }).await;
    let notice = |failure: &Failure| {
        remark(format!("{} Trying again with the idempotency key {key}.", failure.sentence()));
    };
    let answered = repeat(send, notice).await;
    if answered.as_ref().is_err_and(|failure| failure.is_temporary() && failure.wait_for_limit().is_none()) {
        remark(advice(&key));
    }
    answered
}

/// Sends a request several times, while its failure is temporary. The request must have an idempotency key. Calls
/// `notice` once, before the first repetition.
async fn repeat<T>(request: impl AsyncFn() -> Result<T, Failure>, notice: impl FnOnce(&Failure)) -> Result<T, Failure> {
    let mut pause = FIRST_PAUSE;
    let mut notice = Some(notice);
    for _ in 1..TIMES {
        match request().await {
            // A call itself waits for limits.
            Err(failure) if failure.is_temporary() && failure.wait_for_limit().is_none() => {
                if let Some(notice) = notice.take() {
                    notice(&failure);
                }
                machine::pause(pause_before_next(failure.retry_after(), pause)).await;
                pause *= 2;
            }
            answered => return answered,
        }
    }
    request().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_the_service_asks_for_is_kept_within_minutes() {
        let seconds = Duration::from_secs;
        assert_eq!(pause_before_next(None, seconds(2)), seconds(2));
        assert_eq!(pause_before_next(Some(seconds(60)), seconds(2)), seconds(60));
        assert_eq!(pause_before_next(Some(seconds(0)), seconds(2)), seconds(2));
        assert_eq!(pause_before_next(Some(seconds(86_400)), seconds(30)), seconds(300));
    }
}
