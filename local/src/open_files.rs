//! How many files may be open: each poll of a function and each request to a receiver is a connection, and what
//! systems allow at first (1024, or 256) is less than a busy dispatcher has.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// More than a full load needs, and no more than systems give that say "unlimited".
const ENOUGH: u64 = 10_240;

/// Asks for many, for this process and those that it starts. Where less is allowed, a full load meets that limit.
pub fn allow_many() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = hard.min(ENOUGH).max(soft);
    if setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_err() || wanted < ENOUGH {
        tracing::warn!("only {soft} files may be open at a time (ulimit -n); {ENOUGH} would do for every load");
    }
}
