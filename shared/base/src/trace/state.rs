//! `tracestate`: a list of notes that tracing systems make on a trace. The service adds none.
//! <https://www.w3.org/TR/trace-context-1/#tracestate-header>

/// The maximum number of members of a list.
const MOST: usize = 32;
/// The maximum length of a list that is passed on: the recommendation requires at least this.
const LONGEST: usize = 512;
/// Members longer than this are removed first.
const LONG_MEMBER: usize = 128;
const LONGEST_TEXT: usize = 256;

/// A list of well-formed members; may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State(String);

impl State {
    /// Reads a list; `None` if the recommendation requires it to be discarded. Members keep their order and do not
    /// change. A list that is too long loses whole members.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut members: Vec<(&str, &str)> = Vec::new();
        for member in text.split(',').map(|member| member.trim_matches([' ', '\t'])).filter(|member| !member.is_empty())
        {
            let (key, value) = member.split_once('=')?;
            if !is_key(key) || !is_value(value) {
                return None;
            }
            // If several members have the same key, the first is the latest.
            if members.iter().any(|(known, _)| *known == key) {
                continue;
            }
            if members.len() == MOST {
                return None;
            }
            members.push((key, member));
        }
        let members = members.into_iter().map(|(_, member)| member).collect();
        Some(Self(shortened(members).join(",")))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The members that fit: removes long members first, and then others, from the end.
fn shortened(mut members: Vec<&str>) -> Vec<&str> {
    while members.iter().map(|member| member.len() + 1).sum::<usize>() > LONGEST + 1 {
        let long = members.iter().rposition(|member| member.len() > LONG_MEMBER);
        members.remove(long.unwrap_or(members.len() - 1));
    }
    members
}

/// Whether a key is valid by Level 2 of the recommendation, which includes all keys of Level 1.
fn is_key(key: &str) -> bool {
    let is_first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    key.len() <= LONGEST_TEXT
        && key.as_bytes().first().is_some_and(is_first)
        && key.bytes().all(|byte| is_first(&byte) || b"_-*/@".contains(&byte))
}

/// Whether a value is printable ASCII with inner spaces, as in a header. Its end is not a space, since members are
/// trimmed.
fn is_value(value: &str) -> bool {
    (1..=LONGEST_TEXT).contains(&value.len()) && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn passed_on(text: &str) -> Option<String> {
        State::parse(text).map(|state| state.0)
    }

    fn list(members: usize, length: usize) -> String {
        let member = |number: usize| {
            let key = format!("k{number}=");
            format!("{key}{}", "x".repeat(length - key.len()))
        };
        (0..members).map(member).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn a_list_is_passed_on_unchanged_but_for_space_around_members() {
        for same in ["", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "fw529a3039@dt=FfAAAAA~a; b:\"c\"", "0a_-*/@z= !~"]
        {
            assert_eq!(passed_on(same).as_deref(), Some(same));
        }
        assert_eq!(passed_on(" a=1 ,\tb= 2\t,, ,c=3,").as_deref(), Some("a=1,b= 2,c=3"));
        assert_eq!(passed_on("a=1,b=2,a=3").as_deref(), Some("a=1,b=2"));
    }

    #[test]
    fn a_malformed_list_is_discarded_as_a_whole() {
        let long = "x".repeat(257);
        for bad in
            ["a", "=1", "a=", "a=1=2", "A=1", "_a=1", "@a=1", "a b=1", "a =1", "a=é", "a=\u{7f}", "a=1\n", "a=1,b"]
        {
            assert_eq!(passed_on(bad), None, "{bad:?}");
        }
        for bad in [format!("{long}=1"), format!("a={long}"), list(33, 5)] {
            assert_eq!(passed_on(&bad), None, "{bad}");
        }
        assert!(passed_on(&format!("{}=1", &long[1..])).is_some() && passed_on(&format!("a={}", &long[1..])).is_some());
        assert!(passed_on(&list(32, 5)).is_some());
    }

    #[test]
    fn too_long_a_list_loses_long_members_first_and_then_the_last() {
        assert_eq!(passed_on(&list(4, 127)), Some(list(4, 127)));
        assert_eq!(list(4, 127).len() + ",z=".len(), 514);
        assert_eq!(passed_on(&format!("{},z=1", list(4, 127))), Some(list(4, 127)));
        let long = "l".repeat(128);
        let short = list(3, 128);
        assert_eq!(passed_on(&format!("a={long},{short},z=1")), Some(format!("{short},z=1")));
    }

    proptest! {
        #[test]
        fn any_text_is_discarded_or_becomes_a_list_that_is_stable(text in "([a-z0-9@]{0,3}=?[ -~]{0,40}[,\t]?){0,40}|\\PC{0,80}") {
            if let Some(list) = passed_on(&text) {
                prop_assert!(list.len() <= LONGEST && list.bytes().all(|byte| matches!(byte, b' '..=b'~')));
                prop_assert!(list.split(',').all(|member| text.contains(member)));
                prop_assert_eq!(passed_on(&list), Some(list.clone()));
            }
        }

        #[test]
        fn a_well_formed_list_within_the_limits_is_passed_on_whole(
            members in proptest::collection::btree_map("[a-z0-9][a-z0-9_*/@-]{0,7}", "[!-+.-<>-~]{1,6}", 0..32)
        ) {
            let list: Vec<_> = members.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let list = list.join(",");
            prop_assume!(list.len() <= LONGEST);
            prop_assert_eq!(passed_on(&list), Some(list));
        }
    }
}
