//! The report on a run of many histories: what they covered, and the promises that they broke.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write},
    time::Duration,
};

use crate::{
    faults::{Coverage, Fault, is_call},
    history::Outcome,
    sandbox::Function,
};

/// The number of occurrences below which a history tests hardly anything.
const FEW: u64 = 50;

/// The combined outcomes of many histories.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of histories that have ended.
    pub histories: u64,
    /// The number of occurrences in these histories.
    pub happened: u64,
    /// The number of histories with fewer than 50 occurrences.
    pub with_few: u64,
    /// Where faults occurred.
    pub coverage: Coverage,
    /// The first promise broken by each history that broke any, with the seed, in the order in which the histories
    /// ended.
    pub broken: Vec<(u64, String)>,
}

impl Report {
    /// Adds the outcome of a history.
    pub fn add(&mut self, seed: u64, outcome: &Outcome) {
        self.histories += 1;
        self.happened += outcome.happened;
        self.with_few += u64::from(outcome.happened < FEW);
        self.coverage.add(&outcome.coverage);
        self.broken.extend(outcome.broken.first().map(|broken| (seed, broken.to_string())));
    }

    /// A single line about a run that has taken this long.
    pub fn progress(&self, time: Duration) -> String {
        let seconds = time.as_secs_f64();
        let each = self.histories as f64 / seconds.max(0.001);
        let (histories, broken) = (self.histories, self.broken.len());
        format!("{histories} histories in {seconds:.0} s, {each:.1} a second, {broken} broke a promise")
    }

    /// The complete report on a run that has taken this long.
    pub fn text(&self, time: Duration) -> String {
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let _ = self.write(&mut text, time);
        text
    }

    fn write(&self, text: &mut String, time: Duration) -> fmt::Result {
        let each = self.happened / self.histories.max(1);
        writeln!(text, "{}", self.progress(time))?;
        writeln!(text, "{each} calls, requests and faults in a history; fewer than {FEW} in {}\n", self.with_few)?;
        self.write_kinds(text)?;
        for function in self.functions() {
            self.write_function(text, function)?;
        }
        self.write_gaps(text)?;
        match self.broken.first() {
            None => writeln!(text, "\nNo promise was broken."),
            Some((seed, broken)) => {
                writeln!(text, "\nBroken by the seed {seed}: {broken}\nmake simulate SEED={seed} shows and shrinks it.")
            }
        }
    }

    fn functions(&self) -> BTreeSet<Function> {
        self.coverage.points.keys().map(|(function, _)| *function).collect()
    }

    fn write_kinds(&self, text: &mut String) -> fmt::Result {
        let mut counts: BTreeMap<Fault, u64> = BTreeMap::new();
        for ((_, _, fault), count) in &self.coverage.faults {
            *counts.entry(*fault).or_default() += count;
        }
        writeln!(text, "Faults by kind")?;
        for fault in Fault::ALL {
            writeln!(text, "{:>12}  {}", counts.get(fault).copied().unwrap_or_default(), fault.name())?;
        }
        Ok(())
    }

    /// Writes a function's await points, with a column for each kind of fault that occurs at calls to AWS.
    fn write_function(&self, text: &mut String, function: Function) -> fmt::Result {
        let points = || self.coverage.points.iter().filter(|((of, _), _)| *of == function);
        let calls = || points().filter(|((_, point), _)| is_call(point));
        let cell = |point: &str, fault: Fault| cell(&self.coverage, function, point, fault);
        let columns = Fault::ALL.iter().filter(|fault| calls().any(|((_, point), _)| cell(point, **fault).is_some()));
        let columns: Vec<_> = columns.copied().collect();
        write!(text, "\n{}\n{:>9}", function.name(), "reached")?;
        columns.iter().try_for_each(|fault| write!(text, "  {:>5}", fault.name()))?;
        writeln!(text, "  await point")?;
        for ((_, point), reached) in calls() {
            write!(text, "{reached:>9}")?;
            for fault in &columns {
                let count = cell(point, *fault);
                let count = count.map(|count| if count == 0 { "-".to_owned() } else { count.to_string() });
                write!(text, "  {:>width$}", count.unwrap_or_default(), width = fault.name().len().max(5))?;
            }
            writeln!(text, "  {point}")?;
        }
        for ((_, point), reached) in points().filter(|((_, point), _)| !is_call(point)) {
            let counts = Fault::ALL.iter().filter_map(|fault| Some((fault.name(), cell(point, *fault)?)));
            let counts: Vec<_> = counts.map(|(name, count)| format!("{name} {count}")).collect();
            writeln!(text, "{reached:>9}  {point}: {}", counts.join(", "))?;
        }
        Ok(())
    }

    /// Writes the kinds of faults that could have occurred at an await point but did not.
    fn write_gaps(&self, text: &mut String) -> fmt::Result {
        let mut gaps = String::new();
        for ((function, point), reached) in &self.coverage.points {
            let is_gap = |fault: &&Fault| cell(&self.coverage, *function, point, **fault) == Some(0);
            let missing: Vec<_> = Fault::ALL.iter().filter(is_gap).map(|fault| fault.name()).collect();
            if !missing.is_empty() {
                writeln!(gaps, "{}, {point} (reached {reached} times): {}", function.name(), missing.join(", "))?;
            }
        }
        if gaps.is_empty() {
            return writeln!(text, "\nEach kind of fault occurred at each await point where it can occur.");
        }
        write!(text, "\nNever occurred\n{gaps}")
    }
}

/// How often a fault occurred at an await point; `None` if it cannot occur there and did not.
fn cell(coverage: &Coverage, function: Function, point: &str, fault: Fault) -> Option<u64> {
    let count = coverage.faults.get(&(function, point.to_owned(), fault)).copied();
    count.or_else(|| fault.can_occur_at(point).then_some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: &str = "UpdateItem EVT/dlv_";

    fn report() -> Report {
        let mut report = Report { histories: 4, happened: 2_000, ..Report::default() };
        for _ in 0..12 {
            report.coverage.reached(Function::DispatchDeliveries, CLAIM);
            report.coverage.reached(Function::DispatchDeliveries, "message");
        }
        for fault in [Fault::KilledAfter, Fault::KilledAfter, Fault::IndexLag] {
            report.coverage.injected(Function::DispatchDeliveries, CLAIM, fault);
        }
        report
    }

    #[test]
    fn each_function_has_a_table_of_await_points_and_faults() {
        let text = report().text(Duration::from_secs(2));
        let row = text.lines().find(|line| line.ends_with(CLAIM)).expect("a row");
        let head = text.lines().find(|line| line.ends_with("await point")).expect("a heading");
        let value = |name: &str| {
            let end = head.find(name).expect("a column") + name.len();
            row[..end].rsplit(' ').next().expect("a value").to_owned()
        };
        let values = ["reached", "killed-after", "killed-before", "index-lag"].map(value);
        assert_eq!(values, ["12", "2", "-", "1"], "{text}");
    }

    #[test]
    fn faults_that_never_occurred_are_listed_by_await_point() {
        let text = report().text(Duration::from_secs(2));
        let (_, gaps) = text.split_once("Never occurred\n").expect("a list");
        let expected = "dispatch-deliveries, message (reached 12 times): message-twice, message-late, message-lost";
        assert!(gaps.lines().any(|line| line == expected), "{text}");
        let claim = gaps.lines().find(|line| line.contains(CLAIM)).expect("a line");
        assert!(claim.contains("killed-before") && !claim.contains("killed-after"), "{claim}");
    }

    #[test]
    fn the_first_broken_promise_comes_with_its_seed() {
        let mut report = report();
        assert!(report.text(Duration::from_secs(2)).ends_with("No promise was broken.\n"));
        report.broken = vec![(17, "once: twice".to_owned()), (5, "valid: no".to_owned())];
        let text = report.text(Duration::from_secs(2));
        assert!(text.starts_with("4 histories in 2 s, 2.0 a second, 2 broke a promise\n500 calls"), "{text}");
        assert!(text.contains("Broken by the seed 17: once: twice\nmake simulate SEED=17 shows"), "{text}");
    }
}
