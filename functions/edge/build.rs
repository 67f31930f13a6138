//! Turns openapi.yaml into JSON, the API reference and the uses of each kind of Problem, so that functions start with nothing
//! to parse.

use std::{collections::BTreeMap, env, fmt::Write, fs, path::Path};

use reference::ProblemUse;

const DOCUMENT: &str = "../../openapi.yaml";

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]
fn main() {
    println!("cargo::rerun-if-changed={DOCUMENT}");
    let yaml = fs::read_to_string(DOCUMENT).expect("openapi.yaml stands at the root of the workspace");
    let document = template::contract(&yaml).expect("openapi.yaml is YAML");
    let out = env::var("OUT_DIR").expect("cargo says where generated code goes");
    let write = |name, text| fs::write(Path::new(&out).join(name), text).expect("cargo's own folder can be written");
    write("openapi.json", document.to_string());
    write("reference.html", reference::content(&document));
    write("problem_uses.rs", table(&reference::problem_uses(&document)));
}

/// The uses as a Rust expression: kind, example, operations.
fn table(uses: &BTreeMap<String, ProblemUse>) -> String {
    let mut code = String::from("&[\n");
    for (kind, ProblemUse { example, operations }) in uses {
        writeln!(code, "    ({kind:?}, {example:?}, &{operations:?}),").expect("a String takes all");
    }
    code + "]"
}
