//! Questions on the terminal, and their answers.

use std::io::{self, IsTerminal};

#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};

use crate::{failure::Failure, machine::without_byte_order_mark, output::to_stderr};

/// Whether there is a person who can answer.
pub fn can_ask() -> bool {
    io::stdin().is_terminal()
}

/// Asks for a value.
pub fn ask(question: &str) -> Result<String, Failure> {
    to_stderr(format_args!("{question}: "));
    given(&line()?, question)
}

/// Asks for a secret, which the terminal does not show.
pub fn ask_hidden(question: &str, name: &str) -> Result<String, Failure> {
    // Otherwise, Ctrl-C would end the program before the terminal shows input again.
    #[cfg(unix)]
    let _caught = signal(SignalKind::interrupt()).map_err(unreadable)?;
    let answer = rpassword::prompt_password(question).map_err(|error| match error.kind() {
        io::ErrorKind::Interrupted => Failure::Interrupted,
        _ => unreadable(error),
    })?;
    given(&answer, name)
}

/// Asks for confirmation of an irreversible action. Any answer but `y` or `yes` is a refusal.
pub fn confirm(question: &str) -> Result<(), Failure> {
    if !can_ask() {
        return Err(Failure::Usage(
            "the program cannot ask for confirmation because standard input is not a terminal: add --yes".to_owned(),
        ));
    }
    to_stderr(format_args!("{question} [y/N] "));
    match line()?.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::Usage("not confirmed: nothing was changed".to_owned())),
    }
}

/// Reads a line from standard input.
pub fn line() -> Result<String, Failure> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(unreadable)?;
    Ok(without_byte_order_mark(&line).to_owned())
}

/// An answer without white space around it; an empty one is a failure.
pub fn given(answer: &str, name: &str) -> Result<String, Failure> {
    let answer = answer.trim();
    if answer.is_empty() { Err(Failure::Usage(format!("{name} is empty"))) } else { Ok(answer.to_owned()) }
}

fn unreadable(error: io::Error) -> Failure {
    Failure::Usage(format!("the answer could not be read: {error}"))
}
