//! A bundle's processes, read from /proc.

use std::{fs, path::Path};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{LONG, until};

/// A process on this machine. The start time distinguishes it from a later process with the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub id: i32,
    /// The id of the parent process.
    pub parent: i32,
    pub group: i32,
    pub command: String,
    started: u64,
}

impl Process {
    /// All processes running on the machine.
    fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").expect("/proc is there on Linux");
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter_map(Self::read).collect()
    }

    /// Returns `None` if the process has ended, even if its parent has not waited for it yet.
    fn read(id: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name is in parentheses and may contain anything; spaces separate the other fields.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        if matches!(*fields.first()?, "Z" | "X") {
            return None;
        }
        let command = fs::read(format!("/proc/{id}/cmdline")).ok()?;
        Some(Self {
            id,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            command: String::from_utf8_lossy(&command).replace('\0', " ").trim_end().to_owned(),
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether the process runs the program with this name.
    pub fn is(&self, program: &str) -> bool {
        let mut words = self.command.split(' ').map(|word| Path::new(word).file_name().unwrap_or_default());
        // An interpreter's first argument is the program.
        words.next().is_some_and(|name| name == program) || words.next().is_some_and(|name| name == program)
    }

    /// A variable in the process's initial environment.
    pub fn variable(&self, name: &str) -> Option<String> {
        let environment = fs::read(format!("/proc/{}/environ", self.id)).ok()?;
        let mut variables =
            environment.split(|octet| *octet == 0).filter_map(|variable| std::str::from_utf8(variable).ok());
        variables.find_map(|variable| Some(variable.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    }

    /// Sends SIGKILL.
    pub fn kill(&self) {
        // The process may have already ended.
        let _ = kill(Pid::from_raw(self.id), Signal::SIGKILL);
    }
}

/// A process's descendants.
pub fn descendants(root: i32) -> Vec<Process> {
    let all = Process::all();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in all.iter().filter(|process| process.parent == parent) {
            parents.push(child.id);
            found.push(child.clone());
        }
    }
    found
}

/// The processes in the same process groups, even those whose parent has died.
pub fn group_members(of: &[Process]) -> Vec<Process> {
    Process::all().into_iter().filter(|process| of.iter().any(|known| known.group == process.group)).collect()
}

/// Waits until these killed processes are gone.
pub async fn until_gone(processes: &[Process]) {
    let runs = |process: &&Process| Process::read(process.id).is_some_and(|now| now.started == process.started);
    until(&format!("the end of {processes:#?}"), LONG, async || processes.iter().find(runs).is_none().then_some(()))
        .await;
}

/// A process's current memory use.
pub fn memory_kilobytes(process: &Process) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id)).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap_or_default()
}
