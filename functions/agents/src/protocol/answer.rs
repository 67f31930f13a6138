//! The answer to a request, and what makes none of it.

use problem::Problem;
use serde_json::{Value, json};

use super::{json_rpc::RpcError, revision::Revision, server::Server};

/// The result of a request.
#[derive(Debug)]
pub struct Answer {
    result: Value,
    caching: Option<Caching>,
    /// The Problem that the result tells of, if it does.
    pub problem: Option<Problem>,
}

/// Why a request has no result.
#[derive(Debug)]
pub enum Failure {
    /// An error in the protocol's words.
    Rpc(RpcError),
    /// The token is not enough. HTTP says so, with a challenge, so that clients fetch a better one by themselves.
    Token(Problem),
}

/// For how long, and by whom, a result may be kept.
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching>
#[derive(Debug, Clone, Copy)]
pub struct Caching {
    milliseconds: u32,
    scope: &'static str,
}

impl Caching {
    /// Of what changes with a release only, and is the same for everybody.
    pub const OF_RELEASE: Self = Self { milliseconds: 3_600_000, scope: "public" };
    /// Of what changes with a release only, and depends on the token.
    pub const OF_TOKEN: Self = Self { milliseconds: 300_000, scope: "private" };
    /// Of what may change at any time.
    pub const OF_MOMENT: Self = Self { milliseconds: 0, scope: "private" };
}

impl Answer {
    /// A result of which the protocol says nothing about keeping it.
    pub fn new(result: Value) -> Self {
        Self { result, caching: None, problem: None }
    }

    /// A result that may be kept.
    pub fn kept(result: Value, caching: Caching) -> Self {
        Self { result, caching: Some(caching), problem: None }
    }

    /// A result that tells of a Problem.
    pub fn telling(result: Value, problem: Problem) -> Self {
        Self { result, caching: None, problem: Some(problem) }
    }

    /// The result of this server as this revision has it.
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
