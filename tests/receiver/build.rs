//! Takes the program out of the document, so that what is documented is what is compiled.

use std::{env, error::Error, fs, path::Path};

/// Where the documented program listens.
const DOCUMENTED: &str = "\"127.0.0.1:8080\"";

#[expect(clippy::disallowed_methods, reason = "cargo says in the environment where to write")]
fn main() -> Result<(), Box<dyn Error>> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/receiving-webhooks.md");
    println!("cargo::rerun-if-changed={}", document.display());
    let text = fs::read_to_string(&document)?;
    let (_, program) = text.split_once("\n```rust\n").ok_or("the document has no receiver in Rust")?;
    let (program, _) = program.split_once("\n```\n").ok_or("the receiver in Rust has no end")?;
    if !program.contains(DOCUMENTED) {
        return Err(format!("the receiver in Rust does not listen on {DOCUMENTED}").into());
    }
    // A test chooses where it listens, beside others of its kind.
    let program = program.replace(DOCUMENTED, "env::var(\"ADDRESS\").unwrap_or_default()");
    Ok(fs::write(Path::new(&env::var("OUT_DIR")?).join("receiver.rs"), program)?)
}
