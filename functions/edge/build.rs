//! Turns openapi.yaml into JSON, so that the function starts with nothing to parse.

use std::{env, fs, path::Path};

const DOCUMENT: &str = "../../openapi.yaml";

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]
fn main() {
    println!("cargo::rerun-if-changed={DOCUMENT}");
    let yaml = fs::read_to_string(DOCUMENT).expect("openapi.yaml stands at the root of the workspace");
    let json = template::yaml_to_json(&yaml).expect("openapi.yaml is YAML");
    let out = env::var("OUT_DIR").expect("cargo says where generated code goes");
    fs::write(Path::new(&out).join("openapi.json"), json.to_string()).expect("cargo's own folder can be written");
}
