//! Extracts the program from the document, so that the documented program is compiled and tested.

use std::{env, error::Error, fs, path::Path};

/// The address at which the documented program listens.
const DOCUMENTED: &str = "\"127.0.0.1:8080\"";

#[expect(clippy::disallowed_methods, reason = "cargo passes the output folder in the environment")]
fn main() -> Result<(), Box<dyn Error>> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/receiving-webhooks.md");
    println!("cargo::rerun-if-changed={}", document.display());
    let text = fs::read_to_string(&document)?;
    let (_, program) = text.split_once("\n```rust\n").ok_or("the document has no receiver in Rust")?;
    let (program, _) = program.split_once("\n```\n").ok_or("the receiver in Rust has no end")?;
    if !program.contains(DOCUMENTED) {
        return Err(format!("the receiver in Rust does not listen on {DOCUMENTED}").into());
    }
    // The test chooses the address, since several receivers run at the same time.
    let program = program.replace(DOCUMENTED, "env::var(\"ADDRESS\").unwrap_or_default()");
    Ok(fs::write(Path::new(&env::var("OUT_DIR")?).join("receiver.rs"), program)?)
}
