//! `waypost types`: lists the event types, and shows one.

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::print_answer;
use crate::{
    failure::Failure,
    machine,
    output::{BOLD, Output, pretty_json, visible},
    service::{Call, Service, segment},
    table::{Cell, Column, Fit, members, table},
};

const EXAMPLES: &str = "\
Examples:
  waypost types
  waypost types booking.
  waypost types show booking.created";

const SHOW: &str = "\
Examples:
  waypost types show booking.created
  waypost types show booking.created --json | jq .schema";

const COLUMNS: [Column; 2] = [Column { title: "TYPE", fit: Fit::Whole }, Column { title: "LABEL", fit: Fit::Cut }];

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Types {
    /// Only types that begin with this text, such as `booking.`.
    beginning: Option<String>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Shows a type's meaning and samples of its data. With --json, its JSON Schema as well.
    #[command(after_help = SHOW)]
    Show {
        /// The event type, such as booking.created.
        #[arg(value_name = "TYPE", value_parser = segment)]
        kind: String,
    },
}

#[derive(Deserialize)]
struct Listed {
    label: String,
    value: String,
}

/// The event type members that are shown.
#[derive(Deserialize)]
struct Details {
    label: String,
    value: String,
    description: String,
    /// The JSON Pointer of the subject in the data.
    subject: Option<String>,
    samples: Vec<Box<RawValue>>,
}

impl Types {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        match (self.beginning, self.action) {
            (None, Some(Action::Show { kind })) => {
                print_answer(service, Call::get(&["webhook", "event", "type", &kind]), output, shown).await
            }
            (Some(beginning), Some(_)) => Err(Failure::Usage(format!(
                "`{beginning}` filters the list of types: leave it out, or leave out `show`"
            ))),
            (beginning, None) => list_types(service, &beginning.unwrap_or_default(), output).await,
        }
    }
}

/// Lists the types that begin with a string.
pub async fn list_types(service: &Service, beginning: &str, output: Output) -> Result<(), Failure> {
    let mut types: Vec<(Listed, Box<RawValue>)> = Vec::new();
    for json in service.call::<Vec<Box<RawValue>>>(Call::get(&["webhook", "event", "list"])).await? {
        let listed: Listed = service.read(json.get())?;
        if listed.value.starts_with(beginning) {
            types.push((listed, json));
        }
    }
    if output.json {
        let types: Vec<_> = types.iter().map(|(_, json)| json).collect();
        return Ok(output.write(types, "")?);
    }
    if types.is_empty() {
        output.remark(format!("No event type begins with `{}`: `waypost types` lists all.", visible(beginning)));
        return Ok(());
    }
    let rows: Vec<_> =
        types.iter().map(|(listed, _)| [Cell::plain(&listed.value), Cell::plain(&listed.label)]).collect();
    Ok(output.text(table(COLUMNS, &rows, machine::columns()))?)
}

fn shown(details: &Details) -> String {
    let members = members([
        ("type", Some(Cell::plain(&details.value))),
        ("label", Some(Cell::plain(&details.label))),
        ("subject", details.subject.as_deref().map(Cell::plain)),
    ]);
    let samples: Vec<_> = details.samples.iter().map(|sample| visible(&pretty_json(sample.get()))).collect();
    format!(
        "{members}\n\n{}\n\n{BOLD}Samples of `data`{BOLD:#}\n{}",
        visible(details.description.trim_end()),
        samples.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn a_type_is_shown_with_its_meaning_and_the_exact_samples() {
        let details = r#"{"label":"Booking created","value":"booking.created","description":"A booking was made.",
            "since":"1.0.0","version":1,"subject":"/bookingIdentifier","schema":{},"samples":[{"total":1.10},{"a":[]}]}"#;
        let text = strip_str(&shown(&serde_json::from_str(details).expect("a type"))).to_string();
        assert_eq!(
            text,
            "type     booking.created\nlabel    Booking created\nsubject  /bookingIdentifier\n\nA booking was made.\n\n\
             Samples of `data`\n{\n  \"total\": 1.10\n}\n{\n  \"a\": []\n}"
        );
    }
}
