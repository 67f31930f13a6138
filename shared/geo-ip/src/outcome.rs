//! How the update of an edition ended, in one line for people.

use std::fmt;

use super::pointer::Release;

/// How the update of an edition ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateOutcome {
    /// The source has nothing newer than this published release.
    UpToDate(Box<Release>),
    /// This would be published, in place of that.
    WouldPublish(Box<Release>, Option<Box<Release>>),
    /// This was published, in place of that.
    Published(Box<Release>, Option<Box<Release>>),
    /// Another update has published this meanwhile, which is as new or newer.
    Overtaken(Box<Release>),
}

impl fmt::Display for UpdateOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpToDate(release) => write!(f, "is up to date: build {}", release.label()),
            Self::WouldPublish(release, now) => {
                write!(f, "would publish {}, {}", build_of(release), compared("is", now.as_deref()))
            }
            Self::Published(release, before) => {
                write!(f, "published {}, {}", build_of(release), compared("was", before.as_deref()))
            }
            Self::Overtaken(release) => {
                write!(f, "another update has just published build {}, which stays", release.label())
            }
        }
    }
}

fn build_of(release: &Release) -> String {
    format!("build {}, {}", release.label(), size(release.size_bytes))
}

fn compared(verb: &str, other: Option<&Release>) -> String {
    other.map_or_else(|| "the first".to_owned(), |other| format!("{verb} {}", other.label()))
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", (bytes + 500) / 1_000),
        _ => format!("{} MB", (bytes + 500_000) / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_for_people() {
        assert_eq!(
            [size(999), size(1_499), size(999_999), size(61_600_000)],
            ["999 bytes", "1 KB", "1000 KB", "62 MB"]
        );
    }
}
