//! Turns template.yaml's routes into a table, and openapi.yaml into JSON, so that the functions start with nothing to parse.

use std::{env, fmt::Write, fs, path::Path};

const TEMPLATE: &str = "../../template.yaml";
const DOCUMENT: &str = "../../openapi.yaml";

fn main() {
    routes();
    document();
}

/// The routes are declared in template.yaml and nowhere else.
fn routes() {
    let yaml = read(TEMPLATE);
    let template = deployment::Template::parse(&yaml).expect("template.yaml is a template");
    let mut code =
        String::from("/// The routes of template.yaml: verb and path.\nconst ROUTES: &[(&str, &str)] = &[\n");
    for route in template.routes() {
        writeln!(code, "    ({:?}, {:?}),", route.method, route.path).expect("a String takes all");
    }
    code.push_str("];\n");
    write("routes.rs", &code);
}

fn document() {
    let json = deployment::yaml_to_json(&read(DOCUMENT)).expect("openapi.yaml is YAML");
    write("openapi.json", &json.to_string());
}

fn read(path: &str) -> String {
    println!("cargo::rerun-if-changed={path}");
    fs::read_to_string(path).expect("the file stands at the root of the workspace")
}

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]
fn write(name: &str, content: &str) {
    let out = env::var("OUT_DIR").expect("cargo says where generated code goes");
    fs::write(Path::new(&out).join(name), content).expect("cargo's own folder can be written");
}
