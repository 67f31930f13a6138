//! Extracts the programs from the document, so that the programs as documented are compiled and tested.

use std::{env, error::Error, fs, path::Path};

/// The address that the documented program listens on.
const DOCUMENTED: &str = "\"127.0.0.1:8080\"";
/// The line of the program that the type for public keys replaces.
const LIBRARY: &str = "use standardwebhooks::Webhook;\n";

#[expect(clippy::disallowed_methods, reason = "cargo passes the output folder in the environment")]
fn main() -> Result<(), Box<dyn Error>> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/receivers.md");
    println!("cargo::rerun-if-changed={}", document.display());
    let text = fs::read_to_string(&document)?;
    let mut blocks = text.split("\n```rust\n").skip(1).filter_map(|block| Some(block.split_once("\n```\n")?.0));
    let program = blocks.next().ok_or("the document has no receiver in Rust")?;
    let with_public_key = blocks.next().ok_or("the document has no type in Rust for public keys")?;
    for needed in [DOCUMENTED, LIBRARY] {
        if !program.contains(needed) {
            return Err(format!("the receiver in Rust has no {needed}").into());
        }
    }
    // The test chooses the address, since several receivers run concurrently.
    let program = program.replace(DOCUMENTED, "env::var(\"ADDRESS\").unwrap_or_default()");
    // This follows the document's instructions.
    let mut other = program.replace(LIBRARY, with_public_key);
    for (old, new) in [("WEBHOOK_SECRET", "WEBHOOK_PUBLIC_KEY"), ("whsec_", "whpk_"), ("signing secret", "public key")]
    {
        other = other.replace(old, new);
    }
    let folder = env::var("OUT_DIR")?;
    fs::write(Path::new(&folder).join("receiver.rs"), program)?;
    Ok(fs::write(Path::new(&folder).join("public_key_receiver.rs"), other)?)
}
