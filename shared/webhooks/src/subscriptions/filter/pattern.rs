//! Patterns in EventBridge's syntax
//! (<https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html>), as a typed tree.

use problem::{Members, Pointer, Rule, near};
use serde_json::value::RawValue;

use super::{data::Leaf, decimal::Decimal};

/// The deepest nesting of objects.
pub const MAX_DEPTH: usize = 8;
/// The maximum number of values that members are compared with.
pub const MAX_VALUES: usize = 100;
/// The maximum length of a number's text.
const MAX_NUMBER: usize = 64;

/// A pattern: each member must match, and one of the alternatives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pattern {
    pub(super) members: Vec<(String, Node)>,
    /// The alternatives of `$or`.
    pub(super) any_of: Option<Vec<Pattern>>,
}

/// A member's pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// An object's pattern.
    Within(Pattern),
    /// Conditions, one of which must hold.
    OneOf(Vec<Condition>),
}

/// A condition on a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    Equals(Leaf<'static>),
    /// None of these conditions may hold.
    AnythingBut(Vec<Condition>),
    Exists(bool),
    Text(TextTest),
    /// All of these comparisons must hold.
    Numeric(Vec<(Comparison, Decimal)>),
}

/// A condition on a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextTest {
    Prefix(String),
    Suffix(String),
    /// The text in lower case.
    EqualsIgnoringCase(String),
}

/// A comparison with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

/// A fault in a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The value within the pattern.
    pub pointer: Pointer,
    /// The rule that it breaks.
    pub rule: Rule,
    /// The fault, and how to fix it.
    pub detail: String,
}

const OPERATORS: [&str; 6] = ["prefix", "suffix", "equals-ignore-case", "anything-but", "exists", "numeric"];
/// EventBridge operators that webhooks do not support.
const NOT_SUPPORTED: [&str; 2] = ["wildcard", "cidr"];
const TEXT_OPERATORS: [&str; 3] = ["prefix", "suffix", "equals-ignore-case"];

impl Pattern {
    /// Reads a pattern, which is JSON.
    ///
    /// # Errors
    /// All faults that were found.
    pub fn read(json: &RawValue) -> Result<Self, Vec<Fault>> {
        let mut reader = Reader { faults: Vec::new(), values: 0 };
        let pattern = reader.object(&Pointer::default(), json, 1);
        if reader.values > MAX_VALUES {
            let detail = format!("must not have more than {MAX_VALUES} values to compare with");
            reader.refuse(&Pointer::default(), Rule::TooLong, detail);
        }
        if reader.faults.is_empty() { Ok(pattern) } else { Err(reader.faults) }
    }
}

/// Collects the faults during reading.
struct Reader {
    faults: Vec<Fault>,
    values: usize,
}

impl Reader {
    fn refuse(&mut self, pointer: &Pointer, rule: Rule, detail: impl Into<String>) {
        self.faults.push(Fault { pointer: pointer.clone(), rule, detail: detail.into() });
    }

    fn object(&mut self, pointer: &Pointer, json: &RawValue, depth: usize) -> Pattern {
        let mut pattern = Pattern::default();
        let Ok(Members { members, doubled }) = serde_json::from_str::<Members<'_>>(json.get()) else {
            self.refuse(pointer, Rule::InvalidType, "must be an object of members, such as {\"currency\": [\"EUR\"]}");
            return pattern;
        };
        if depth > MAX_DEPTH {
            self.refuse(pointer, Rule::TooLong, format!("must not be nested deeper than {MAX_DEPTH} levels"));
            return pattern;
        }
        for name in doubled {
            self.refuse(&pointer.member(&name), Rule::Duplicate, "must be given only once");
        }
        if members.is_empty() {
            self.refuse(pointer, Rule::Required, "has no members; name a member of the data that must match");
        }
        for (name, value) in members {
            let pointer = pointer.member(&name);
            if name == "$or" {
                pattern.any_of = Some(self.alternatives(&pointer, value, depth));
            } else {
                let node = self.node(&pointer, value, depth);
                pattern.members.push((name, node));
            }
        }
        pattern
    }

    fn alternatives(&mut self, pointer: &Pointer, json: &RawValue, depth: usize) -> Vec<Pattern> {
        let alternatives = self.list(pointer, json, "must be a list of objects, one of which must match");
        let alternatives = alternatives.into_iter().enumerate();
        alternatives.map(|(position, json)| self.object(&pointer.at(position), json, depth + 1)).collect()
    }

    fn node(&mut self, pointer: &Pointer, json: &RawValue, depth: usize) -> Node {
        if json.get().starts_with('{') {
            return Node::Within(self.object(pointer, json, depth + 1));
        }
        let message = "must be a list of accepted values and conditions, such \
                       as [\"EUR\", {\"prefix\": \"US\"}], or an \
                       object of members";
        let wanted = self.list(pointer, json, message).into_iter().enumerate();
        Node::OneOf(wanted.filter_map(|(at, json)| self.condition(&pointer.at(at), json)).collect())
    }

    /// The elements of a list with at least one element.
    fn list<'a>(&mut self, pointer: &Pointer, json: &'a RawValue, message: &str) -> Vec<&'a RawValue> {
        let elements: Vec<&RawValue> = serde_json::from_str(json.get()).unwrap_or_default();
        if elements.is_empty() {
            let rule = if json.get().starts_with('[') { Rule::Required } else { Rule::InvalidType };
            self.refuse(pointer, rule, message);
        }
        elements
    }

    fn condition(&mut self, pointer: &Pointer, json: &RawValue) -> Option<Condition> {
        match json.get().as_bytes().first() {
            Some(b'{') => {}
            Some(b'[') => {
                self.refuse(pointer, Rule::InvalidType, "must be a value or a condition, not a nested list");
                return None;
            }
            _ => return self.leaf(pointer, json).map(Condition::Equals),
        }
        let (operator, operand) = self.operation(pointer, json, &OPERATORS)?;
        let pointer = pointer.member(operator);
        match operator {
            "exists" => self.exists(&pointer, operand),
            "numeric" => self.numeric(&pointer, operand),
            "anything-but" => self.anything_but(&pointer, operand),
            _ => self.text_test(&pointer, operator, operand).map(Condition::Text),
        }
    }

    /// The operator of a condition, which is an object with one member, and its operand.
    fn operation<'a>(
        &mut self,
        pointer: &Pointer,
        json: &'a RawValue,
        known: &[&'static str],
    ) -> Option<(&'static str, &'a RawValue)> {
        let read = serde_json::from_str::<Members<'_>>(json.get());
        let one = read.ok().filter(|read| read.members.len() == 1 && read.doubled.is_empty());
        let Some((name, operand)) = one.and_then(|mut read| read.members.pop()) else {
            self.refuse(pointer, Rule::InvalidFormat, format!("must have exactly one of {}", known.join(", ")));
            return None;
        };
        let operator = known.iter().find(|operator| **operator == name);
        if operator.is_none() {
            let pointer = pointer.member(&name);
            if NOT_SUPPORTED.contains(&name.as_str()) {
                self.refuse(&pointer, Rule::Unknown, format!("is not supported here; use {}", known.join(", ")));
            } else {
                let all = format!("the conditions are {}", known.join(", "));
                let detail = near::none_of("must be a condition", &name, known.iter().copied(), &all);
                self.refuse(&pointer, Rule::Unknown, detail);
            }
        }
        Some((*operator?, operand))
    }

    fn exists(&mut self, pointer: &Pointer, operand: &RawValue) -> Option<Condition> {
        self.values += 1;
        match operand.get() {
            "true" => Some(Condition::Exists(true)),
            "false" => Some(Condition::Exists(false)),
            _ => {
                self.refuse(pointer, Rule::InvalidType, "must be true or false");
                None
            }
        }
    }

    fn numeric(&mut self, pointer: &Pointer, operand: &RawValue) -> Option<Condition> {
        const MESSAGE: &str =
            "must be a list of one or two comparisons (<, <=, =, >= or >) with a number, such as [\">\", 0, \"<=\", 5]";
        let parts = self.list(pointer, operand, MESSAGE);
        let comparisons: Option<Vec<_>> = parts.chunks(2).map(comparison).collect();
        let comparisons = comparisons.filter(|comparisons| (1..=2).contains(&comparisons.len()));
        if comparisons.is_none() && !parts.is_empty() {
            self.refuse(pointer, Rule::InvalidFormat, MESSAGE);
        }
        self.values += parts.len().div_ceil(2);
        comparisons.map(Condition::Numeric)
    }

    /// `anything-but` with a value, a list of values, or a string condition.
    fn anything_but(&mut self, pointer: &Pointer, operand: &RawValue) -> Option<Condition> {
        let refused: Vec<Condition> = match operand.get().as_bytes().first() {
            Some(b'{') => {
                let (operator, inner) = self.operation(pointer, operand, &TEXT_OPERATORS)?;
                let pointer = pointer.member(operator);
                let texts = self.one_or_more(&pointer, inner).into_iter();
                texts
                    .filter_map(|(pointer, text)| self.text_test(&pointer, operator, text).map(Condition::Text))
                    .collect()
            }
            _ => {
                let values = self.one_or_more(pointer, operand).into_iter();
                values.filter_map(|(pointer, value)| self.leaf(&pointer, value).map(Condition::Equals)).collect()
            }
        };
        Some(Condition::AnythingBut(refused))
    }

    /// A value, or a list's values, each with its pointer.
    fn one_or_more<'a>(&mut self, pointer: &Pointer, json: &'a RawValue) -> Vec<(Pointer, &'a RawValue)> {
        if !json.get().starts_with('[') {
            return vec![(pointer.clone(), json)];
        }
        let values = self.list(pointer, json, "must have at least one value").into_iter().enumerate();
        values.map(|(position, value)| (pointer.at(position), value)).collect()
    }

    fn text_test(&mut self, pointer: &Pointer, operator: &str, operand: &RawValue) -> Option<TextTest> {
        self.values += 1;
        let text: Option<String> = serde_json::from_str(operand.get()).ok().filter(|text: &String| !text.is_empty());
        if text.is_none() {
            self.refuse(pointer, Rule::InvalidType, "must be a string that is not empty");
        }
        let text = text?;
        Some(match operator {
            "prefix" => TextTest::Prefix(text),
            "suffix" => TextTest::Suffix(text),
            _ => TextTest::EqualsIgnoringCase(text.to_lowercase()),
        })
    }

    fn leaf(&mut self, pointer: &Pointer, json: &RawValue) -> Option<Leaf<'static>> {
        self.values += 1;
        let text = json.get();
        if text.starts_with(['{', '[']) {
            self.refuse(pointer, Rule::InvalidType, "must be a string, a number, true, false or null");
            return None;
        }
        if !text.starts_with('"') && text.len() > MAX_NUMBER {
            self.refuse(pointer, Rule::TooLong, format!("must not be a number with more than {MAX_NUMBER} characters"));
            return None;
        }
        let leaf = Leaf::read(text);
        if leaf.is_none() {
            self.refuse(pointer, Rule::InvalidFormat, "must be a string of valid Unicode");
        }
        leaf.map(Leaf::into_owned)
    }
}

fn comparison(parts: &[&RawValue]) -> Option<(Comparison, Decimal)> {
    let [comparison, number] = parts else { return None };
    // Parsed, since Go's and Java's encoders write `>` as `\u003e`.
    let comparison: String = serde_json::from_str(comparison.get()).ok()?;
    let comparison = match comparison.as_str() {
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        "=" => Comparison::Equal,
        ">=" => Comparison::GreaterOrEqual,
        ">" => Comparison::Greater,
        _ => return None,
    };
    let number = number.get();
    let is_number = number.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    (is_number && number.len() <= MAX_NUMBER).then(|| (comparison, Decimal::read(number)))
}
