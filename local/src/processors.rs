//! Whether the machine has idle processors.

use std::{fs, time::Duration};

use tokio::time;

/// How long to measure idleness.
const PERIOD: Duration = Duration::from_millis(500);
/// The share of all processor time that must be idle.
const IDLE_PERCENT: u64 = 25;

/// The processor time since the machine started, in ticks.
#[derive(Debug, PartialEq, Eq)]
struct ProcessorTime {
    all: u64,
    idle: u64,
}

impl ProcessorTime {
    /// The processor time used so far; `None` on any system but Linux.
    fn now() -> Option<Self> {
        Self::read(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads the first line of `/proc/stat`: `cpu`, then the ticks that all processors have spent in each state.
    /// Processors are idle in the fourth state and, while waiting for a disk, in the fifth.
    /// <https://man7.org/linux/man-pages/man5/proc_stat.5.html>
    fn read(stat: &str) -> Option<Self> {
        let ticks = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        // The first eight states are disjoint; the next two are contained in others.
        let ticks = ticks.take(8).map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
        Some(Self { all: ticks.iter().sum(), idle: ticks.get(3)? + ticks.get(4)? })
    }

    fn is_idle_since(&self, earlier: &Self) -> bool {
        let all = self.all.saturating_sub(earlier.all);
        let idle = self.idle.saturating_sub(earlier.idle);
        idle * 100 >= all * IDLE_PERCENT
    }
}

/// Waits until a quarter of the machine's processor time has been idle for half a second. If idleness cannot be
/// measured, waits half a second.
pub async fn until_idle() {
    loop {
        let earlier = ProcessorTime::now();
        time::sleep(PERIOD).await;
        match (earlier, ProcessorTime::now()) {
            (Some(earlier), Some(now)) if !now.is_idle_since(&earlier) => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_is_the_part_of_two_states() {
        let stat = "cpu  100 0 50 200 10 0 5 5 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 1\n";
        let earlier = ProcessorTime::read(stat).expect("a line of Linux");
        assert_eq!(earlier, ProcessorTime { all: 370, idle: 210 });
        let later = |all: u64, idle: u64| ProcessorTime { all: 370 + all, idle: 210 + idle };
        assert!(later(100, 25).is_idle_since(&earlier));
        assert!(!later(100, 24).is_idle_since(&earlier));
        assert!(later(0, 0).is_idle_since(&earlier), "no tick has passed: nothing is known to be busy");
    }

    #[test]
    fn a_file_of_another_form_is_not_measured() {
        for stat in ["", "cpu", "cpu ", "cpu  1 2 3 4", "cpu  1 2 x 4 5", "intr 1 2 3 4"] {
            assert_eq!(ProcessorTime::read(stat), None, "{stat:?}");
        }
        #[cfg(target_os = "linux")]
        assert!(ProcessorTime::now().is_some());
    }
}
