#![doc = include_str!("../README.md")]

use gate::{Call, Reply};
use http::StatusCode;
use http::header::{CACHE_CONTROL, COOKIE, LOCATION};
use payments::{ProviderName, browser::Browser};
use problem::Problem;

pub mod outcome_page;
pub mod start_page;

/// The provider in the path; `None` where the text there can be no provider's name.
pub fn provider(call: &Call) -> Option<ProviderName> {
    ProviderName::parse(call.path("provider")).ok()
}

/// The browser that sent the request, known by its cookie.
pub fn browser(call: &Call) -> Option<Browser> {
    let lines = call.headers().get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    Browser::of_cookies(lines)
}

/// Leads a browser on to this address, which no cache may keep.
pub fn redirect(address: &str) -> Result<Reply, Problem> {
    Reply { status: StatusCode::FOUND, headers: Vec::new(), body: String::new() }
        .with_header(CACHE_CONTROL, "no-store")
        .with_computed_header(LOCATION, address)
}
