//! What Linux says of a process: how long it has computed, and how much memory it holds.

use std::{error::Error, fs, ops::Range, time::Duration};

/// In which /proc counts time, on every architecture of today: USER_HZ.
const TICK: Duration = Duration::from_millis(10);

/// What Linux counts as resident: now (`VmRSS`), or at most so far (`VmHWM`).
pub fn memory(process: u32, what: &str) -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(what)).ok_or("no such line")?;
    let kibi: u64 = line.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibi * 1024)
}

/// How long a process has computed, in the kernel and outside.
pub fn computed(process: u32) -> Result<Duration, Box<dyn Error>> {
    time_of(&format!("/proc/{process}/stat"), OWN)
}

/// The same, and of those of its children that have ended.
pub fn computed_in_all(process: u32) -> Result<Duration, Box<dyn Error>> {
    time_of(&format!("/proc/{process}/stat"), WITH_ENDED_CHILDREN)
}

/// The same of those of its threads that have this name.
pub fn computed_by_threads(process: u32, name: &str) -> Result<Duration, Box<dyn Error>> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let path = thread?.path();
        if fs::read_to_string(path.join("comm"))?.trim() == name {
            sum += time_of(&path.join("stat").display().to_string(), OWN)?;
        }
    }
    Ok(sum)
}

/// The processes that a process has started, with the names of their programs.
pub fn children(process: u32) -> Result<Vec<(u32, String)>, Box<dyn Error>> {
    let children = all()?.into_iter().filter(|running| running.parent == process);
    Ok(children.map(|child| (child.id, program(&child.command))).collect())
}

/// The processes whose program, as Linux names it, is one of these.
pub fn named(programs: &[&str]) -> Result<Vec<u32>, Box<dyn Error>> {
    let known = |running: &Running| programs.contains(&running.name.as_str());
    Ok(all()?.into_iter().filter(known).map(|running| running.id).collect())
}

struct Running {
    id: u32,
    parent: u32,
    /// The first 15 bytes of the program's name, whatever its command line says.
    name: String,
    command: Vec<u8>,
}

/// Every process of this machine; one that ends meanwhile is left out.
fn all() -> Result<Vec<Running>, Box<dyn Error>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let Some(id) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else { continue };
        let read = |file: &str| fs::read(path.join(file)).ok();
        let (Some(stat), Some(command), Some(name)) = (read("stat"), read("cmdline"), read("comm")) else { continue };
        let stat = String::from_utf8_lossy(&stat);
        let Some(parent) = fields(&stat).and_then(|fields| fields.get(1)?.parse().ok()) else { continue };
        all.push(Running { id, parent, name: String::from_utf8_lossy(&name).trim().to_owned(), command });
    }
    Ok(all)
}

/// The program's name: of a script's command line, the script's.
fn program(command: &[u8]) -> String {
    let words: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let name = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let names: Vec<String> = words.iter().take(2).map(|word| name(word)).collect();
    names.iter().find(|name| !name.starts_with("python")).cloned().unwrap_or_default()
}

/// Of the fields after the name: `utime` and `stime`, and with those of children that were waited for.
/// <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>
const OWN: Range<usize> = 11..13;
const WITH_ENDED_CHILDREN: Range<usize> = 11..15;

fn time_of(stat: &str, wanted: Range<usize>) -> Result<Duration, Box<dyn Error>> {
    let stat = fs::read_to_string(stat)?;
    let fields = fields(&stat).ok_or("no name")?;
    let mut ticks = 0;
    for field in &fields[wanted] {
        ticks += field.parse::<u32>()?;
    }
    Ok(TICK * ticks)
}

/// What follows the name, which is in parentheses and may contain anything.
fn fields(stat: &str) -> Option<Vec<&str>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace().collect())
}
