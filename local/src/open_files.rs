//! The limit of open files: each poll of a function and each request to a receiver is a connection, and the usual soft limit
//! (1024, or 256) is less than a busy dispatcher needs.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// More than a full load needs, and no more than a system gives whose limit is "unlimited".
const ENOUGH: u64 = 10_240;

/// Raises the limit, for this process and its children. Where the system allows less, a full load meets that limit.
pub fn allow_many() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = hard.min(ENOUGH).max(soft);
    if setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_err() || wanted < ENOUGH {
        tracing::warn!("only {soft} files may be open at a time (ulimit -n); {ENOUGH} would do for every load");
    }
}
