//! HTTP as the contract wants it: the gate with its order of checks, Problems, calls and replies.

pub mod call;
pub mod gate;
pub mod json_body;
pub mod page;
pub mod problem;
pub mod problem_kind;
pub mod problem_page;
pub mod query;
pub mod reply;
pub mod routes;

pub use call::Call;
pub use gate::{Endpoint, PathBeside};
pub use json_body::{JsonBody, Violations, nothing_said};
pub use problem::Problem;
pub use problem_kind::ProblemKind;
pub use query::Query;
pub use reply::Reply;

/// The one version of the service, as every response says it.
pub const SERVICE_VERSION: &str = "2.0";
/// The header that carries it, both ways.
pub const SERVICE_VERSION_HEADER: &str = "service-version";
/// The spellings of the version that a request may use.
pub const ACCEPTED_VERSIONS: [&str; 2] = ["2.0", "2.0.0"];
