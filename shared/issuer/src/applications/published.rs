//! What clients send with an application that were published for another platform of this kind: its owner once more, as an
//! identifier, a name and a type, and addresses for redirects, which no grant of this service makes. Their word for an
//! application has no scopes.

use auth::EntityId;
use problem::JsonBody;

/// Takes these members from a body, of an application that this entity owns. Tells whether a published client sent it.
pub(super) fn take(body: &mut JsonBody<'_>, owner: &EntityId) -> bool {
    let identifier: Option<String> = body.optional("ownerIdentifier", "the managing entity of the path");
    for name in ["ownerName", "ownerType"] {
        body.optional::<String>(name, "a text");
    }
    let redirects: Option<Vec<String>> = body.optional("redirectUris", "a list of addresses");
    if identifier.is_some_and(|identifier| identifier != owner.as_str()) {
        body.violations.add("ownerIdentifier", "must be the managing entity of the path, or be left out");
    }
    redirects.is_some()
}
