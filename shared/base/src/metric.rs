//! Metrics: lines of the log from which CloudWatch extracts numbers, for alarms and the dashboard (Embedded Metric
//! Format).
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>
//!
//! CloudWatch charges for the length of lines and, monthly, for each set of dimensions. So numbers taken at the same
//! moment share a line, and no dimension contains an entity, a webhook or a person.

use std::{
    io::{Write, stdout},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use serde::Serialize;
use serde_json::{Map, Number as JsonNumber, Value, json};

use crate::clock::Time;

/// The namespace of the service's metrics.
pub const NAMESPACE: &str = "Waypost";
/// The dimension that every metric has.
pub const ENVIRONMENT: &str = "Environment";
/// The maximum number of values of one metric in a line.
const VALUES: usize = 100;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident ($unit:literal $(, $by:literal)*),)*) => {
        /// The metrics, with their units and dimensions. CloudWatch aggregates them by all dimensions together, and by
        /// the environment alone.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Name {
            $($(#[$doc])* $name,)*
        }

        impl Name {
            /// Every metric.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name in CloudWatch.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The unit, as CloudWatch spells it.
            pub const fn unit(self) -> &'static str {
                match self { $(Self::$name => $unit,)* }
            }

            /// The dimensions other than the environment.
            pub const fn dimensions(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$($by),*],)* }
            }
        }
    };
}

names! {
    /// Lines of the audit trail.
    Audited("Count", "Action", "Outcome"),
    /// Function responses with a 5xx status.
    ServerErrors("Count"),
    /// Events from the event bus that cannot be published.
    EventsRejected("Count", "Reason"),
    /// Events whose data does not conform to their type's schema.
    EventsNonconforming("Count"),
    /// Days since a published geo-IP database was built.
    GeoIpAgeDays("None", "Edition"),
    /// Connections to payment providers that received new tokens.
    ConnectionsRefreshed("Count"),
    /// Connections to payment providers that broke.
    ConnectionsBroken("Count"),
    /// Token refreshes that failed and will be retried.
    RefreshFailures("Count"),
    /// People who returned from a payment provider.
    Callbacks("Count", "Outcome"),
    /// Completed delivery attempts.
    DeliveriesAttempted("Count"),
    /// Attempts that succeeded, each of which completes a delivery.
    DeliveriesSucceeded("Count"),
    /// Attempts that failed.
    DeliveriesFailed("Count"),
    /// Attempts that failed and were the last in their schedule.
    DeliveriesExhausted("Count"),
    /// The time from an event's publication to the start of its delivery's first attempt.
    FirstAttemptAfter("Milliseconds"),
    /// The time from an event's publication to its arrival, except for deliveries that were resent manually.
    ArrivalAfter("Milliseconds"),
    /// Circuit breakers that opened.
    BreakersOpened("Count"),
    /// The maximum number of attempts that one invocation had in flight at once in the quick lane, whose limit is 50.
    InFlightQuick("Count"),
    /// The maximum number of attempts that one invocation had in flight at once in the slow lane.
    InFlightSlow("Count"),
    /// How long the most overdue delivery has been waiting for its attempt.
    OldestOverdue("Seconds"),
    /// Deliveries that the sweep announced because their message was lost, their function died, their wait exceeded
    /// the longest message delay, a job made them due, or no function claimed them in time.
    DeliveriesSwept("Count"),
    /// The age of the oldest internal event waiting to be published.
    OutboxAge("Seconds"),
    /// The time from the publication of the canary's event to its recorded arrival.
    CanaryArrivalAfter("Milliseconds"),
    /// Runs of the canary that failed.
    CanaryFailures("Count", "Step"),
}

/// A metric's values: at one moment, or for the work since the previous line.
#[derive(Debug, Clone)]
pub struct Number {
    name: Name,
    values: Vec<JsonNumber>,
}

impl Number {
    /// A count.
    pub fn count(name: Name, count: usize) -> Self {
        Self { name, values: vec![count.into()] }
    }

    /// A number with a fraction; no value if JSON cannot express the number.
    pub fn real(name: Name, value: f64) -> Self {
        Self { name, values: JsonNumber::from_f64(value).into_iter().collect() }
    }

    /// A duration, in whole seconds.
    pub fn seconds(name: Name, duration: Duration) -> Self {
        Self { name, values: vec![duration.as_secs().into()] }
    }

    /// Durations, in milliseconds. CloudWatch computes percentiles of them.
    pub fn millis(name: Name, durations: &[Duration]) -> Self {
        let millis = |duration: &Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into();
        Self { name, values: durations.iter().map(millis).collect() }
    }
}

/// Numbers with the same dimensions.
#[derive(Debug, Clone, Copy)]
pub struct Metrics<'a> {
    /// The deployment's name.
    pub environment: &'a str,
    /// The values of the further dimensions, in the order of [`Name::dimensions`]. All the numbers share them.
    pub by: &'a [&'a str],
    /// The numbers; numbers without values are left out.
    pub numbers: &'a [Number],
    /// The time of the numbers.
    pub at: Time,
}

impl Metrics<'_> {
    /// Writes the numbers, regardless of the log level: in one line, or in several if a number has too many values for
    /// one. Writes nothing if there are no values.
    pub fn publish(self) {
        self.lines().into_iter().for_each(write);
    }

    /// Writes the numbers in a line with one more member.
    pub fn publish_beside(self, name: &str, member: &impl Serialize) {
        for mut line in self.lines() {
            // These members consist of strings and numbers, which can always be written as JSON.
            line.insert(name.to_owned(), serde_json::to_value(member).unwrap_or_default());
            write(line);
        }
    }

    /// The lines that [`Self::publish`] writes, for tests.
    #[cfg(any(test, feature = "testing"))]
    pub fn texts(self) -> Vec<String> {
        self.lines().into_iter().map(|line| Value::from(line).to_string()).collect()
    }

    fn lines(self) -> Vec<Map<String, Value>> {
        let most = self.numbers.iter().map(|number| number.values.len()).max().unwrap_or_default();
        let parts = (0..most).step_by(VALUES);
        parts.map(|from| self.line(self.numbers.iter().filter_map(|number| part(number, from)).collect())).collect()
    }

    fn line(self, numbers: Vec<(Name, Value)>) -> Map<String, Value> {
        let by = self.numbers.first().map(|number| number.name.dimensions()).unwrap_or_default();
        debug_assert!(
            by.len() == self.by.len() && self.numbers.iter().all(|number| number.name.dimensions() == by),
            "the numbers of a line have the dimensions that the line has: {self:?}"
        );
        let whole: Vec<_> = [ENVIRONMENT].into_iter().chain(by.iter().copied()).collect();
        // A repeated set would count twice.
        let sets = if by.is_empty() { vec![&whole[..]] } else { vec![&whole[..], &whole[..1]] };
        let names: Vec<_> =
            numbers.iter().map(|(name, _)| json!({ "Name": name.as_str(), "Unit": name.unit() })).collect();
        let metrics = json!([{ "Namespace": NAMESPACE, "Dimensions": sets, "Metrics": names }]);
        let values = [self.environment].into_iter().chain(self.by.iter().copied());
        let mut line = Map::new();
        line.insert("_aws".into(), json!({ "Timestamp": self.at.as_millis(), "CloudWatchMetrics": metrics }));
        line.extend(whole.iter().zip(values).map(|(name, value)| ((*name).to_owned(), value.into())));
        line.extend(numbers.into_iter().map(|(name, value)| (name.as_str().to_owned(), value)));
        line
    }
}

/// The part of a number's values that belongs in the line beginning with value `from`; `None` if there are no more.
fn part(number: &Number, from: usize) -> Option<(Name, Value)> {
    let values = number.values.get(from..)?;
    match values {
        [] => None,
        [value] => Some((number.name, Value::Number(value.clone()))),
        values => {
            let values = values.iter().take(VALUES).cloned().map(Value::Number);
            Some((number.name, values.collect()))
        }
    }
}

/// The longest of the durations that concurrent tasks note.
#[derive(Debug, Default)]
pub struct Longest(AtomicU64);

impl Longest {
    /// Records a duration.
    pub fn note(&self, duration: Duration) {
        self.0.fetch_max(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The longest so far, to the millisecond; zero if none was noted.
    pub fn get(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

static SWITCHED_OFF: AtomicBool = AtomicBool::new(false);

/// Switches off all of this program's metrics and audit lines. A simulation calls this at startup: its output is a
/// report, and it runs more functions than standard output could keep up with.
pub fn switch_off() {
    SWITCHED_OFF.store(true, Ordering::Relaxed);
}

/// Writes a line without the log's formatter, which cannot write these members.
fn write(line: Map<String, Value>) {
    if SWITCHED_OFF.load(Ordering::Relaxed) {
        return;
    }
    // If a line cannot be written, that cannot be reported either.
    let _ = writeln!(stdout().lock(), "{}", Value::from(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Time = Time::from_millis(1_795_167_900_123);

    fn lines(by: &[&str], numbers: &[Number]) -> Vec<Value> {
        let lines = Metrics { environment: "staging", by, numbers, at: AT }.lines();
        lines.into_iter().map(Value::from).collect()
    }

    /// Panics unless a line follows the specification.
    fn assert_valid(line: &Value) {
        /// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html>
        const UNITS: [&str; 4] = ["Count", "Milliseconds", "Seconds", "None"];
        assert!(line.to_string().len() < 256 * 1024, "an event of the log is shorter than 256 KB");
        assert!(line["_aws"]["Timestamp"].is_i64(), "{line}");
        let directives = line["_aws"]["CloudWatchMetrics"].as_array().expect("an array");
        assert!(!directives.is_empty(), "{line}");
        let mut referred = vec!["_aws".to_owned()];
        for directive in directives {
            let is_name = |text: &str| (1..=255).contains(&text.len()) && text.is_ascii() && !text.starts_with(':');
            assert!(directive["Namespace"].as_str().is_some_and(is_name), "{line}");
            let sets = directive["Dimensions"].as_array().expect("an array");
            assert!(!sets.is_empty(), "{line}");
            for set in sets.iter().map(|set| set.as_array().expect("a set of dimensions")) {
                assert!(set.len() <= 30, "{line}");
                assert_eq!(sets.iter().filter(|other| other.as_array() == Some(set)).count(), 1, "{line}");
                for name in set.iter().map(|name| name.as_str().expect("a text")) {
                    assert!(is_name(name), "{name}");
                    let value = line[name].as_str().unwrap_or_else(|| panic!("no text {name}: {line}"));
                    assert!((1..=1_024).contains(&value.len()), "{line}");
                    referred.push(name.to_owned());
                }
            }
            let metrics = directive["Metrics"].as_array().expect("an array");
            assert!((1..=100).contains(&metrics.len()), "{line}");
            for metric in metrics {
                let name = metric["Name"].as_str().expect("a text");
                assert!(is_name(name), "{name}");
                assert!(UNITS.contains(&metric["Unit"].as_str().expect("a text")), "{line}");
                match &line[name] {
                    Value::Number(_) => {}
                    Value::Array(values) => {
                        assert!((1..=100).contains(&values.len()), "{line}");
                        assert!(values.iter().all(Value::is_number), "{line}");
                    }
                    other => panic!("{name} is {other}"),
                }
                referred.push(name.to_owned());
            }
        }
        for member in line.as_object().expect("an object").keys() {
            assert!(referred.contains(member), "nothing refers to {member}: {line}");
        }
    }

    #[test]
    fn a_metric_is_one_line_in_embedded_metric_format() {
        let lines = lines(&["GeoLite2-City"], &[Number::real(Name::GeoIpAgeDays, 1.5)]);
        let expected = json!({
            "_aws": {
                "Timestamp": 1_795_167_900_123_i64,
                "CloudWatchMetrics": [{
                    "Namespace": "Waypost",
                    "Dimensions": [["Environment", "Edition"], ["Environment"]],
                    "Metrics": [{ "Name": "GeoIpAgeDays", "Unit": "None" }],
                }],
            },
            "Environment": "staging",
            "Edition": "GeoLite2-City",
            "GeoIpAgeDays": 1.5,
        });
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn a_metric_with_one_dimension_is_counted_once() {
        let lines = lines(&[], &[Number::count(Name::ConnectionsBroken, 1)]);
        assert_eq!(lines[0]["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["Environment"]]));
    }

    #[test]
    fn several_numbers_with_their_units_share_a_line() {
        let millis = [Duration::from_millis(12), Duration::from_millis(2_500)];
        let numbers = [
            Number::count(Name::DeliveriesAttempted, 2),
            Number::millis(Name::FirstAttemptAfter, &millis),
            Number::seconds(Name::OutboxAge, Duration::from_millis(1_999)),
        ];
        let lines = lines(&[], &numbers);
        let [line] = &lines[..] else { panic!("one line: {lines:#?}") };
        let said = [&line["DeliveriesAttempted"], &line["FirstAttemptAfter"], &line["OutboxAge"]];
        assert_eq!(said, [&json!(2), &json!([12, 2_500]), &json!(1)]);
        let units: Vec<_> =
            line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().expect("an array").iter().collect();
        assert_eq!(units[1], &json!({ "Name": "FirstAttemptAfter", "Unit": "Milliseconds" }));
        assert_valid(line);
    }

    #[test]
    fn a_number_without_values_is_left_out_and_nothing_is_no_line() {
        let none = Number::millis(Name::ArrivalAfter, &[]);
        assert!(lines(&[], &[]).is_empty());
        assert!(lines(&[], std::slice::from_ref(&none)).is_empty());
        assert!(lines(&["x"], &[Number::real(Name::GeoIpAgeDays, f64::NAN)]).is_empty());
        let lines = lines(&[], &[none, Number::count(Name::DeliveriesAttempted, 0)]);
        assert_eq!((lines.len(), lines[0].get("ArrivalAfter")), (1, None));
        assert_valid(&lines[0]);
    }

    #[test]
    fn every_metric_makes_valid_lines_that_keep_any_number_of_values() {
        for name in Name::ALL {
            let by = vec!["value"; name.dimensions().len()];
            for count in [1, 2, 99, 100, 101, 200, 250] {
                let durations: Vec<_> = (0..count).map(Duration::from_millis).collect();
                let lines = lines(&by, &[Number::millis(*name, &durations)]);
                lines.iter().for_each(assert_valid);
                let values = lines.iter().flat_map(|line| match &line[name.as_str()] {
                    Value::Array(values) => values.clone(),
                    value => vec![value.clone()],
                });
                assert_eq!(values.collect::<Vec<_>>(), (0..count).map(Value::from).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_longest_of_durations_is_noted_and_zero_without_any() {
        let longest = Longest::default();
        assert_eq!(longest.get(), Duration::ZERO);
        [3, 9, 4].into_iter().for_each(|seconds| longest.note(Duration::from_secs(seconds)));
        assert_eq!(longest.get(), Duration::from_secs(9));
    }

    #[test]
    fn only_the_first_of_several_lines_has_the_count() {
        let many = vec![Duration::ZERO; 150];
        let numbers = [Number::count(Name::DeliveriesAttempted, 150), Number::millis(Name::FirstAttemptAfter, &many)];
        let lines = lines(&[], &numbers);
        let counts: Vec<_> = lines.iter().map(|line| line.get("DeliveriesAttempted")).collect();
        assert_eq!(counts, [Some(&json!(150)), None]);
        lines.iter().for_each(assert_valid);
    }
}
