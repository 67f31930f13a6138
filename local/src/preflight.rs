//! Whether everything is there that a run needs, told before anything is started.

use std::{
    fs,
    path::{Path, PathBuf},
};

use deployment::{Function, Template, TemplateError};

/// Where programs are.
#[derive(Debug)]
pub struct Programs {
    /// The functions' binaries.
    pub binaries: PathBuf,
    /// What serves ministack, for queues and secrets, at a socket; its own program knows ports only.
    pub hypercorn: PathBuf,
}

/// What is missing.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// The project.
    #[error("there is no template.yaml in {0}; run this in the project's folder, or name it with --project")]
    Project(PathBuf),
    /// The template is no template.
    #[error("template.yaml cannot be used")]
    Template(#[source] TemplateError),
    /// A tool from PyPI.
    #[error("{0} is missing or does not run; `make tools` installs it (and needs Python 3.10 or later)")]
    Tool(PathBuf),
    /// A function's binary.
    #[error("{0} is not built; `make run` builds everything, as does `cargo build --workspace --bins`")]
    Binary(PathBuf),
}

/// Reads the template.
pub fn template(project: &Path) -> Result<Template, Missing> {
    let text = fs::read_to_string(project.join("template.yaml")).map_err(|_| Missing::Project(project.to_owned()))?;
    Template::parse(&text).map_err(Missing::Template)
}

/// Finds the tool in the project's virtual environment, and the functions in their folder: where no other is named, the
/// one with our own binary.
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
    // The functions' processes may run in another folder than we do.
    Ok(Programs { hypercorn, binaries: std::path::absolute(&binaries).unwrap_or(binaries) })
}

/// The absolute path of a program; for a script, only when its interpreter is there, too: a virtual environment
/// outlives the Python that it was made with.
fn runnable(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let content = fs::read(&path).ok()?;
    let interpreter = content
        .strip_prefix(b"#!")
        .and_then(|script| script.split(|byte| *byte == b'\n').next())
        .map(|line| String::from_utf8_lossy(line).trim().to_owned());
    interpreter.is_none_or(|interpreter| Path::new(&interpreter).exists()).then_some(path)
}
