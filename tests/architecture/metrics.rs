//! Alarms, dashboard, runbook and code agree on metrics: an alarm on an unpublished metric never fires, and an alarm
//! without a section in the runbook does not help an operator.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use base::metric::{ENVIRONMENT, NAMESPACE, Name};
use serde_json::Value;
use template::Template;

use crate::template::RELEASE_ALARM;

/// The parts that a section of the runbook must have.
const PARTS: [&str; 3] = ["**Means:**", "**First:**", "**Then:**"];

/// A metric that an alarm or the dashboard names: the namespace, the name, and the dimensions' names.
type Reference = (String, String, BTreeSet<String>);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All resources of a type, keyed by logical identifier.
fn resources(kind: &str) -> BTreeMap<String, Value> {
    let template = Template::parse(&text("template.yaml")).expect("template.yaml is a template");
    let resources = template.resources().iter().filter(|(_, resource)| resource["Type"] == kind);
    resources.map(|(id, resource)| (id.clone(), resource["Properties"].clone())).collect()
}

fn alarms() -> BTreeMap<String, Value> {
    resources("AWS::CloudWatch::Alarm")
}

/// The runbook's sections: the alarms in each heading, and the text below the heading.
fn sections() -> Vec<(Vec<String>, String)> {
    let document = text("docs/alarms.md");
    let sections = document.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap_or((section, "")));
    let names = |heading: &str| heading.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    sections.map(|(heading, body)| (names(heading), body.to_owned())).collect()
}

#[test]
fn every_alarm_has_a_section_of_the_runbook_and_vice_versa() {
    let alarms: Vec<_> = alarms().into_keys().collect();
    let mut described: Vec<_> = sections().into_iter().flat_map(|(names, _)| names).collect();
    described.sort();
    assert_eq!(described, alarms);
    assert!(alarms.len() > 20, "{alarms:?}");
}

#[test]
fn every_section_of_the_runbook_has_meaning_first_step_and_remedy() {
    for (names, body) in sections() {
        let places = PARTS.map(|part| body.find(part).unwrap_or_else(|| panic!("{names:?} lacks {part}")));
        assert!(places.is_sorted(), "{names:?} has its parts in the wrong order");
    }
}

#[test]
fn every_alarm_but_that_of_releases_sends_its_start_and_end() {
    for (name, alarm) in alarms() {
        let sent = ["AlarmActions", "OKActions"].map(|actions| alarm[actions].is_object());
        assert_eq!(sent, [name != RELEASE_ALARM; 2], "{name}");
        assert!(alarm["TreatMissingData"].is_string(), "{name}");
    }
}

fn dimensions(of: &Value) -> BTreeSet<String> {
    let dimensions = of["Dimensions"].as_array().into_iter().flatten();
    dimensions.map(|dimension| dimension["Name"].as_str().expect("a text").to_owned()).collect()
}

fn text_of(value: &Value, member: &str) -> String {
    let text = value[member].as_str().or(value[member]["Fn::Sub"].as_str());
    text.unwrap_or_else(|| panic!("no {member}: {value}")).to_owned()
}

/// The metrics of log filters, which have no dimensions.
fn of_filters() -> Vec<Reference> {
    let filters = resources("AWS::Logs::MetricFilter");
    let metrics = filters.values().flat_map(|filter| filter["MetricTransformations"].as_array().expect("a list"));
    let names = metrics.map(|metric| (text_of(metric, "MetricNamespace"), text_of(metric, "MetricName")));
    names.map(|(namespace, name)| (namespace, name, BTreeSet::new())).collect()
}

/// The metrics that an alarm watches: its own, or those in its expression.
fn of_alarm(alarm: &Value) -> Vec<Reference> {
    let metric = |of: &Value| (text_of(of, "Namespace"), text_of(of, "MetricName"), dimensions(of));
    match alarm["Metrics"].as_array() {
        Some(metrics) => {
            let metrics = metrics.iter().filter(|part| part.get("Expression").is_none());
            metrics.map(|part| metric(&part["MetricStat"]["Metric"])).collect()
        }
        None => vec![metric(alarm)],
    }
}

/// The metric in `SELECT SUM(Errors) FROM SCHEMA("AWS/Lambda", FunctionName) …`.
fn of_query(query: &str) -> Option<Reference> {
    let (name, rest) = query.strip_prefix("SELECT ")?.split_once('(')?.1.split_once(") FROM SCHEMA(")?;
    let mut schema = rest.split_once(')')?.0.split(',').map(|part| part.trim().trim_matches('"').to_owned());
    Some((schema.next()?, name.to_owned(), schema.collect()))
}

/// The metric in a line of the dashboard: `["AWS/SQS", "Name", "Dimension", "value", {…}]`, or a query.
fn of_line(line: &Value) -> Reference {
    let parts: Vec<_> = line.as_array().expect("a line").iter().map_while(Value::as_str).collect();
    match &parts[..] {
        [] => {
            let query = line[0]["expression"].as_str();
            query.and_then(of_query).unwrap_or_else(|| panic!("neither a metric nor a query: {line}"))
        }
        [namespace, name, dimensions @ ..] => {
            assert!(dimensions.len().is_multiple_of(2), "a dimension without its value: {line}");
            let names = dimensions.iter().step_by(2).map(|name| (*name).to_owned());
            ((*namespace).to_owned(), (*name).to_owned(), names.collect())
        }
        [_] => panic!("a namespace without a metric: {line}"),
    }
}

fn of_dashboard() -> Vec<Reference> {
    let dashboards = resources("AWS::CloudWatch::Dashboard");
    let body = dashboards["Dashboard"]["DashboardBody"]["Fn::Sub"].as_str().expect("a text with references");
    let dashboard: Value = serde_json::from_str(body).expect("the dashboard is JSON");
    let widgets = dashboard["widgets"].as_array().expect("widgets");
    widgets
        .iter()
        .flat_map(|widget| widget["properties"]["metrics"].as_array().expect("metrics"))
        .map(of_line)
        .collect()
}

/// The sets of dimensions that we publish a metric with.
fn counted_by(name: Name) -> [BTreeSet<String>; 2] {
    let alone: BTreeSet<_> = [ENVIRONMENT.to_owned()].into();
    let whole = alone.iter().cloned().chain(name.dimensions().iter().map(|name| (*name).to_owned()));
    [whole.collect(), alone]
}

#[test]
fn metrics_of_alarms_and_dashboard_are_published_by_us_or_aws() {
    let of_alarms: Vec<_> = alarms().values().flat_map(of_alarm).collect();
    let of_dashboard = of_dashboard();
    let of_filters = of_filters();
    assert!(of_alarms.len() > 20 && of_dashboard.len() > 40, "{} and {}", of_alarms.len(), of_dashboard.len());
    for reference in of_alarms.into_iter().chain(of_dashboard) {
        let (namespace, name, dimensions) = &reference;
        if namespace == NAMESPACE {
            let published = Name::ALL.iter().find(|published| published.as_str() == name);
            let published = published.unwrap_or_else(|| panic!("the code publishes no {name}"));
            assert!(counted_by(*published).contains(dimensions), "{name} is not counted by {dimensions:?}");
        } else {
            assert!(namespace.starts_with("AWS/") || of_filters.contains(&reference), "{reference:?}");
        }
    }
}

/// The Rust files in a folder and its subfolders.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_metric_is_published_shown_on_the_dashboard_and_described() {
    let mut files = Vec::new();
    for folder in ["shared", "functions"] {
        sources(&root().join(folder), &mut files);
    }
    files.retain(|file| !file.ends_with("base/src/metric.rs"));
    let code: String = files.iter().map(|file| fs::read_to_string(file).expect("a file of ours")).collect();
    let shown: BTreeSet<_> = of_dashboard().into_iter().map(|(_, name, _)| name).collect();
    let document = text("docs/reference.md");
    for name in Name::ALL.iter().map(|name| name.as_str()) {
        assert!(code.contains(&format!("Name::{name}")), "nothing publishes {name}");
        assert!(shown.contains(name), "the dashboard lacks {name}");
        assert!(document.contains(&format!("| `{name}` |")), "docs/reference.md does not describe {name}");
    }
}
