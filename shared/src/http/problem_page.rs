//! The page that a Problem's `type` resolves to: plain, complete without a style sheet or a script.

use super::ProblemKind;

/// The page of a kind. Everything in it is ours, and escaped all the same.
pub fn html(kind: ProblemKind) -> String {
    let (title, explanation) = (escaped(kind.title()), escaped(kind.explanation()));
    let (slug, status) = (kind.slug(), kind.status());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }}</style>\n\
         </head>\n<body>\n<main>\n<h1>{title}</h1>\n<p>Problem <code>{slug}</code>, answered with HTTP status {status}.</p>\n\
         <p>{explanation}</p>\n</main>\n</body>\n</html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
