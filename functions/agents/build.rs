//! Extracts the schemas of openapi.yaml, so that the function parses no YAML at startup.

use std::{env, fs, path::Path};

const DOCUMENT: &str = "../../openapi.yaml";

#[expect(clippy::disallowed_methods, reason = "cargo passes settings to build scripts in the environment")]
fn main() {
    println!("cargo::rerun-if-changed={DOCUMENT}");
    let yaml = fs::read_to_string(DOCUMENT).expect("openapi.yaml is at the root of the workspace");
    let document = template::yaml_to_json(&yaml).expect("openapi.yaml is YAML");
    let schemas = document.pointer("/components/schemas").expect("openapi.yaml has schemas");
    let out = env::var("OUT_DIR").expect("cargo sets the output folder");
    fs::write(Path::new(&out).join("schemas.json"), schemas.to_string()).expect("cargo's own folder can be written");
}
