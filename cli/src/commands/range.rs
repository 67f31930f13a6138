//! The range of times that `recover` and `replay` have in common.

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::times::time;

/// The range, as members of the API.
#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// The start of the range, such as 2026-11-20T22:00:00Z, or a duration before now such as 90s, 5m, 4h or 2d.
    #[arg(long = "from", value_name = "TIME", value_parser = time)]
    created_from: Timestamp,
    /// The end of the range, which is not part of it. Defaults to now.
    #[arg(long = "until", value_name = "TIME", value_parser = time)]
    #[serde(skip_serializing_if = "Option::is_none")]
    created_until: Option<Timestamp>,
}
