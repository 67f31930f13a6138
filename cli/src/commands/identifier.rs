//! Identifiers in arguments. A prefix says which kind of object an identifier names.

use crate::{
    failure::Failure,
    output::{shell_word, visible_line},
};

/// Prefixes of objects without deliveries, and their names.
const OTHERS: [(&str, &str); 3] =
    [("con_", "a payment connection"), ("plk_", "a link into the panel"), ("sec_", "a client secret")];
/// The length of an identifier after its prefix.
const LENGTH: usize = 26;

/// Checks that a text identifies a delivery.
pub fn delivery_identifier(text: &str) -> Result<&str, Failure> {
    if text.starts_with("dlv_") {
        return Ok(text);
    }
    let shown = visible_line(text);
    let word = shell_word(text);
    Err(Failure::Usage(if text.starts_with("evt_") {
        format!("`{shown}` identifies an event, not a delivery (dlv_…): `waypost why {word}` shows its deliveries")
    } else if text.starts_with("whk_") {
        format!(
            "`{shown}` identifies a webhook, not a delivery (dlv_…): `waypost deliveries --webhook {word}` lists its \
             deliveries"
        )
    } else {
        format!(
            "`{shown}` is not a delivery's identifier (dlv_…): `waypost why {word}` finds the deliveries about a subject"
        )
    }))
}

/// Checks that a text may be a subject: it is not the identifier of an object without deliveries, or of a webhook.
pub fn possible_subject(text: &str) -> Result<&str, Failure> {
    let shown = visible_line(text);
    if text.starts_with("whk_") {
        let word = shell_word(text);
        return Err(Failure::Usage(format!(
            "`{shown}` identifies a webhook: `waypost webhooks show {word}` shows its state, and `waypost deliveries \
             --failed --webhook {word}` lists its failed deliveries"
        )));
    }
    // A shorter text with such a prefix may be a subject.
    let is_identifier = |prefix: &str| {
        let rest = text.strip_prefix(prefix).unwrap_or_default();
        rest.len() == LENGTH && rest.bytes().all(|letter| letter.is_ascii_alphanumeric())
    };
    match OTHERS.into_iter().find(|&(prefix, _)| is_identifier(prefix)) {
        Some((_, name)) => Err(Failure::Usage(format!(
            "`{shown}` identifies {name}: `waypost why` explains a subject, a delivery (dlv_…) or an event (evt_…)"
        ))),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_deliverys_identifier_is_refused_with_a_command() {
        assert_eq!(delivery_identifier("dlv_1").ok(), Some("dlv_1"));
        for (text, command) in [
            ("B-1017", "`waypost why B-1017`"),
            ("#B 1017", "`waypost why '#B 1017'`"),
            ("evt_1", "`waypost why evt_1`"),
            ("whk_1", "`waypost deliveries --webhook whk_1`"),
        ] {
            let failure = delivery_identifier(text).expect_err("it is not a delivery's").to_string();
            assert!(failure.contains(command) && failure.contains("(dlv_…)"), "{failure}");
        }
    }

    #[test]
    fn an_identifier_of_another_kind_is_not_a_subject() {
        for subject in ["B-1017", "con_7", "sec_1"] {
            assert_eq!(possible_subject(subject).ok(), Some(subject));
        }
        for (text, part) in [
            ("whk_1", "`waypost webhooks show whk_1`"),
            ("plk_01m74zy5eva3kj3s4w04zg1hhc", "identifies a link into the panel"),
        ] {
            let failure = possible_subject(text).expect_err("it is another kind's").to_string();
            assert!(failure.contains(part), "{failure}");
        }
    }
}
