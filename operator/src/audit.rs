//! The audit trail of what operators do. The functions write theirs to their log; an operator's program writes its lines to
//! standard error, since standard output holds the result.

use base::{
    audit::{Action, AuditOutcome, Entry, Notes},
    clock::{Clock, SystemClock},
};

/// Writes the line of an action that was done. `subject` is an identifier: of an application, a secret or a key.
pub fn write(environment: &str, action: Action, subject: &str) {
    let notes = Notes::default();
    notes.subject(subject);
    let entry = Entry { action, outcome: AuditOutcome::Done, notes: &notes, environment, at: SystemClock.now() };
    eprintln!("{}", entry.text());
}
