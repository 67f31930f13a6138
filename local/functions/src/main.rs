//! All of the bundle's functions, combined into one program. The process's name (`argv[0]`) selects the function to
//! run, so that process lists show the function. A deployment has a separate program for each function, from the same
//! source files.

use std::{env, path::Path, process::ExitCode};

use function::StartError;

include!(concat!(env!("OUT_DIR"), "/programs.rs"));

fn main() -> ExitCode {
    let started_as = env::args_os().next().unwrap_or_default();
    let name = Path::new(&started_as).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(run) = program(name) else {
        eprintln!("There is no function {name:?}: start this program under the name of a function.");
        return ExitCode::FAILURE;
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:?}");
            ExitCode::FAILURE
        }
    }
}
