//! PartiQL statements: the action, the table or index, and the partitions.
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.html>

use serde_json::Value;

use crate::expression::key_text;

/// The parts of a statement that matter to IAM.
#[derive(Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The action's name without the service, such as `PartiQLUpdate`.
    pub action: &'static str,
    /// The table, by name or ARN.
    pub table: String,
    /// The index, if the statement reads one.
    pub index: Option<String>,
    tokens: Vec<Token>,
    parameters: &'a [Value],
    /// The index of the first token of the condition or the new item.
    body: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A name or keyword, quoted or not.
    Name(String),
    /// A string literal.
    Text(String),
    /// A number literal.
    Number(String),
    /// The index of the value among the parameters.
    Parameter(usize),
    /// Any other character.
    Sign(char),
}

/// An unsupported statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the PartiQL statement is not supported: {0}")]
pub struct Unread(&'static str);

impl<'a> Statement<'a> {
    /// Reads a statement and its parameters.
    pub fn read(text: &str, parameters: &'a Value) -> Result<Self, Unread> {
        let tokens = tokens(text)?;
        let word = |word: &str| tokens.iter().position(|token| token.is_word(word));
        let (action, target, body) = match tokens.first() {
            Some(verb) if verb.is_word("SELECT") => {
                let from = word("FROM").ok_or(Unread("a SELECT without FROM"))?;
                ("PartiQLSelect", from + 1, word("WHERE"))
            }
            Some(verb) if verb.is_word("INSERT") && tokens.get(1).is_some_and(|word| word.is_word("INTO")) => {
                ("PartiQLInsert", 2, Some(word("VALUE").ok_or(Unread("an INSERT without VALUE"))?))
            }
            Some(verb) if verb.is_word("UPDATE") => ("PartiQLUpdate", 1, word("WHERE")),
            Some(verb) if verb.is_word("DELETE") && tokens.get(1).is_some_and(|word| word.is_word("FROM")) => {
                ("PartiQLDelete", 2, word("WHERE"))
            }
            _ => return Err(Unread("another verb")),
        };
        let name = |place: usize| match tokens.get(place) {
            Some(Token::Name(name)) => Some(name.clone()),
            _ => None,
        };
        let has_index = tokens.get(target + 1) == Some(&Token::Sign('.'));
        Ok(Self {
            action,
            table: name(target).ok_or(Unread("no table"))?,
            index: if has_index { Some(name(target + 2).ok_or(Unread("no index"))?) } else { None },
            parameters: parameters.as_array().map(Vec::as_slice).unwrap_or_default(),
            body,
            tokens,
        })
    }

    /// The partitions that the statement names through the attribute `key`; `None` if it reads all partitions.
    pub fn partitions(&self, key: &str) -> Result<Option<Vec<String>>, Unread> {
        let Some(body) = self.body else { return self.all_partitions() };
        let body = &self.tokens[body + 1..];
        if self.action == "PartiQLInsert" {
            let is_key = |token: &Token| matches!(token, Token::Text(name) | Token::Name(name) if name == key);
            let found = body.windows(3).find(|window| is_key(&window[0]) && window[1] == Token::Sign(':'));
            let value = found.and_then(|window| self.value(&window[2])).ok_or(Unread("an item without its key"))?;
            return Ok(Some(vec![value]));
        }
        let is_key = |place: usize| {
            let after_point = place > 0 && body[place - 1] == Token::Sign('.');
            matches!(&body[place], Token::Name(name) if name == key) && !after_point
        };
        let Some(place) = (0..body.len()).find(|place| is_key(*place)) else { return self.all_partitions() };
        // With an alternative, the condition may also match other partitions.
        let depths = body.iter().scan(0_i32, |depth, token| {
            match token {
                Token::Sign('(' | '[') => *depth += 1,
                Token::Sign(')' | ']') => *depth -= 1,
                _ => {}
            }
            Some(*depth)
        });
        if body.iter().zip(depths).any(|(token, depth)| depth == 0 && token.is_word("OR"))
            || body.iter().any(|token| token.is_word("NOT")) && self.action == "PartiQLSelect"
        {
            return Err(Unread("a condition with alternatives"));
        }
        let found = match (body.get(place + 1), body.get(place + 2)) {
            (Some(Token::Sign('=')), Some(value)) => self.value(value).map(|value| vec![value]),
            (Some(word), Some(Token::Sign('(' | '['))) if word.is_word("IN") => {
                let list = body[place + 3..].iter().take_while(|token| !matches!(token, Token::Sign(')' | ']')));
                list.filter(|token| **token != Token::Sign(',')).map(|token| self.value(token)).collect()
            }
            _ => None,
        };
        found.map(Some).ok_or(Unread("a partition that is compared otherwise than by = or IN"))
    }

    /// The result for a statement that names no partition: a read reads all partitions, and a write is an error.
    fn all_partitions(&self) -> Result<Option<Vec<String>>, Unread> {
        if self.action == "PartiQLSelect" { Ok(None) } else { Err(Unread("a write without its partition")) }
    }

    fn value(&self, token: &Token) -> Option<String> {
        match token {
            Token::Text(text) | Token::Number(text) => Some(text.clone()),
            Token::Parameter(place) => key_text(self.parameters.get(*place)?),
            Token::Name(_) | Token::Sign(_) => None,
        }
    }
}

impl Token {
    fn is_word(&self, word: &str) -> bool {
        matches!(self, Self::Name(name) if name.eq_ignore_ascii_case(word))
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, Unread> {
    let mut tokens = Vec::new();
    let mut rest = text.chars().peekable();
    let mut parameters = 0;
    while let Some(character) = rest.next() {
        tokens.push(match character {
            _ if character.is_whitespace() => continue,
            '\'' | '"' => {
                let mut quoted = String::new();
                loop {
                    match rest.next().ok_or(Unread("a quotation without its end"))? {
                        end if end == character && rest.peek() == Some(&character) => {
                            rest.next();
                            quoted.push(character);
                        }
                        end if end == character => break,
                        other => quoted.push(other),
                    }
                }
                if character == '"' { Token::Name(quoted) } else { Token::Text(quoted) }
            }
            '?' => {
                parameters += 1;
                Token::Parameter(parameters - 1)
            }
            _ if character.is_alphanumeric() || character == '_' => {
                let mut word = String::from(character);
                while let Some(next) = rest.next_if(|next| next.is_alphanumeric() || *next == '_' || *next == '-') {
                    word.push(next);
                }
                if character.is_ascii_digit() { Token::Number(word) } else { Token::Name(word) }
            }
            sign => Token::Sign(sign),
        });
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str, parameters: &[&str]) -> Result<(&'static str, Option<Vec<String>>), Unread> {
        let parameters: Value = parameters.iter().map(|text| json!({ "S": text })).collect();
        let statement = Statement::read(text, &parameters)?;
        Ok((statement.action, statement.partitions("pk")?))
    }

    #[test]
    fn the_partition_of_a_statement_is_found_among_its_parameters() {
        let of = |key: &str| Some(vec![key.to_owned()]);
        assert_eq!(
            read(
                r#"UPDATE "t" SET "status"=? REMOVE "x" WHERE "pk"=? AND "sk"=? AND "a"."pk"=?"#,
                &["s", "EVT#1", "dlv_1", "no"]
            ),
            Ok(("PartiQLUpdate", of("EVT#1")))
        );
        assert_eq!(
            read(r#"INSERT INTO "t" VALUE {'a': ?, 'pk': ?}"#, &["x", "EVENTS#1"]),
            Ok(("PartiQLInsert", of("EVENTS#1")))
        );
        assert_eq!(read("delete from t where pk = 'it''s' and sk = 'b'", &[]), Ok(("PartiQLDelete", of("it's"))));
        assert_eq!(
            read(r#"SELECT * FROM "t" WHERE "pk" IN [?, 'B']"#, &["A"]),
            Ok(("PartiQLSelect", Some(vec!["A".to_owned(), "B".to_owned()])))
        );
        assert_eq!(read(r#"SELECT * FROM "t" WHERE "sk"=?"#, &["A"]), Ok(("PartiQLSelect", None)));
        let parameters = json!([{ "S": "DUE#1" }]);
        let index = Statement::read(r#"SELECT * FROM "t"."byDue" WHERE "dueShard"=?"#, &parameters);
        let index = index.expect("read");
        assert_eq!((&*index.table, index.index.as_deref()), ("t", Some("byDue")));
        assert_eq!(index.partitions("dueShard"), Ok(of("DUE#1")));
    }

    #[test]
    fn a_condition_inside_brackets_may_have_alternatives() {
        let text = r#"UPDATE "t" SET "a"=? WHERE "pk"=? AND "sk"=? AND ("b" = ? OR "c" IS MISSING)"#;
        let of = Some(vec!["W#1".to_owned()]);
        assert_eq!(read(text, &["1", "W#1", "HEAD", "2"]), Ok(("PartiQLUpdate", of)));
    }

    #[test]
    fn statements_that_may_concern_other_partitions_are_refused() {
        for text in [
            r#"UPDATE "t" SET "a"=1 WHERE "sk"=?"#,
            r#"UPDATE "t" SET "a"=1"#,
            r#"SELECT * FROM "t" WHERE "pk"=? OR "a"=1"#,
            r#"SELECT * FROM "t" WHERE NOT ("pk"=?)"#,
            r#"SELECT * FROM "t" WHERE "pk" > ?"#,
            r#"INSERT INTO "t" VALUE {'sk': ?}"#,
            "EXISTS(SELECT * FROM t)",
            "UPDATE \"t",
            "",
        ] {
            assert!(read(text, &["A"]).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_takes_the_reader_down(text in "[a-zA-Z?'\"=(){},. ]{0,60}") {
            drop(read(&text, &["A"]));
            drop(read(&format!("UPDATE t SET {text} WHERE {text}"), &["A"]));
            drop(read(&format!("INSERT INTO t VALUE {text}"), &["A"]));
        }
    }
}
