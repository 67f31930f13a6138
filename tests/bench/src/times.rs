//! Statistics of measured times.

use std::time::Duration;

/// The distribution of measured times.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// Half of the times are shorter.
    pub median: Duration,
    /// 95 % of the times are shorter.
    pub high: Duration,
    /// 99 % of the times are shorter.
    pub highest: Duration,
}

impl Times {
    /// The distribution of these times; all zero if there are none.
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
        Self { median: at(50), high: at(95), highest: at(99) }
    }

    /// All three times, in milliseconds.
    pub fn in_millis(self) -> String {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        format!("{:.1} / {:.1} / {:.1}", millis(self.median), millis(self.high), millis(self.highest))
    }
}
