//! A simulated provider's pages.

use super::{
    authorize::{Question, fates},
    request::Parameters,
    setup::Setup,
};

const STYLE: &str = "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem;\
    color:#1a1a1a;background:#fff}\
    dt{font-weight:600;margin-top:.75rem}dd{margin:0;overflow-wrap:anywhere}\
    button{font:inherit;padding:.6rem 1.6rem;margin:1.5rem .75rem 0 0;border:2px solid #1a4fa3;border-radius:.4rem;\
    background:#fff;color:#1a4fa3;cursor:pointer}\
    button[value=allow]{background:#1a4fa3;color:#fff}\
    button:focus-visible,select:focus-visible,summary:focus-visible{outline:3px solid #c05600;outline-offset:2px}\
    select{font:inherit;max-width:100%}details{margin-top:1.5rem}.note{border-left:4px solid #c05600;padding-left:1rem}";

/// The page that asks whether a client may have access to an account.
pub(crate) fn consent_page(
    setup: &Setup,
    question: &Question,
    parameters: &Parameters,
    account: &str,
    note: Option<&str>,
) -> String {
    let carried: String = parameters.iter().map(|(name, value)| hidden(name, value)).collect();
    let scopes: String = question
        .scope
        .split([' ', ',', '+'])
        .map(|scope| format!("<dd><code>{}</code></dd>\n", escaped(scope)))
        .collect();
    let fates: String = fates()
        .iter()
        .map(|(name, words)| format!("<option value=\"{}\">{}</option>\n", escaped(name), escaped(words)))
        .collect();
    let note = note.map(|note| format!("<p class=\"note\">{note}</p>\n")).unwrap_or_default();
    document(
        "Allow access?",
        &format!(
            "<h1>Allow access?</h1>\n{note}\
             <p>The client <strong>{client}</strong> asks the payment provider <strong>{provider}</strong> for access \
             to your account.</p>\n\
             <dl>\n<dt>Account</dt>\n<dd><code>{account}</code></dd>\n<dt>What it may do</dt>\n{scopes}\
             <dt>You go back to</dt>\n<dd>{back}</dd>\n</dl>\n\
             <form method=\"post\" action=\"/{path}/authorize\">\n{carried}{account_field}\
             <details>\n<summary>What happens afterwards</summary>\n\
             <p><label for=\"fate\">This provider can fail on request:</label></p>\n\
             <select id=\"fate\" name=\"fate\">\n{fates}</select>\n</details>\n\
             <button type=\"submit\" name=\"decision\" value=\"allow\">Allow</button>\n\
             <button type=\"submit\" name=\"decision\" value=\"deny\">Deny</button>\n</form>",
            client = escaped(&setup.client_id),
            provider = escaped(&setup.name),
            account = escaped(account),
            back = escaped(&question.redirect_uri),
            path = setup.name,
            account_field = hidden("account", account),
        ),
    )
}

/// The page that is shown if a request cannot be granted.
pub(crate) fn fault_page(fault: &str) -> String {
    document(
        "This request cannot be granted",
        &format!("<h1>This request cannot be granted</h1>\n<p>{}</p>", escaped(fault)),
    )
}

fn document(title: &str, main: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n{main}\n</main>\n</body>\n</html>\n"
    )
}

fn hidden(name: &str, value: &str) -> String {
    format!("<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", escaped(name), escaped(value))
}

/// Text that is escaped for HTML, both between tags and in quoted values.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
