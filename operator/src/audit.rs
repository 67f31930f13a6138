//! The audit trail of an operator's actions. The functions write theirs to their log; an operator's program writes its lines
//! to standard error, since standard output holds the result.

use base::audit::{Action, AuditOutcome, Entry, Notes};
use base::{Clock, SystemClock};

/// Writes the line of an action that was done.
pub fn write(environment: &str, action: Action, notes: &Notes) {
    let entry = Entry { action, outcome: AuditOutcome::Done, notes, environment, at: SystemClock.now() };
    eprintln!("{}", entry.text());
}
