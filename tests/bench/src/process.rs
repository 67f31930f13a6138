//! A process's processor time and memory, as reported by Linux.

use std::{error::Error, fs, ops::Range, time::Duration};

/// The unit of times in /proc, USER_HZ, which is the same on every current architecture.
const TICK: Duration = Duration::from_millis(10);

/// The resident memory, in bytes: current (`VmRSS`) or peak (`VmHWM`).
pub fn memory(process: u32, what: &str) -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(what)).ok_or("no such line")?;
    let kibi: u64 = line.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibi * 1024)
}

/// A process's processor time, in kernel and user mode.
pub fn computed(process: u32) -> Result<Duration, Box<dyn Error>> {
    time_of(&format!("/proc/{process}/stat"))
}

/// The processor time of the process's threads that have this name.
pub fn computed_by_threads(process: u32, name: &str) -> Result<Duration, Box<dyn Error>> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let path = thread?.path();
        if fs::read_to_string(path.join("comm"))?.trim() == name {
            sum += time_of(&path.join("stat").display().to_string())?;
        }
    }
    Ok(sum)
}

/// A process's children, with their programs' names. A child that ends in the meantime is omitted.
pub fn children(process: u32) -> Result<Vec<(u32, String)>, Box<dyn Error>> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let Some(id) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else { continue };
        let read = |file: &str| fs::read(path.join(file)).ok();
        let (Some(stat), Some(command)) = (read("stat"), read("cmdline")) else { continue };
        let stat = String::from_utf8_lossy(&stat);
        let parent: Option<u32> = fields(&stat).and_then(|fields| fields.get(1)?.parse().ok());
        if parent == Some(process) {
            children.push((id, program(&command)));
        }
    }
    Ok(children)
}

/// The program's name; for a script, the script's name.
fn program(command: &[u8]) -> String {
    let words: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let name = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let names: Vec<String> = words.iter().take(2).map(|word| name(word)).collect();
    names.iter().find(|name| !name.starts_with("python")).cloned().unwrap_or_default()
}

/// The positions of `utime` and `stime` among the fields after the name.
/// <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>
const COMPUTED: Range<usize> = 11..13;

fn time_of(stat: &str) -> Result<Duration, Box<dyn Error>> {
    let stat = fs::read_to_string(stat)?;
    let fields = fields(&stat).ok_or("no name")?;
    let mut ticks = 0;
    for field in &fields[COMPUTED] {
        ticks += field.parse::<u32>()?;
    }
    Ok(TICK * ticks)
}

/// The fields after the name. The name is in parentheses and may contain any characters.
fn fields(stat: &str) -> Option<Vec<&str>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace().collect())
}
