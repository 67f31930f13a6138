//! Metrics for alarms: lines of the log of which CloudWatch makes numbers (Embedded Metric Format).
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use std::io::{Write, stdout};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::clock::Time;

/// A number in the namespace `Waypost`. CloudWatch counts it by all dimensions together and by the first alone.
#[derive(Debug, Clone, Copy)]
pub struct Metric<'a> {
    /// The metric's name.
    pub name: &'a str,
    /// The number.
    pub value: f64,
    /// Each with a name and a value; at least one.
    pub dimensions: &'a [(&'a str, &'a str)],
    /// When the number was true.
    pub at: Time,
}

impl Metric<'_> {
    /// Writes the metric as a line of its own, whatever the level of the log is.
    pub fn publish(self) {
        write(self.line());
    }

    /// Writes the metric in a line that has one more member.
    pub fn publish_beside(self, name: &str, member: &impl Serialize) {
        let mut line = self.line();
        // Such members consist of texts and numbers, which can always be written as JSON.
        line.insert(name.to_owned(), serde_json::to_value(member).unwrap_or_default());
        write(line);
    }

    fn line(self) -> Map<String, Value> {
        let names: Vec<_> = self.dimensions.iter().map(|(name, _)| *name).collect();
        // A set that stood there twice would count twice.
        let sets = if names.len() > 1 { vec![&names[..], &names[..1]] } else { vec![&names[..]] };
        let mut line = Map::new();
        line.insert(
            "_aws".into(),
            json!({
                "Timestamp": self.at.as_millis(),
                "CloudWatchMetrics": [{
                    "Namespace": "Waypost",
                    "Dimensions": sets,
                    "Metrics": [{ "Name": self.name, "Unit": "None" }],
                }],
            }),
        );
        line.extend(self.dimensions.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
        line.insert(self.name.into(), self.value.into());
        line
    }
}

/// Writes beside the lines of the log, whose formatter has no place for these members.
fn write(line: Map<String, Value>) {
    // A line that cannot be written cannot be reported either.
    let _ = writeln!(stdout().lock(), "{}", Value::from(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(dimensions: &[(&str, &str)]) -> Value {
        Metric { name: "Age", value: 1.5, dimensions, at: Time::from_millis(7) }.line().into()
    }

    #[test]
    fn a_metric_is_one_line_in_the_form_that_cloudwatch_reads() {
        assert_eq!(
            line(&[("Environment", "staging"), ("Edition", "GeoLite2-City")]),
            json!({
                "_aws": {
                    "Timestamp": 7,
                    "CloudWatchMetrics": [{
                        "Namespace": "Waypost",
                        "Dimensions": [["Environment", "Edition"], ["Environment"]],
                        "Metrics": [{ "Name": "Age", "Unit": "None" }],
                    }],
                },
                "Environment": "staging",
                "Edition": "GeoLite2-City",
                "Age": 1.5,
            })
        );
    }

    #[test]
    fn a_metric_with_one_dimension_is_counted_once() {
        let line = line(&[("Environment", "staging")]);
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["Environment"]]));
    }
}
