//! Compiles in the catalogue of event types from the folder `EVENT_CATALOGUE`, or `travel` by default. An error in the
//! catalogue fails the build and names the file and line.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use event_catalogue::{SERVICE, TRAVEL, code, read};

/// The absolute path of the folder; absent or empty for the default.
const FOLDER: &str = "EVENT_CATALOGUE";

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]
fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed={FOLDER}");
    let given = env::var_os(FOLDER).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = given.unwrap_or_else(|| TRAVEL.into());
    if !folder.is_absolute() {
        println!("cargo::error={FOLDER} must be an absolute path; `make run CATALOGUE=folder` makes it one");
        return ExitCode::FAILURE;
    }
    for folder in [Path::new(SERVICE), &folder] {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    let catalogue = match read(&folder) {
        Ok(catalogue) => catalogue,
        Err(mistakes) => {
            mistakes.iter().for_each(|mistake| println!("cargo::error={mistake}"));
            return ExitCode::FAILURE;
        }
    };
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let write = |name, code| fs::write(Path::new(&out).join(name), code).expect("OUT_DIR is writable");
    write("catalogue.rs", code::types(&catalogue));
    write("type_details.rs", code::details(&catalogue));
    ExitCode::SUCCESS
}
