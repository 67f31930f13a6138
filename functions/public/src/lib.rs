#![doc = include_str!("../README.md")]

use function::Settings;

pub mod derived;
pub mod problem_page;

/// The contract as JSON.
pub const DOCUMENT: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

/// The contract as a page, without its frame.
pub const REFERENCE: &str = include_str!(concat!(env!("OUT_DIR"), "/reference.html"));

/// The guide for receivers as a page, without its frame.
pub const RECEIVING: &str = include_str!(concat!(env!("OUT_DIR"), "/receiving.html"));

/// The title of the guide for receivers.
pub const RECEIVING_TITLE: &str = include_str!(concat!(env!("OUT_DIR"), "/receiving.title"));

/// Text generated from openapi.yaml, with the document's example hosts replaced by this deployment's addresses.
pub fn with_addresses(text: &str, settings: &Settings) -> String {
    text.replace("https://auth.waypost.example", &settings.auth_url)
        .replace("https://api.waypost.example", &settings.base_url)
}
