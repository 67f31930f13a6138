//! Error pages: a Problem as a page for people, with the same status.

use problem::Problem;

use crate::page::{self, escaped, prose};

/// A Problem's page: its explanation, or the text for its kind, with links for developers.
pub(crate) fn html(problem: &Problem, base_url: &str, request_id: &str) -> String {
    let mut content = String::new();
    let title = match &problem.explanation {
        Some(explanation) => {
            for paragraph in &explanation.paragraphs {
                content += &format!("<p>{}</p>\n", prose(paragraph));
            }
            if let Some(link) = &explanation.link {
                let address = escaped(&link.address);
                let text = escaped(&link.text);
                content += &format!("<p><a class=\"button\" href=\"{address}\">{text}</a></p>\n");
            }
            &explanation.title
        }
        None => {
            let base_url = escaped(base_url);
            let slug = problem.kind.slug();
            content += &match problem.violations().len() {
                0 | 1 => format!("<p>{}</p>\n", prose(&problem.detail)),
                // The detail names only the first fault, and refers programs to the list in the Problem.
                several => format!("<p>{several} values are invalid:</p>\n<ul>\n{}</ul>\n", listed(problem)),
            };
            content += &format!(
                "<p><a href=\"{base_url}/problems/{slug}\">What this means</a> · \
                 <a href=\"{base_url}/\">API reference</a></p>\n"
            );
            problem.kind.title()
        }
    };
    content += &format!(
        "<p><small>HTTP status {}. If you contact support, include this request \
         identifier: <code>{}</code></small></p>\n",
        problem.kind.status().as_u16(),
        escaped(request_id)
    );
    page::html(title, &content)
}

fn listed(problem: &Problem) -> String {
    let items = problem.violations().into_iter().map(|violation| {
        format!("<li><code>{}</code> {}</li>\n", escaped(&violation.name()), prose(&violation.detail))
    });
    items.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::{Explanation, Link, ProblemKind, Rule, Violation};

    const REQUEST: &str = "0193f6d2-1c9e-7cc3-98c4-dc0c0c07398f";

    fn of(problem: &Problem) -> String {
        html(problem, "https://api.example.com", REQUEST)
    }

    #[test]
    fn a_page_shows_the_detail_and_links_to_the_documentation() {
        let page = of(&Problem::no_route("/<script>"));
        for part in [
            "No route has the path <code>/&lt;script&gt;</code>",
            "<h1>Address not found</h1>",
            "href=\"https://api.example.com/problems/not-found\"",
            "href=\"https://api.example.com/\"",
            "HTTP status 404.",
            REQUEST,
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn an_explanation_replaces_the_texts_for_developers_and_is_escaped() {
        let explanation = Explanation {
            title: "It <failed>".into(),
            paragraphs: vec!["For <b>hotel</b>.".into(), "Try again.".into()],
            link: Some(Link { address: "https://panel.example.com/?a&\"".into(), text: "To <the> panel".into() }),
        };
        let page = of(&Problem::internal("hunter2").explained(explanation));
        for part in [
            "<h1>It &lt;failed&gt;</h1>",
            "<p>For &lt;b&gt;hotel&lt;/b&gt;.</p>\n<p>Try again.</p>",
            "href=\"https://panel.example.com/?a&amp;&quot;\">To &lt;the&gt; panel</a>",
            "HTTP status 500.",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("hunter2") && !page.contains("unexpected") && !page.contains("/problems/"), "{page}");
    }

    #[test]
    fn a_page_lists_every_invalid_value() {
        let violation = |name: &str| Violation::query(name, Rule::Required, "is <i>missing</i> from `it`");
        let page = of(&Problem::invalid(vec![violation("code"), violation("<b>")]));
        for item in
            ["<li><code>code</code> is &lt;i&gt;missing&lt;/i&gt; from <code>it</code></li>", "<code>&lt;b&gt;</code>"]
        {
            assert!(page.contains(item), "{item}: {page}");
        }
        assert!(!page.contains("properties") && !of(&Problem::not_json()).contains("<ul>"));
    }

    #[test]
    fn every_kind_has_an_error_page_without_backticks() {
        for kind in ProblemKind::ALL {
            assert!(!of(&Problem::new(*kind, "Send `a`.")).contains('`'), "{}", kind.slug());
        }
    }
}
