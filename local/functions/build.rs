//! Generates a module for each function's program, and the function that selects a program by name.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

#[expect(clippy::disallowed_methods, reason = "cargo passes the input of build scripts in the environment")]
fn main() -> Result<(), Box<dyn Error>> {
    let families = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../functions").canonicalize()?;
    println!("cargo::rerun-if-changed={}", families.display());
    let mut modules = String::new();
    let mut choices = String::new();
    for program in programs(&families)? {
        let name = program.file_stem().and_then(|name| name.to_str()).ok_or("a program has a name")?;
        let module = name.replace('-', "_");
        writeln!(modules, "#[path = {program:?}]\nmod {module};")?;
        writeln!(choices, "        {name:?} => Some({module}::main),")?;
    }
    let listed = format!(
        "{modules}\nfn program(name: &str) -> Option<fn() -> Result<(), StartError>> {{\n    match name {{\n{choices}        \
         _ => None,\n    }}\n}}\n"
    );
    fs::write(Path::new(&env::var("OUT_DIR")?).join("programs.rs"), listed)?;
    Ok(())
}

/// The source files of all programs: `functions/<family>/src/bin/<name>.rs`.
fn programs(families: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut programs = Vec::new();
    for family in fs::read_dir(families)? {
        let folder = family?.path().join("src/bin");
        if folder.is_dir() {
            for program in fs::read_dir(folder)? {
                programs.push(program?.path());
            }
        }
    }
    programs.sort();
    Ok(programs)
}
