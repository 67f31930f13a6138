//! An attempt of a delivery, as stored in its history.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    events::payload::Payload,
    subscriptions::{endpoint::masked, health::tally::AttemptOutcome},
};
use base::{Time, version::SERVICE_VERSION_HEADER};
use outbound::{AttemptError, HttpResponse};

/// Names of the headers that every request has, as shown to owners. The trace headers and the owner's headers come
/// after them.
pub(crate) const HEADERS: [&str; 11] = [
    "host",
    "content-length",
    "content-type",
    "accept",
    "accept-encoding",
    "user-agent",
    "service-delivery-id",
    SERVICE_VERSION_HEADER,
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
];

/// The code of an attempt's error, by which deliveries can be filtered. The error text begins with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorCode {
    /// The name does not resolve.
    Dns,
    /// The connection could not be opened, broke, or did not speak HTTP.
    Connect,
    /// TLS failed.
    Tls,
    /// A step took too long.
    Timeout,
    /// The address is not allowed.
    Blocked,
    /// The reader of a feed reported a failure.
    Reported,
    /// No reader of the feed answered for the delivery in time. It is unknown whether the response reached the reader.
    Unconfirmed,
    /// The worker that sent the request died before it recorded the outcome, which is unknown.
    Interrupted,
}

impl ErrorCode {
    const ALL: [Self; 8] = [
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Timeout,
        Self::Blocked,
        Self::Reported,
        Self::Unconfirmed,
        Self::Interrupted,
    ];

    /// The code with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == name)
    }

    /// The code at the beginning of an error's text.
    pub fn of(error: &str) -> Option<Self> {
        Self::parse(error.split(':').next()?)
    }

    /// The code and the sentence in an error's text.
    pub fn split(error: &str) -> Option<(Self, &str)> {
        let (code, detail) = error.split_once(": ")?;
        Some((Self::parse(code)?, detail))
    }

    /// Whether the outcome is unknown, in which case the attempt says nothing about the endpoint or the reader.
    pub const fn is_unknown_outcome(self) -> bool {
        matches!(self, Self::Unconfirmed | Self::Interrupted)
    }

    /// Whether the error concerns a feed's reader.
    pub const fn is_of_reader(self) -> bool {
        matches!(self, Self::Reported | Self::Unconfirmed)
    }

    /// The name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Blocked => "blocked",
            Self::Reported => "reported",
            Self::Unconfirmed => "unconfirmed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The error text of a failure that a reader reported, without the reader's reason.
const REPORTED: &str = "reported: the feed's reader reported a failure";
const INTERRUPTED: &str =
    "interrupted: a fault in the service cut the attempt off; the endpoint may have received the request";

/// An attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// When it began.
    pub attempt_date: Time,
    /// The number within the delivery, from 1.
    pub attempt_number: u32,
    /// Whether a reader of the webhook's feed confirmed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirmed: bool,
    /// Duration in milliseconds: of the exchange, or from the moment a reader received the delivery until its outcome.
    /// 0 if the attempt was interrupted and its duration is unknown.
    pub duration_ms: u64,
    /// A stable code and a sentence, if the attempt never completed or failed at a feed's reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kind of the request's body: `thin` if it had no data. Not recorded for attempts of readers.
    #[serde(default, skip_serializing_if = "Payload::is_full")]
    pub payload: Payload,
    /// The response status; `None` if the attempt never completed.
    #[serde(default)]
    pub http_status: Option<u16>,
    /// The absolute address that a redirect leads to, without credentials and with its query values masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The first 4 096 bytes of the response's body, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_body: Option<String>,
    /// The wait requested by the `Retry-After` of a 429 or 503, in seconds; at most a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
    /// The request's address, with its query values masked. The table leaves it out if it is the delivery's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The names of the request's headers; absent if no request was made. The table leaves out the names in `HEADERS`,
    /// which every request has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_headers: Option<Vec<String>>,
}

/// The address and the additional headers of an attempt's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentTo {
    /// The address, with its query values masked.
    pub url: String,
    /// The names of the headers that are not in `HEADERS`; `None` if no request could be made.
    pub headers: Option<Vec<String>>,
    /// The body's kind.
    pub payload: Payload,
}

impl Attempt {
    /// The attempt's outcome, for its webhook's health and statistics.
    pub fn outcome(&self) -> AttemptOutcome {
        AttemptOutcome {
            http_status: self.http_status,
            confirmed: self.confirmed,
            of_reader: self.is_of_reader(),
            interrupted: self.is_interrupted(),
            error: self.error_without_reason().map(str::to_owned),
            duration: Duration::from_millis(self.duration_ms),
        }
    }

    /// Whether its worker died before it recorded the outcome.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.error.as_deref().and_then(ErrorCode::of) == Some(ErrorCode::Interrupted)
    }

    /// Whether a reader of a feed made it, so that no request was sent.
    pub(crate) fn is_of_reader(&self) -> bool {
        self.confirmed || self.error.as_deref().and_then(ErrorCode::of).is_some_and(ErrorCode::is_of_reader)
    }

    /// The attempt as its owner sees it, including the parts that the table leaves out.
    pub(crate) fn shown(self, delivery_url: &str) -> Self {
        // A delivery that a reader received may have been sent to an address earlier, or may be sent to one later. The
        // address of an interrupted request may have changed since the publication.
        let is_recorded = !self.is_of_reader() && !self.is_interrupted();
        let delivery_url = is_recorded.then(|| delivery_url.to_owned());
        let url = self.url.or(delivery_url).filter(|url| !url.is_empty());
        let every = || HEADERS.map(str::to_owned).into_iter();
        let request_headers = self.request_headers.map(|names| every().chain(names).collect());
        Self { url, request_headers, ..self }
    }

    /// The attempt without the parts of the response that may repeat the event's content: the body, a redirect's
    /// target, and a reader's reason.
    pub(crate) fn without_answer(self) -> Self {
        let error = self.error_without_reason().map(str::to_owned);
        Self { location: None, response_body: None, error, ..self }
    }

    /// Whether it has anything that [`Self::without_answer`] leaves out.
    pub(crate) fn has_answer(&self) -> bool {
        self.location.is_some() || self.response_body.is_some() || self.error.as_deref() != self.error_without_reason()
    }

    /// The error without a reader's reason. The reason is only in the delivery's history, so that it can be erased.
    pub(crate) fn error_without_reason(&self) -> Option<&str> {
        let error = self.error.as_deref()?;
        Some(if ErrorCode::of(error) == Some(ErrorCode::Reported) { REPORTED } else { error })
    }

    /// The size of its address and header names, in bytes.
    pub(crate) fn request_size(&self) -> usize {
        let names = self.request_headers.iter().flatten().map(|name| name.len() + 8).sum::<usize>();
        self.url.as_ref().map_or(0, String::len) + names
    }

    /// The attempt without its address and headers.
    pub(crate) fn without_request(self) -> Self {
        Self { url: None, request_headers: None, ..self }
    }

    /// Approximate size in the table, in bytes.
    pub fn size(&self) -> usize {
        const NAMES_AND_NUMBERS: usize = 125;
        /// The name of the attribute, and of each header's type.
        const HEADERS: usize = 20;
        let texts = [&self.error, &self.location, &self.response_body, &self.url].into_iter().flatten();
        let headers = self.request_headers.iter().flatten().map(|name| name.len() + 3).sum::<usize>();
        NAMES_AND_NUMBERS + HEADERS + texts.map(String::len).sum::<usize>() + headers
    }

    /// The attempt of a reader that received the delivery from its webhook's feed. `error` is a code and a sentence;
    /// `None` if the reader confirmed the delivery.
    pub(crate) fn of_reader(number: u32, began: Time, ended: Time, error: Option<String>) -> Self {
        Self {
            confirmed: error.is_none(),
            duration_ms: u64::try_from(ended.since(began).as_millis()).unwrap_or(u64::MAX),
            error,
            ..Self::without_exchange(number, began)
        }
    }

    /// The attempt of a worker that claimed it at this time, and died before it recorded the outcome.
    pub(crate) fn interrupted(number: u32, claimed: Time) -> Self {
        Self { error: Some(INTERRUPTED.to_owned()), ..Self::without_exchange(number, claimed) }
    }

    /// An attempt with no record of its exchange.
    fn without_exchange(number: u32, began: Time) -> Self {
        Self {
            attempt_date: began,
            attempt_number: number,
            confirmed: false,
            duration_ms: 0,
            error: None,
            payload: Payload::Full,
            http_status: None,
            location: None,
            response_body: None,
            retry_after_seconds: None,
            url: None,
            request_headers: None,
        }
    }

    /// The attempt with this outcome of its exchange. `delivery_url` is its delivery's address.
    pub fn of(
        number: u32,
        began: Time,
        ended: Time,
        outcome: &Result<HttpResponse, AttemptError>,
        sent_to: SentTo,
        delivery_url: &str,
    ) -> Self {
        let duration_ms = u64::try_from(ended.since(began).as_millis()).unwrap_or(u64::MAX);
        let attempt = Self {
            attempt_date: began,
            attempt_number: number,
            confirmed: false,
            duration_ms,
            error: None,
            payload: sent_to.payload,
            http_status: None,
            location: None,
            response_body: None,
            retry_after_seconds: None,
            url: Some(sent_to.url).filter(|url| url != delivery_url || sent_to.headers.is_none()),
            request_headers: sent_to.headers,
        };
        match outcome {
            Ok(answer) => Self {
                http_status: Some(answer.status.as_u16()),
                location: answer.location.as_deref().map(masked::url),
                response_body: Some(answer.text()).filter(|body| !body.is_empty()),
                retry_after_seconds: answer.pause_asked_for(ended).map(|wait| wait.as_secs()),
                ..attempt
            },
            Err(error) => Self { error: Some(error.to_string()), ..attempt },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_code() {
        let errors = [
            AttemptError::Dns("x"),
            AttemptError::Connect("x"),
            AttemptError::Tls("x"),
            AttemptError::Timeout("x"),
            AttemptError::Blocked("x"),
        ];
        let of_exchanges = errors.map(|error| ErrorCode::of(&error.to_string()));
        assert!(of_exchanges.iter().all(Option::is_some));
        let others = ["reported: x", "unconfirmed: x", INTERRUPTED].map(ErrorCode::of);
        assert_eq!(of_exchanges.into_iter().chain(others).collect::<Vec<_>>(), ErrorCode::ALL.map(Some));
    }

    #[test]
    fn the_address_of_a_redirect_is_kept_without_secrets_until_it_is_erased() {
        let location = Some("https://hotel.example.com/hooks/?token=s3cret".to_owned());
        let status = http::StatusCode::PERMANENT_REDIRECT;
        let answer =
            HttpResponse { status, location, retry_after: None, media_type: None, body: Vec::new(), truncated: false };
        let url = "http://hotel.example.com/hooks?token=***";
        let sent_to = SentTo { url: url.to_owned(), headers: Some(Vec::new()), payload: Payload::Full };
        let now = Time::from_millis(1_795_167_900_000);
        let attempt = Attempt::of(1, now, now, &Ok(answer), sent_to, url);
        assert_eq!(attempt.location.as_deref(), Some("https://hotel.example.com/hooks/?token=***"));
        assert!(attempt.has_answer());
        assert!(!attempt.without_answer().has_answer());
    }

    #[test]
    fn an_attempt_of_a_reader_shows_no_address() {
        let now = Time::from_millis(1_795_167_900_000);
        for error in [None, Some("reported: x"), Some("unconfirmed: x")] {
            let attempt = Attempt::of_reader(1, now, now, error.map(str::to_owned));
            assert_eq!(attempt.shown("https://hooks.example.com/").url, None, "{error:?}");
        }
    }

    #[test]
    fn an_interrupted_attempt_shows_neither_address_nor_headers() {
        let attempt = Attempt::interrupted(2, Time::from_millis(1_795_167_900_000));
        assert!(attempt.is_interrupted() && !attempt.is_of_reader() && !attempt.has_answer());
        let shown = attempt.shown("https://hooks.example.com/");
        assert_eq!((shown.url, shown.request_headers, shown.http_status), (None, None, None));
    }

    #[test]
    fn the_words_of_a_reader_stay_in_the_history_only() {
        let now = Time::from_millis(1_795_167_900_000);
        let attempt = |error: &str| Attempt::of_reader(1, now, now, Some(error.to_owned()));
        let reported = attempt("reported: Jane Doe has no room");
        assert!(reported.has_answer());
        assert_eq!(reported.outcome().error.as_deref(), Some(REPORTED));
        assert_eq!(ErrorCode::of(REPORTED), Some(ErrorCode::Reported));
        let erased = reported.without_answer();
        assert_eq!((erased.error.as_deref(), erased.has_answer()), (Some(REPORTED), false));
        let unconfirmed = attempt("unconfirmed: x");
        assert!(!unconfirmed.has_answer() && unconfirmed.clone().without_answer() == unconfirmed);
    }
}
