//! Markdown files of `docs` as a page.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use crate::markdown::is_permitted;

/// The files of `docs` that a deployment serves together as one page, the guide for receivers, each with its address.
pub const GUIDE_FILES: [(&str, &str); 4] = [
    ("receiving-webhooks.md", "/receiving"),
    ("receivers.md", "#sample-receivers"),
    ("managing-webhooks.md", "#managing-webhooks"),
    ("clients.md", "#generated-clients"),
];

/// The other files that guides may link to, and their addresses in a deployment. Links to further files become plain
/// text.
const SERVED: [(&str, &str); 3] =
    [("../openapi.yaml", "/"), ("../README.md", "/#start"), ("events.md", "/#listEventTypes")];

/// A guide for the page: the title from its first heading, and the rest as HTML.
pub struct Guide {
    /// Plain text.
    pub title: String,
    /// HTML.
    pub content: String,
}

/// Converts Markdown to a page. Headings get GitHub's anchors, since the text links to them.
pub fn guide(text: &str) -> Guide {
    let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut events = Vec::new();
    // Whether each open link is kept.
    let mut links = Vec::new();
    for event in Parser::new_ext(rest, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let address = address(&dest_url);
                links.push(address.is_some());
                if let Some(address) = address {
                    let dest_url = CowStr::from(address.to_owned());
                    events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
            }
            Event::End(TagEnd::Link) => {
                if links.pop().unwrap_or_default() {
                    events.push(event);
                }
            }
            // HTML becomes text, and an image becomes its alternative text.
            Event::Html(html) | Event::InlineHtml(html) => events.push(Event::Text(html)),
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => {}
            other => events.push(other),
        }
    }
    name_headings(&mut events);
    let mut content = String::new();
    html::push_html(&mut content, events.into_iter());
    Guide { title: title.trim_start_matches('#').trim().to_owned(), content }
}

/// The address of a link on the page; `None` if the page does not link there.
fn address(written: &str) -> Option<&str> {
    let file = written.split('#').next().unwrap_or_default();
    let anchor = written.strip_prefix(file).unwrap_or_default();
    let part = GUIDE_FILES.iter().find(|(name, _)| *name == file).map(|(_, address)| *address);
    let part = part.map(|address| if anchor.is_empty() { address } else { anchor });
    let served = SERVED.iter().find(|(name, _)| *name == file).map(|(_, address)| *address);
    part.or(served).or_else(|| is_permitted(written).then_some(written))
}

/// Gives each heading its anchor.
fn name_headings(events: &mut [Event<'_>]) {
    for start in 0..events.len() {
        let words: String = events[start + 1..]
            .iter()
            .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))))
            .filter_map(|event| match event {
                Event::Text(text) | Event::Code(text) => Some(&**text),
                _ => None,
            })
            .collect();
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[start] {
            *id = Some(CowStr::from(anchor(&words)));
        }
    }
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, fs};

    #[test]
    fn the_guide_for_receivers_has_its_samples_and_no_dead_link() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let texts = GUIDE_FILES.map(|(name, _)| fs::read_to_string(format!("{docs}/{name}")).expect("a part of it"));
        let Guide { title, content } = guide(&texts.join("\n"));
        assert_eq!(title, "Receiving webhooks");
        for part in ["<h2 id=\"verifying-the-signature\">", "<h2 id=\"nodejs\">", "hmac", "<table>"] {
            assert!(content.contains(part), "{part}");
        }
        let targets: BTreeSet<&str> =
            content.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let links: Vec<&str> = content.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(links.len() > 20, "{links:?}");
        assert_eq!(content.matches(" id=\"").count(), targets.len(), "two headings have the same anchor");
        for link in links {
            let leads = match link.strip_prefix('#') {
                Some(anchor) => targets.contains(anchor),
                None => link.starts_with("https://") || link.starts_with('/'),
            };
            assert!(leads, "{link}");
        }
        assert_eq!(content.matches("<a ").count(), content.matches("</a>").count());
    }

    #[test]
    fn links_between_the_parts_of_the_guide_stay_on_the_page() {
        let Guide { content, .. } = guide("# G\n[a](receivers.md#go) [b](receivers.md) [c](receiving-webhooks.md)\n");
        let expected = "<p><a href=\"#go\">a</a> <a href=\"#sample-receivers\">b</a> <a href=\"/receiving\">c</a></p>";
        assert_eq!(content.trim(), expected);
    }

    #[test]
    fn links_to_files_that_are_not_served_become_text_and_html_stays_text() {
        let Guide { content, .. } =
            guide("# G\n[a](scaling.md#x) [b](../README.md#y) [c](#z) <b>d</b> [e](javascript:f)\n");
        assert_eq!(content.trim(), "<p>a <a href=\"/#start\">b</a> <a href=\"#z\">c</a> &lt;b&gt;d&lt;/b&gt; e</p>");
    }
}
