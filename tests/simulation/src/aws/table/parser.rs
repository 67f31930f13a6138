//! The tokens, paths and values in DynamoDB's expressions and in PartiQL, whose syntax differs.

use serde_json::{Map, Value};

use super::{
    refusal::{Checked, Invalid},
    value::{Path, Step},
};

/// The names and values that a request's expressions may use. DynamoDB refuses a request if one of them is unused.
#[derive(Debug, Default)]
pub(super) struct Placeholders<'a> {
    names: Option<&'a Map<String, Value>>,
    values: Option<&'a Map<String, Value>>,
    parameters: &'a [Value],
    used: Vec<&'a str>,
    used_parameters: usize,
}

impl<'a> Placeholders<'a> {
    /// The placeholders in a call, or in a part of a transaction.
    pub fn of(request: &'a Map<String, Value>) -> Checked<Self> {
        let map = |member: &'static str| match request.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(map)) if !map.is_empty() => Ok(Some(map)),
            Some(other) => Err(Invalid(format!("{member} must not be empty: {other}"))),
        };
        let names = map("ExpressionAttributeNames")?;
        Ok(Self { names, values: map("ExpressionAttributeValues")?, ..Self::default() })
    }

    /// A statement's parameters, in the order of the question marks.
    pub fn parameters(parameters: &'a [Value]) -> Self {
        Self { parameters, ..Self::default() }
    }

    fn name(&mut self, placeholder: &'a str) -> Checked<&'a str> {
        let name = self.names.and_then(|names| names.get(placeholder)).and_then(Value::as_str);
        self.uses(placeholder);
        name.ok_or_else(|| Invalid(format!("An expression attribute name is not defined: {placeholder}")))
    }

    fn value(&mut self, placeholder: &'a str) -> Checked<&'a Value> {
        let value = self.values.and_then(|values| values.get(placeholder));
        self.uses(placeholder);
        value.ok_or_else(|| Invalid(format!("An expression attribute value is not defined: {placeholder}")))
    }

    fn uses(&mut self, placeholder: &'a str) {
        if !self.used.contains(&placeholder) {
            self.used.push(placeholder);
        }
    }

    fn next_parameter(&mut self) -> Checked<&'a Value> {
        let value = self.parameters.get(self.used_parameters);
        self.used_parameters += 1;
        value.ok_or_else(|| Invalid("Number of parameters in request and statement don't match.".to_owned()))
    }

    /// Checks that the request's expressions have used every name, value and parameter.
    pub fn finish(self) -> Checked<()> {
        let mut all = self.names.into_iter().chain(self.values).flat_map(Map::keys);
        if let Some(unused) = all.find(|name| !self.used.contains(&name.as_str())) {
            return Err(Invalid(format!("A placeholder is unused in expressions: {unused}")));
        }
        if self.used_parameters < self.parameters.len() {
            return Err(Invalid("Number of parameters in request and statement don't match.".to_owned()));
        }
        Ok(())
    }
}

/// A token in an expression or a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Token<'a> {
    /// A keyword, a bare name, a name or value behind a placeholder, or a number.
    Word(&'a str),
    /// A name in double quotes.
    Quoted(&'a str),
    /// A string in single quotes.
    Literal(&'a str),
    /// An operator or punctuation mark.
    Sign(&'a str),
    /// The end of the text.
    End,
}

/// A reader of one expression or statement.
#[derive(Debug)]
pub(super) struct Parser<'a, 'p> {
    text: &'a str,
    rest: &'a str,
    placeholders: &'p mut Placeholders<'a>,
}

impl<'a, 'p> Parser<'a, 'p> {
    pub fn new(text: &'a str, placeholders: &'p mut Placeholders<'a>) -> Self {
        Self { text, rest: text, placeholders }
    }

    /// The next token, and the text after it.
    fn split(&self) -> Checked<(Token<'a>, &'a str)> {
        let rest = self.rest.trim_start();
        let Some(first) = rest.chars().next() else { return Ok((Token::End, rest)) };
        let is_part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        let word = |from: usize| {
            let length = rest[from..].find(|sign| !is_part(sign)).map_or(rest.len(), |length| from + length);
            rest.split_at(length)
        };
        if is_part(first) {
            let (word, rest) = word(0);
            return Ok((Token::Word(word), rest));
        }
        if matches!(first, '#' | ':') && rest[1..].starts_with(is_part) {
            let (word, rest) = word(1);
            return Ok((Token::Word(word), rest));
        }
        if matches!(first, '"' | '\'') {
            let (content, rest) = rest[1..].split_once(first).ok_or_else(|| self.unknown("end of a quotation"))?;
            return Ok((if first == '"' { Token::Quoted(content) } else { Token::Literal(content) }, rest));
        }
        let length = if ["<=", ">=", "<>"].iter().any(|sign| rest.starts_with(sign)) { 2 } else { first.len_utf8() };
        let (sign, rest) = rest.split_at(length);
        Ok((Token::Sign(sign), rest))
    }

    pub fn peek(&self) -> Checked<Token<'a>> {
        Ok(self.split()?.0)
    }

    pub fn next(&mut self) -> Checked<Token<'a>> {
        let (token, rest) = self.split()?;
        self.rest = rest;
        Ok(token)
    }

    /// Consumes the token if it is the next one; returns whether it was.
    pub fn takes(&mut self, token: Token<'_>) -> Checked<bool> {
        let (next, rest) = self.split()?;
        let is_next = next == token;
        if is_next {
            self.rest = rest;
        }
        Ok(is_next)
    }

    /// Consumes these words, which must come next.
    pub fn words(&mut self, words: &[&str]) -> Checked<()> {
        words.iter().try_for_each(|word| self.expect(Token::Word(word)))
    }

    /// Consumes this sign, which must come next.
    pub fn sign(&mut self, sign: &str) -> Checked<()> {
        self.expect(Token::Sign(sign))
    }

    fn expect(&mut self, token: Token<'_>) -> Checked<()> {
        if self.takes(token)? { Ok(()) } else { Err(self.unknown(&format!("text in place of {token:?}"))) }
    }

    /// Checks that no text is left.
    pub fn end(&mut self) -> Checked<()> {
        self.expect(Token::End)
    }

    pub fn path(&mut self) -> Checked<Path<'a>> {
        let root = self.name()?;
        let mut steps = Vec::new();
        loop {
            if self.takes(Token::Sign("."))? {
                steps.push(Step::Member(self.name()?));
            } else if self.takes(Token::Sign("["))? {
                let Token::Word(position) = self.next()? else { return Err(self.unknown("position in a list")) };
                steps.push(Step::Element(position.parse().map_err(|_| self.unknown("position in a list"))?));
                self.sign("]")?;
            } else {
                return Ok(Path { root, steps });
            }
        }
    }

    fn name(&mut self) -> Checked<&'a str> {
        match self.next()? {
            Token::Word(word) if word.starts_with('#') => self.placeholders.name(word),
            Token::Word(word) if !word.starts_with(|sign: char| sign == ':' || sign.is_ascii_digit()) => Ok(word),
            Token::Quoted(name) => Ok(name),
            _ => Err(self.unknown("name of an attribute")),
        }
    }

    pub fn value(&mut self) -> Checked<&'a Value> {
        match self.next()? {
            Token::Word(word) if word.starts_with(':') => self.placeholders.value(word),
            Token::Sign("?") => self.placeholders.next_parameter(),
            _ => Err(self.unknown("value")),
        }
    }

    /// The error for the current position.
    pub fn unknown(&self, what: &str) -> Invalid {
        Invalid::unknown(what, format_args!("before `{}` in `{}`", self.rest, self.text))
    }
}
