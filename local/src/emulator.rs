//! Lambda itself: the server of `cargo lambda watch`, to which the functions' processes attach.
//!
//! Three of its habits shape what stands around it. It keeps at most 100 requests waiting for a function, and one more
//! stops it altogether, so [`crate::invoke`] never hands it more than there are workers. It fails a worker's answer
//! when the one who asked is gone, which ends the worker, so an invocation is never given up while the function may
//! still answer. And it asks cargo which functions exist: the workspace's own manifest would cost it half a second
//! and, in a fresh clone, a download, so it gets one that says the names and nothing else.

use std::{fmt::Write, net::SocketAddr, path::Path, sync::Arc};

use deployment::Function;

use crate::{
    data::{DataError, write_private},
    processes::{ProcessGroup, Supervised},
};

/// The running emulator.
pub struct Emulator {
    /// Where it listens.
    pub address: SocketAddr,
    _process: Supervised,
}

impl Emulator {
    /// Starts it; it answers a moment later.
    pub fn start(
        group: &Arc<ProcessGroup>,
        program: &Path,
        scratch: &Path,
        address: SocketAddr,
        functions: &[Function],
    ) -> Result<Self, DataError> {
        let manifest = scratch.join("Cargo.toml");
        write_private(&manifest, names_only(functions).as_bytes())?;
        let folder = scratch.to_owned();
        let process = group.keep_running("lambda", program, move |command| {
            command
                .current_dir(&folder)
                .args(["lambda", "watch", "--only-lambda-apis", "--disable-cors", "--ignore-changes"])
                .args(["--invoke-address", &address.ip().to_string(), "--invoke-port", &address.port().to_string()])
                .arg("--manifest-path")
                .arg(&manifest);
        });
        Ok(Self { address, _process: process })
    }

    /// What a worker's `AWS_LAMBDA_RUNTIME_API` is.
    pub fn runtime_api(&self, function: &str) -> String {
        format!("http://{}/.rt/{function}", self.address)
    }
}

fn names_only(functions: &[Function]) -> String {
    let mut manifest =
        "[workspace]\n[package]\nname = \"functions\"\nversion = \"0.0.0\"\nedition = \"2024\"\n".to_owned();
    for function in functions {
        // The emulator starts no function itself, so no file needs to be there. Writing to a String cannot fail.
        let _ = write!(manifest, "[[bin]]\nname = \"{0}\"\npath = \"{0}.rs\"\n", function.name);
    }
    manifest
}
