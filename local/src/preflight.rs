//! Steps before anything starts: finds the template and the functions' programs, names those that are missing, and raises
//! the limit of open files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use template::{Function, Template, TemplateError};

/// Something that a run needs is missing.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    #[error("there is no template.yaml in {0}; run this in the project's folder, or name it with --project")]
    Project(PathBuf),
    #[error("template.yaml cannot be used")]
    Template(#[source] TemplateError),
    /// A function's binary.
    #[error("{0} is not built; `make run` builds everything, as does `cargo build --workspace --bins`")]
    Binary(PathBuf),
}

pub fn template(project: &Path) -> Result<Template, Missing> {
    let text = fs::read_to_string(project.join("template.yaml")).map_err(|_| Missing::Project(project.to_owned()))?;
    Template::parse(&text).map_err(Missing::Template)
}

/// The folder with the functions' programs: this one, or else the one with this program. It has them all.
pub fn binaries(binaries: Option<&Path>, functions: &[Function]) -> Result<PathBuf, Missing> {
    let own = std::env::current_exe().unwrap_or_default();
    let binaries = binaries.or(own.parent()).map(Path::to_owned).unwrap_or_default();
    for function in functions {
        let binary = binaries.join(&function.name);
        if !binary.is_file() {
            return Err(Missing::Binary(binary));
        }
    }
    // Absolute, since the functions' processes may run in another folder than this one.
    Ok(std::path::absolute(&binaries).unwrap_or(binaries))
}

/// More than a full load needs, and no more than a system gives whose limit is "unlimited".
const ENOUGH: u64 = 10_240;

/// Raises the limit of open files, for this process and its children: each poll of a function and each request to a
/// receiver is a connection, and the usual soft limit (1024, or 256) is less than a busy dispatcher needs. Where the system allows less, a full load meets that limit.
pub fn allow_many_open_files() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = hard.min(ENOUGH).max(soft);
    if setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_err() || wanted < ENOUGH {
        tracing::warn!("only {soft} files may be open at a time (ulimit -n); {ENOUGH} would do for every load");
    }
}
