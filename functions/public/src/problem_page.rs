//! The pages about Problems: one for each kind, at the address in a Problem's `type`, and the list of kinds.

use gate::page::{self, escaped, prose};
use problem::{Problem, ProblemKind};

/// A kind in openapi.yaml: its slug, an example, and the operations that return it (identifier, summary).
type Use = (&'static str, Option<&'static str>, &'static [(&'static str, &'static str)]);

/// Each kind's uses, ordered by slug.
const USES: &[Use] = include!(concat!(env!("OUT_DIR"), "/problem_uses.rs"));

/// The request identifier in a generated example.
const EXAMPLE_REQUEST: &str = "0199a3f2-6f3e-7c11-9a51-3f1d2b7c8e90";

/// A kind's page: its meaning and remedy, an example, and the operations that return it.
pub fn of_kind(kind: ProblemKind, base_url: &str) -> String {
    let slug = kind.slug();
    let status = kind.status();
    let base = escaped(base_url);
    let mut content = format!(
        "<p>Problem <code>{slug}</code>, returned with HTTP status {status}.</p>\n<p>{}</p>\n\
         <h2>Example</h2>\n<pre><code>{}</code></pre>\n<h2>Operations</h2>\n",
        prose(kind.explanation()),
        escaped(&example(kind, base_url)),
    );
    let operations = use_of(slug).map_or(&[][..], |(.., operations)| operations);
    if operations.is_empty() {
        content += "<p>Any operation may return it.</p>\n";
    } else {
        content += "<ul>\n";
        for (id, summary) in operations {
            content += &format!("<li><a href=\"{base}/#{id}\">{}</a></li>\n", escaped(summary));
        }
        content += "</ul>\n";
    }
    content +=
        &format!("<p><a href=\"{base}/problems\">All Problems</a> · <a href=\"{base}/\">API reference</a></p>\n");
    page::html(kind.title(), &content)
}

/// The list of all kinds.
pub fn list(base_url: &str) -> String {
    let base = escaped(base_url);
    let rows: String = ProblemKind::ALL
        .iter()
        .map(|kind| {
            let slug = kind.slug();
            let status = kind.status().as_u16();
            let title = escaped(kind.title());
            format!("<tr><td><a href=\"{base}/problems/{slug}\"><code>{slug}</code></a></td><td>{status}</td><td>{title}</td></tr>\n")
        })
        .collect();
    let content = format!(
        "<p>Errors are Problems (<a href=\"https://www.rfc-editor.org/rfc/rfc9457\">RFC 9457</a>). The <code>type</code> of each \
         is the address of one of these pages.</p>\n\
         <table>\n<tr><th>Kind</th><th>Status</th><th>Title</th></tr>\n{rows}</table>\n\
         <p><a href=\"{base}/\">API reference</a></p>\n"
    );
    page::html("Problems", &content)
}

fn use_of(slug: &str) -> Option<&'static Use> {
    USES.iter().find(|(kind, ..)| *kind == slug)
}

/// The example from openapi.yaml, or a generated one with the kind's text.
fn example(kind: ProblemKind, base_url: &str) -> String {
    match use_of(kind.slug()) {
        Some((_, Some(example), _)) => example.replace("https://api.waypost.example", base_url),
        _ => {
            let body = Problem::new(kind, format!("{}.", kind.title())).body(base_url, EXAMPLE_REQUEST);
            format!("{:#}", serde_json::Value::from(body))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "https://api.example.com";

    /// A page without its example, which may contain backticks.
    fn without_example(page: &str) -> String {
        let (before, rest) = page.split_once("<pre>").expect("a page has an example");
        format!("{before}{}", rest.split_once("</pre>").expect("it ends").1)
    }

    #[test]
    fn every_page_has_an_explanation_an_example_operations_and_links() {
        for kind in ProblemKind::ALL {
            let page = of_kind(*kind, BASE);
            let address = format!("{BASE}/problems/{}", kind.slug());
            for part in [
                prose(kind.explanation()).as_str(),
                kind.status().as_str(),
                &format!("<code>{}</code>", kind.slug()),
                &escaped(&format!("\"type\": \"{address}\"")),
                &format!("<a href=\"{BASE}/problems\">"),
                &format!("<a href=\"{BASE}/\">"),
            ] {
                assert!(page.contains(part), "{part}: {page}");
            }
            assert!(!without_example(&page).contains('`') && !page.contains("waypost.example"), "{page}");
        }
    }

    #[test]
    fn the_page_of_a_kind_links_to_its_operations() {
        let page = of_kind(ProblemKind::WebhookLimit, BASE);
        assert!(page.contains(&format!("<a href=\"{BASE}/#createWebhook\">")), "{page}");
        assert!(of_kind(ProblemKind::HeadersTooLarge, BASE).contains("Any operation"), "no operation declares it");
    }

    #[test]
    fn every_kind_that_the_document_names_exists() {
        let unknown: Vec<_> = USES.iter().filter(|(kind, ..)| ProblemKind::of_slug(kind).is_none()).collect();
        assert!(unknown.is_empty() && USES.len() > 30, "{unknown:?}");
    }

    #[test]
    fn the_list_has_every_kind() {
        let list = list(BASE);
        for kind in ProblemKind::ALL {
            assert!(list.contains(&format!("<a href=\"{BASE}/problems/{}\">", kind.slug())), "{}", kind.slug());
        }
    }
}
