//! An error in words for a person who came with a browser.

/// The words of a page on an error, all of them plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What happened, in a few words.
    pub title: String,
    /// What happened, to whom, and what to do about it: a text for each paragraph.
    pub paragraphs: Vec<String>,
    /// A link that leads on.
    pub link: Option<Link>,
}

/// A link on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where it leads.
    pub address: String,
    /// Its words.
    pub text: String,
}
