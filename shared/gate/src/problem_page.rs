//! The page that a Problem's `type` resolves to.

use problem::ProblemKind;

use crate::page::{self, escaped};

/// The page of a kind. Its texts are the service's own, and escaped all the same.
pub fn html(kind: ProblemKind) -> String {
    let (slug, status, explanation) = (kind.slug(), kind.status(), escaped(kind.explanation()));
    let content =
        format!("<p>Problem <code>{slug}</code>, answered with HTTP status {status}.</p>\n<p>{explanation}</p>\n");
    page::html(kind.title(), &content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_explains_its_kind() {
        for kind in ProblemKind::ALL {
            let page = html(*kind);
            assert!(page.contains(&escaped(kind.explanation())) && page.contains(kind.status().as_str()));
        }
    }
}
