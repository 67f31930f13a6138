//! The wildcards in policies: `*` matches any string, and `?` matches one character.
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_resource.html#reference_policies_elements_resource_wildcards>

/// Whether a string matches the pattern, in time at most proportional to the number of `*` times the string's length.
pub fn matches(pattern: &str, text: &str) -> bool {
    // Fast paths: nearly all patterns have one of these two forms, and every call is compared with dozens of patterns.
    match pattern.find(['*', '?']) {
        None => pattern == text,
        Some(wildcard) if pattern[wildcard..] == *"*" => text.starts_with(&pattern[..wildcard]),
        Some(_) => matches_any(pattern, text),
    }
}

fn matches_any(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let mut at = 0;
    let mut seen = 0;
    // The last `*`, and the length of the part that it matches so far.
    let mut star = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(character) if *character == '?' || *character == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                at = place + 1;
                seen = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|character| *character == '*')
}

/// Whether an action's name matches the pattern, regardless of case.
pub fn matches_action(pattern: &str, action: &str) -> bool {
    if pattern.contains(['*', '?']) {
        matches(&pattern.to_ascii_lowercase(), &action.to_ascii_lowercase())
    } else {
        pattern.eq_ignore_ascii_case(action)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition of a match, as a recursive function.
    fn slowly(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', rest @ ..], _) => slowly(rest, text) || !text.is_empty() && slowly(pattern, &text[1..]),
            (['?', rest @ ..], [_, more @ ..]) => slowly(rest, more),
            ([one, rest @ ..], [other, more @ ..]) => one == other && slowly(rest, more),
            _ => false,
        }
    }

    #[test]
    fn wildcards_match_as_in_iam() {
        for (pattern, text) in
            [("APP#*", "APP#1"), ("APP#*", "APP#"), ("*", ""), ("a?c", "abc"), ("a*b*c", "a1b2bc"), ("KEYS", "KEYS")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("APP#*", "APPS#1"), ("APP#*", "app#1"), ("a?c", "ac"), ("", "a"), ("KEYS", "KEYS#1")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
        assert!(matches_action("DynamoDB:get*", "dynamodb:GetItem"));
        assert!(!matches_action("dynamodb:Get*", "dynamodb:PutItem"));
    }

    proptest! {
        #[test]
        fn matching_fast_is_matching(pattern in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(matches(&pattern, &text), slowly(&chars(&pattern), &chars(&text)));
        }
    }
}
