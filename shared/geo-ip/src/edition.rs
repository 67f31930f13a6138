//! An edition's name: a provider's name for a database, such as `GeoLite2-City`.

base::text_type! {
    /// An edition's name: a letter or digit, then up to 63 letters, digits, `.`, `_` and `-`. It is safe in a path and
    /// in a key.
    EditionName, |text: &str| Self::parse(text).ok_or("not the name of an edition")
}

impl EditionName {
    /// The format of a name, as the end of a sentence.
    pub const FORM: &str = "1 to 64 letters, digits, `.`, `_` and `-`, the first a letter or digit";

    /// Parses a name.
    pub fn parse(text: &str) -> Option<Self> {
        let well_formed = text.len() <= 64
            && text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        well_formed.then(|| Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_providers_are_names() {
        for good in ["GeoLite2-City", "dbip-city-lite", "ipinfo_lite", "A", "2.b", &"x".repeat(64)] {
            assert!(EditionName::parse(good).is_some(), "{good}");
        }
        for bad in ["", ".", "..", ".hidden", "-x", "a/b", "a\\b", "a b", "ä", "a\0", &"x".repeat(65)] {
            assert!(EditionName::parse(bad).is_none(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_name_leaves_its_folder(text in ".{0,80}") {
            if let Some(name) = EditionName::parse(&text) {
                let path = std::path::Path::new("folder").join(name.as_str());
                prop_assert_eq!(path.components().count(), 2);
                prop_assert!(path.starts_with("folder"));
            }
        }
    }
}
