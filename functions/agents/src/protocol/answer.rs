//! The response to a request, or the reason for its failure.

use problem::Problem;
use serde_json::{Value, json};

use super::{json_rpc::RpcError, revision::Revision, server::Server};

/// A request's result.
#[derive(Debug)]
pub struct Answer {
    result: Value,
    caching: Option<Caching>,
    /// The Problem that the result reports, if any.
    pub problem: Option<Problem>,
}

/// Why a request has no result.
#[derive(Debug)]
pub enum Failure {
    /// A protocol error.
    Rpc(RpcError),
    /// The token lacks a scope. The HTTP response has a challenge, so that clients get a wider token automatically.
    Token(Problem),
}

/// How long a result may be cached, and by whom.
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching>
#[derive(Debug, Clone, Copy)]
pub struct Caching {
    milliseconds: u32,
    scope: &'static str,
}

impl Caching {
    /// For results that change only with a release and are the same for all callers.
    pub const OF_RELEASE: Self = Self { milliseconds: 3_600_000, scope: "public" };
    /// For results that change only with a release, but depend on the token or the client's selection of tools.
    pub const OF_TOKEN: Self = Self { milliseconds: 300_000, scope: "private" };
    /// For results that may change at any time.
    pub const OF_MOMENT: Self = Self { milliseconds: 0, scope: "private" };
}

impl Answer {
    /// A result for which the protocol defines no caching.
    pub fn new(result: Value) -> Self {
        Self { result, caching: None, problem: None }
    }

    /// A result that may be cached.
    pub fn kept(result: Value, caching: Caching) -> Self {
        Self { result, caching: Some(caching), problem: None }
    }

    /// A result that reports a Problem.
    pub fn reporting(result: Value, problem: Problem) -> Self {
        Self { result, caching: None, problem: Some(problem) }
    }

    /// The result in the form of this revision.
    pub fn in_revision(self, revision: Revision, server: &impl Server) -> (Value, Option<Problem>) {
        let mut result = self.result;
        if !revision.has_handshake() {
            result["resultType"] = "complete".into();
            result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": server.info()});
            if let Some(Caching { milliseconds, scope }) = self.caching {
                result["ttlMs"] = milliseconds.into();
                result["cacheScope"] = scope.into();
            }
        }
        (result, self.problem)
    }
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}
