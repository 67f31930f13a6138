#![doc = include_str!("../README.md")]

use gate::{Call, Reply};
use http::StatusCode;
use http::header::LOCATION;
use payments::{
    ProviderName,
    browser::{Browser, COOKIE},
};
use problem::Problem;

pub mod failure_page;
pub mod outcome_page;
pub mod start_page;

/// The provider in the path; `None` for a malformed name.
pub fn provider(call: &Call) -> Option<ProviderName> {
    ProviderName::parse(call.path("provider")).ok()
}

/// The browser that sent the request, recognised by its cookie.
pub fn browser(call: &Call) -> Option<Browser> {
    call.cookies(COOKIE).first().and_then(|value| Browser::of_cookie(value))
}

/// Redirects a browser to this address. The reply must not be cached.
pub fn redirect(address: &str) -> Result<Reply, Problem> {
    Reply::bare(StatusCode::FOUND).uncached().with_computed_header(LOCATION, address)
}
