//! Steps before anything starts: finding the template and the functions' programs, and raising the open-file limit.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use template::{Function, Template, TemplateError};

/// A requirement of a run that is missing.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    #[error("there is no template.yaml in {0}; run this in the project's folder, or name it with --project")]
    Project(PathBuf),
    #[error("template.yaml cannot be used")]
    Template(#[source] TemplateError),
    /// The functions' program is missing.
    #[error(
        "{0} is not built; `make run` builds everything, as does `cargo build --package local --package \
         local-functions --bins`"
    )]
    Program(PathBuf),
}

pub fn template(project: &Path) -> Result<Template, Missing> {
    let text = fs::read_to_string(project.join("template.yaml")).map_err(|_| Missing::Project(project.to_owned()))?;
    Template::parse(&text).map_err(Missing::Template)
}

/// The programs of the functions.
#[derive(Debug, Clone)]
pub enum Programs {
    /// One program that contains all functions, selected by `argv[0]`.
    One(PathBuf),
    /// A folder with a separate program for each function, as in a deployment.
    Each(PathBuf),
}

impl Programs {
    /// The programs in this folder, one for each function, or by default the common program next to this one.
    pub fn find(folder: Option<&Path>, functions: &[Function]) -> Result<Self, Missing> {
        let programs = match folder {
            Some(folder) => Self::Each(absolute(folder)),
            None => Self::One(absolute(&std::env::current_exe().unwrap_or_default().with_file_name("functions"))),
        };
        let missing = functions.iter().map(|function| programs.of(function)).find(|program| !program.is_file());
        missing.map_or(Ok(programs), |program| Err(Missing::Program(program)))
    }

    /// The program that runs a function.
    pub fn of(&self, function: &Function) -> PathBuf {
        match self {
            Self::One(program) => program.clone(),
            Self::Each(folder) => folder.join(&function.name),
        }
    }
}

/// The path must be absolute, since the functions' processes may run in another folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// More open files than full load needs, but no more than a system with an "unlimited" limit accepts.
const ENOUGH: u64 = 10_240;

/// Raises the open-file limit for this process and its children. Each poll of a function and each request to a receiver
/// is a connection, and a busy dispatcher needs more of them than the usual soft limit (1024, or 256). If the system
/// allows fewer, full load hits that limit.
pub fn allow_many_open_files() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = hard.min(ENOUGH).max(soft);
    if setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_err() || wanted < ENOUGH {
        tracing::warn!("the limit of open files is {soft} (ulimit -n); {ENOUGH} is enough for any load");
    }
}
