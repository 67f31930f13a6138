//! Generates tables of the routes in template.yaml, the only file that declares them.

use std::{env, fmt::Write, fs, path::Path};

const TEMPLATE: &str = "../../template.yaml";

fn main() {
    println!("cargo::rerun-if-changed={TEMPLATE}");
    let yaml = fs::read_to_string(TEMPLATE).expect("template.yaml is in the root of the workspace");
    let template = template::Template::parse(&yaml).expect("template.yaml is a template");
    let routes = template.routes();
    let gets = routes.iter().filter(|route| route.method == "GET");
    write("routes.rs", routes.iter().map(|route| (route.method.as_str(), route.path.as_str())));
    write("gets.rs", gets.map(|route| (route.path.as_str(), route.function.as_str())));
}

/// Writes a table of pairs of strings.
#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]
fn write<'a>(file: &str, rows: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut code = String::from("&[\n");
    for row in rows {
        writeln!(code, "    {row:?},").expect("a String takes all");
    }
    code.push(']');
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join(file), code).expect("cargo's own folder can be written");
}
