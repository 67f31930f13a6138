//! Finds the template and the programs of a run before anything starts, and names those that are missing.

use std::{
    fs,
    path::{Path, PathBuf},
};

use template::{Function, Template, TemplateError};

/// The paths of programs.
#[derive(Debug)]
pub struct Programs {
    pub binaries: PathBuf,
    /// Serves ministack, for queues and secrets, at a socket; ministack's own program knows ports only.
    pub hypercorn: PathBuf,
}

/// Something that a run needs is missing.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    #[error("there is no template.yaml in {0}; run this in the project's folder, or name it with --project")]
    Project(PathBuf),
    #[error("template.yaml cannot be used")]
    Template(#[source] TemplateError),
    /// A tool from PyPI.
    #[error("{0} is missing or does not run; `make tools` installs it (and needs Python 3.10 or later)")]
    Tool(PathBuf),
    /// A function's binary.
    #[error("{0} is not built; `make run` builds everything, as does `cargo build --workspace --bins`")]
    Binary(PathBuf),
}

pub fn template(project: &Path) -> Result<Template, Missing> {
    let text = fs::read_to_string(project.join("template.yaml")).map_err(|_| Missing::Project(project.to_owned()))?;
    Template::parse(&text).map_err(Missing::Template)
}

/// Finds the tool in the project's virtual environment, and the functions in this folder, or else in the one with this
/// program.
pub fn programs(project: &Path, binaries: Option<&Path>, functions: &[Function]) -> Result<Programs, Missing> {
    let own = std::env::current_exe().unwrap_or_default();
    let binaries = binaries.or(own.parent()).map(Path::to_owned).unwrap_or_default();
    for function in functions {
        let binary = binaries.join(&function.name);
        if !binary.is_file() {
            return Err(Missing::Binary(binary));
        }
    }
    let tool = |name: &str| {
        let path = project.join(".venv/bin").join(name);
        runnable(&path).ok_or(Missing::Tool(path))
    };
    tool("ministack")?;
    let hypercorn = tool("hypercorn")?;
    // Absolute, since the functions' processes may run in another folder than this one.
    Ok(Programs { hypercorn, binaries: std::path::absolute(&binaries).unwrap_or(binaries) })
}

/// The absolute path of a program that can run. The interpreter of a script must exist, since a virtual environment outlives
/// the Python that it was made with.
fn runnable(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let content = fs::read(&path).ok()?;
    let interpreter = content
        .strip_prefix(b"#!")
        .and_then(|script| script.split(|byte| *byte == b'\n').next())
        .map(|line| String::from_utf8_lossy(line).trim().to_owned());
    interpreter.is_none_or(|interpreter| Path::new(&interpreter).exists()).then_some(path)
}
