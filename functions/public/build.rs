//! Turns openapi.yaml into JSON, the API reference and the uses of each kind of Problem. Turns the guide for receivers
//! into a page. Functions then parse nothing at startup.

use std::{collections::BTreeMap, env, fmt::Write, fs, path::Path};

use reference::ProblemUse;

const DOCUMENT: &str = "../../openapi.yaml";
const DOCS: &str = "../../docs";

#[expect(clippy::disallowed_methods, reason = "cargo passes settings to build scripts in the environment")]
fn main() {
    println!("cargo::rerun-if-changed={DOCUMENT}");
    let guides = reference::GUIDE_FILES.map(|(name, _)| format!("{DOCS}/{name}"));
    for path in &guides {
        println!("cargo::rerun-if-changed={path}");
    }
    let yaml = fs::read_to_string(DOCUMENT).expect("openapi.yaml is at the root of the workspace");
    let document = template::contract(&yaml).expect("openapi.yaml is YAML");
    let out = env::var("OUT_DIR").expect("cargo sets the output folder");
    let write = |name, text| fs::write(Path::new(&out).join(name), text).expect("the output folder is writable");
    write("openapi.json", document.to_string());
    write("reference.html", reference::content(&document));
    let texts = guides.map(|path| fs::read_to_string(path).expect("the guide is in the folder docs"));
    let guide = reference::guide(&texts.join("\n"));
    write("receiving.title", guide.title);
    write("receiving.html", guide.content);
    write("problem_uses.rs", table(&reference::problem_uses(&document)));
}

/// The uses as a Rust expression: kind, example, operations.
fn table(uses: &BTreeMap<String, ProblemUse>) -> String {
    let mut code = String::from("&[\n");
    for (kind, ProblemUse { example, operations }) in uses {
        writeln!(code, "    ({kind:?}, {example:?}, &{operations:?}),").expect("writing to a String cannot fail");
    }
    code + "]"
}
