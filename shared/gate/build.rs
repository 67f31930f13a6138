//! Generates a table of the routes in template.yaml, which is the only file that declares them.

use std::{env, fmt::Write, fs, path::Path};

const TEMPLATE: &str = "../../template.yaml";

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]
fn main() {
    println!("cargo::rerun-if-changed={TEMPLATE}");
    let yaml = fs::read_to_string(TEMPLATE).expect("template.yaml is in the root of the workspace");
    let template = template::Template::parse(&yaml).expect("template.yaml is a template");
    let mut code = String::from("&[\n");
    for route in template.routes() {
        writeln!(code, "    ({:?}, {:?}),", route.method, route.path).expect("a String takes all");
    }
    code.push(']');
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("routes.rs"), code).expect("cargo's own folder can be written");
}
