//! The operations under `/api/managing-entity` that take a query. The gate refuses every parameter of the others, since
//! an ignored filter would look like one that matches everything.

/// Verb and route of each operation whose handler reads the query. Its reader (`Call::read_query`) refuses unknown
/// parameters together with invalid values, so that one response lists all violations. Tests compare this table and the
/// readers with openapi.yaml.
pub const WITH_QUERY: &[(&str, &str)] = &[
    ("DELETE", "/api/managing-entity/{managingEntityIdentifier}/application/{clientId}"),
    ("DELETE", "/api/managing-entity/{managingEntityIdentifier}/application/{clientId}/key/{kid}"),
    ("DELETE", "/api/managing-entity/{managingEntityIdentifier}/application/{clientId}/secret/{secretId}"),
    ("GET", "/api/managing-entity/{managingEntityIdentifier}/panel/link/list"),
    ("GET", "/api/managing-entity/{managingEntityIdentifier}/payment/connection/list"),
    ("GET", "/api/managing-entity/{managingEntityIdentifier}/payment/provider/list"),
    ("GET", "/api/managing-entity/{managingEntityIdentifier}/webhook/delivery/list"),
    ("GET", "/api/managing-entity/{managingEntityIdentifier}/webhook/event"),
    ("PATCH", "/api/managing-entity/{managingEntityIdentifier}/application/{clientId}"),
];

/// Whether the operation with this verb and route takes a query. HEAD works like GET.
pub(crate) fn takes_query(verb: &str, route: &str) -> bool {
    let verb = if verb == "HEAD" { "GET" } else { verb };
    WITH_QUERY.contains(&(verb, route))
}
