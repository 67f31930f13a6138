//! A histogram of attempt durations, with ranges narrow enough to know each duration to within a tenth.

use std::collections::BTreeMap;

/// The end of the last range, in milliseconds. Longer durations belong to this range, since an exchange takes at most
/// 15 s.
pub(super) const LONGEST: u64 = 20_000;

/// The number of attempts in each range, by the range's shortest duration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Histogram(pub(super) BTreeMap<u64, u64>);

/// The shortest duration of each range. A range ends at most a sixth above its shortest duration, so that the middle of
/// a range is within a tenth of every duration in it.
fn ranges() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(0u64), |least| Some((*least + 1).max(*least * 7 / 6)).filter(|next| *next < LONGEST))
}

/// The shortest duration of the range that contains a duration.
fn range_of(millis: u64) -> u64 {
    ranges().take_while(|least| *least <= millis).last().unwrap_or_default()
}

/// The geometric middle of a range, which represents all of its durations.
fn middle(least: u64) -> u64 {
    let greatest = ranges().find(|next| *next > least).unwrap_or(LONGEST) - 1;
    // The root of a product of numbers below 20 000 is exact enough, and itself below 20 000.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "both are below 20 000"
    )]
    let middle = ((least * greatest) as f64).sqrt().round() as u64;
    middle
}

impl Histogram {
    pub(super) fn add(&mut self, millis: u64, count: u64) {
        *self.0.entry(range_of(millis)).or_default() += count;
    }

    /// The percentile of the durations, by nearest rank; `None` if the histogram is empty.
    pub(super) fn percentile(&self, percent: u64) -> Option<u64> {
        let total: u64 = self.0.values().sum();
        let rank = (total * percent).div_ceil(100).max(1);
        let mut below = 0;
        let found = self.0.iter().find(|(_, count)| {
            below += **count;
            below >= rank
        });
        found.map(|(least, _)| middle(*least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_duration_beyond_the_longest_counts_as_the_longest() {
        let mut histogram = Histogram::default();
        histogram.add(u64::MAX, 1);
        assert!(histogram.percentile(50).is_some_and(|millis| (17_000..LONGEST).contains(&millis)));
        assert_eq!(Histogram::default().percentile(50), None);
    }

    proptest! {
        #[test]
        fn a_duration_is_known_to_within_a_tenth(millis in 0u64..LONGEST) {
            let shown = middle(range_of(millis));
            prop_assert!(shown.abs_diff(millis) * 10 <= millis, "{millis} is shown as {shown}");
        }
    }
}
