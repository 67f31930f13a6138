//! DynamoDB's expressions, for single calls and transactions. Every name is a placeholder, because DynamoDB has 573
//! reserved words.
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.html>

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{
    condition::Condition,
    value::{Path, Value},
    write::Assignment,
};

/// The names and values of the placeholders in one call.
#[derive(Debug, Default)]
pub struct Expressions {
    names: Vec<String>,
    values: Vec<AttributeValue>,
}

impl Expressions {
    /// The update expression for these assignments; `None` if there are none.
    pub fn update(&mut self, assignments: &[Assignment]) -> Option<String> {
        let mut sets = Vec::new();
        let mut adds = Vec::new();
        let mut removals = Vec::new();
        for assignment in assignments {
            match assignment {
                Assignment::Set(name, value) => {
                    sets.push(format!("{} = {}", self.name(name), self.value(value.0.clone())));
                }
                Assignment::SetIfAbsent(name, value) => {
                    let name = self.name(name);
                    sets.push(format!("{name} = if_not_exists({name}, {})", self.value(value.0.clone())));
                }
                Assignment::Add(name, value) => {
                    adds.push(format!("{} {}", self.name(name), self.value(value.0.clone())));
                }
                Assignment::Remove(name) => removals.push(self.name(name)),
            }
        }
        let clauses = [("SET", sets), ("ADD", adds), ("REMOVE", removals)];
        let clauses = clauses.into_iter().filter(|(_, parts)| !parts.is_empty());
        let clauses: Vec<_> = clauses.map(|(verb, parts)| format!("{verb} {}", parts.join(", "))).collect();
        (!clauses.is_empty()).then(|| clauses.join(" "))
    }

    /// The condition expression for all of these conditions; `None` if there are none.
    pub fn condition(&mut self, conditions: &[Condition]) -> Option<String> {
        (!conditions.is_empty()).then(|| self.joined(conditions, " AND "))
    }

    /// A query's key condition: its partition, and optionally a range of its sort key, given as a string with `#` for
    /// the attribute and `?` for each value.
    pub fn key(
        &mut self,
        (attribute, partition): &(&'static str, Value),
        range: Option<(&'static str, &'static str, Vec<Value>)>,
    ) -> String {
        let mut text = format!("{} = {}", self.placeholder(attribute), self.value(partition.0.clone()));
        if let Some((range, attribute, values)) = range {
            let mut range = range.replace('#', &self.placeholder(attribute));
            for value in values {
                range = range.replacen('?', &self.value(value.0), 1);
            }
            text.push_str(&format!(" AND {range}"));
        }
        text
    }

    /// The projection expression for these attributes.
    pub fn projection(&mut self, attributes: &[&str]) -> String {
        let names: Vec<_> = attributes.iter().map(|attribute| self.placeholder(attribute)).collect();
        names.join(", ")
    }

    fn joined(&mut self, conditions: &[Condition], word: &str) -> String {
        let several = conditions.len() > 1;
        let parts: Vec<_> = conditions.iter().map(|condition| self.one(condition, several)).collect();
        parts.join(word)
    }

    fn one(&mut self, condition: &Condition, among_others: bool) -> String {
        let group = |text: String| if among_others { format!("({text})") } else { text };
        match condition {
            Condition::Is(name, comparison, value) => {
                format!("{} {} {}", self.name(name), comparison.sign(), self.value(value.0.clone()))
            }
            Condition::BeginsWith(name, prefix) => {
                format!("begins_with({}, {})", self.name(name), self.value(prefix.0.clone()))
            }
            Condition::Absent(name) => format!("attribute_not_exists({})", self.name(name)),
            Condition::Present(name) => format!("attribute_exists({})", self.name(name)),
            Condition::Any(conditions) => group(self.joined(conditions, " OR ")),
            Condition::All(conditions) => group(self.joined(conditions, " AND ")),
        }
    }

    /// A placeholder for each part of a path.
    fn name(&mut self, path: &Path) -> String {
        path.spelt(|name| self.placeholder(name))
    }

    fn placeholder(&mut self, name: &str) -> String {
        let known = self.names.iter().position(|known| known == name);
        let number = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        format!("#n{number}")
    }

    fn value(&mut self, value: AttributeValue) -> String {
        self.values.push(value);
        format!(":v{}", self.values.len() - 1)
    }

    /// The placeholders' names and values. `None` instead of an empty map, as DynamoDB requires.
    #[expect(clippy::type_complexity, reason = "the SDK's builders take these two maps")]
    pub fn into_maps(self) -> (Option<HashMap<String, String>>, Option<HashMap<String, AttributeValue>>) {
        let names: HashMap<_, _> =
            self.names.into_iter().enumerate().map(|(number, name)| (format!("#n{number}"), name)).collect();
        let values: HashMap<_, _> =
            self.values.into_iter().enumerate().map(|(number, value)| (format!(":v{number}"), value)).collect();
        ((!names.is_empty()).then_some(names), (!values.is_empty()).then_some(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{
        condition::{absent, at_most, begins_with, exists, is, more},
        write::Change,
    };

    #[test]
    fn a_change_is_written_with_placeholders_for_every_name_and_value() {
        let change = Change::of((String::from("W#1"), String::from("HEAD")))
            .set("status", "open")
            .set_if_absent("since", 1_u32)
            .add("count", 2_u32)
            .remove("lease")
            .set(("lastUsed", "key.1"), "2026-11-20");
        let mut expressions = Expressions::default();
        assert_eq!(
            expressions.update(&change.assignments).expect("assignments"),
            "SET #n0 = :v0, #n1 = if_not_exists(#n1, :v1), #n4.#n5 = :v3 ADD #n2 :v2 REMOVE #n3"
        );
        let (names, values) = expressions.into_maps();
        let names = names.expect("names");
        let values = values.expect("values");
        let named = |placeholder: &str| names[placeholder].as_str();
        let all = ["#n0", "#n1", "#n2", "#n3", "#n4", "#n5"].map(named);
        assert_eq!(all, ["status", "since", "count", "lease", "lastUsed", "key.1"]);
        assert_eq!(values[":v2"], AttributeValue::N("2".to_owned()));
    }

    #[test]
    fn a_path_may_lead_into_a_list_and_a_text_may_have_a_prefix() {
        let mut expressions = Expressions::default();
        let sealed = is(("secrets", 1, "sealed"), "x").and(more("version", 1_u32));
        let found = expressions.condition(&[begins_with("sk", "WHK#").or(begins_with("sk", "PAY#")), sealed]);
        assert_eq!(
            found.expect("conditions"),
            "(begins_with(#n0, :v0) OR begins_with(#n0, :v1)) AND (#n1[1].#n2 = :v2 AND #n3 > :v3)"
        );
    }

    #[test]
    fn alternatives_have_parentheses_only_beside_other_conditions() {
        let fresh = || absent("until").or(at_most("until", 5_u32));
        let mut expressions = Expressions::default();
        assert_eq!(
            expressions.condition(&[exists(), fresh(), is("version", 3_u32)]).expect("conditions"),
            "attribute_exists(#n0) AND (attribute_not_exists(#n1) OR #n1 <= :v0) AND #n2 = :v1"
        );
        let mut expressions = Expressions::default();
        let alone = expressions.condition(&[fresh()]).expect("a condition");
        assert_eq!(alone, "attribute_not_exists(#n0) OR #n0 <= :v0");
        assert_eq!(Expressions::default().condition(&[]), None);
    }

    #[test]
    fn the_key_of_a_query_names_its_partition_and_its_range() {
        let mut expressions = Expressions::default();
        let range = ("# BETWEEN ? AND ?", "dueAt", vec![Value::from("0"), Value::from("9")]);
        let text = expressions.key(&("dueShard", "DUE#1".into()), Some(range));
        assert_eq!(text, "#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2");
        assert_eq!(Expressions::default().key(&("pk", "A".into()), None), "#n0 = :v0");
    }

    #[test]
    fn a_projection_uses_placeholders() {
        let mut expressions = Expressions::default();
        expressions.key(&("pk", "A".into()), Some(("# >= ?", "sk", vec!["1".into()])));
        assert_eq!(expressions.projection(&["sk", "until"]), "#n1, #n2");
        assert_eq!(expressions.into_maps().0.expect("names")["#n2"], "until");
    }

    #[test]
    fn a_call_without_names_or_values_sends_none() {
        assert_eq!(Expressions::default().into_maps(), (None, None));
    }
}
