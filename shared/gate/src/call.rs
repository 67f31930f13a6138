//! Admitted requests, as handlers receive them.

use std::{fmt::Display, net::IpAddr, ops::Deref, sync::Arc};

use http::{HeaderMap, HeaderName, header::COOKIE};
use lambda_http::{RequestExt, request::RequestContext};

use crate::{coding, routes};
use auth::{AuthorizedEntity, Claims};
use base::{Time, audit::Notes, trace::Trace};
use problem::{Problem, Query};

/// An admitted request.
#[derive(Debug)]
pub struct Call {
    /// The request's identifier, a UUID.
    pub request_id: String,
    /// When the gate admitted the request.
    pub now: Time,
    /// This call's span in the request's trace.
    pub trace: Trace,
    /// The claims of the request's token; `None` without a token, as on public endpoints.
    pub claims: Option<Claims>,
    /// The body, unchanged.
    pub body: Vec<u8>,
    /// The handler's notes for the audit trail.
    pub notes: Notes,
    pub(super) base_url: Arc<str>,
    pub(super) request: lambda_http::Request,
}

/// A call whose path names a managing entity.
#[derive(Debug)]
pub struct EntityCall {
    /// The managing entity, which the token covers.
    pub entity: AuthorizedEntity,
    call: Call,
}

impl Deref for EntityCall {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

impl EntityCall {
    /// The address of a resource of this managing entity, such as the webhook `whk_…`.
    pub fn address_of(&self, kind: &str, id: &impl Display) -> String {
        format!("{}/api/managing-entity/{}/{kind}/{id}", self.base_url, self.entity.id())
    }
}

/// The type in which a handler receives an admitted request.
pub trait Admitted: Sized + Send + 'static {
    /// Creates the value from a call and the managing entity in its path, if there is one.
    ///
    /// # Errors
    /// 500 if the endpoint is declared for a managing entity and its route has none.
    fn admit(call: Call, entity: Option<AuthorizedEntity>) -> Result<Self, Problem>;
}

impl Admitted for Call {
    fn admit(call: Call, _: Option<AuthorizedEntity>) -> Result<Self, Problem> {
        Ok(call)
    }
}

impl Admitted for EntityCall {
    fn admit(call: Call, entity: Option<AuthorizedEntity>) -> Result<Self, Problem> {
        let entity = entity.ok_or_else(|| Problem::internal("the endpoint's route names no managing entity"))?;
        Ok(Self { entity, call })
    }
}

impl Call {
    /// A parameter of the path, decoded; empty if the route has no such parameter.
    pub fn path(&self, name: &str) -> &str {
        self.request.path_parameters_ref().and_then(|parameters| parameters.first(name)).unwrap_or_default()
    }

    /// All values of a query parameter, decoded, in their order.
    pub fn query(&self, name: &str) -> Vec<&str> {
        self.request.query_string_parameters_ref().and_then(|parameters| parameters.all(name)).unwrap_or_default()
    }

    /// All query parameters, decoded, including repeated ones.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.request.query_string_parameters_ref().into_iter().flat_map(|parameters| parameters.iter())
    }

    /// A reader of the query.
    pub fn read_query(&self) -> Query<'_> {
        Query::new(self.parameters())
    }

    /// The whole path, not decoded.
    pub fn whole_path(&self) -> &str {
        self.request.raw_http_path()
    }

    /// The route that matched, as template.yaml declares it. A function with several routes distinguishes them by this
    /// value.
    pub fn route(&self) -> &'static str {
        routes::route_of(self.whole_path()).unwrap_or_default()
    }

    /// The verb.
    pub fn method(&self) -> &http::Method {
        self.request.method()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// A header's first value, if it is text in UTF-8.
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers().get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
    }

    /// Whether the body has a content coding. The gate refuses encoded JSON bodies itself.
    pub fn has_encoded_body(&self) -> bool {
        !self.body.is_empty() && coding::is_encoded(self.headers())
    }

    /// The values of all cookies with this name.
    pub fn cookies(&self, name: &str) -> Vec<&str> {
        cookies(self.headers(), name)
    }

    /// The source address that the gateway saw. A header could be forged.
    pub fn source_address(&self) -> Option<IpAddr> {
        source_address(&self.request)
    }
}

/// The values of all cookies with this name. The cookies of other programs for the same site may contain any bytes, so
/// each pair is decoded separately.
fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    let pairs = headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    let pairs = pairs.filter_map(|pair| std::str::from_utf8(pair).ok()?.trim().split_once('='));
    pairs.filter(|(found, _)| *found == name).map(|(_, value)| value).collect()
}

pub(super) fn source_address(request: &lambda_http::Request) -> Option<IpAddr> {
    match request.request_context_ref()? {
        RequestContext::ApiGatewayV2(context) => context.http.source_ip.as_deref()?.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_cookie_is_found_beside_cookies_of_any_bytes() {
        let with = |lines: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(COOKIE, HeaderValue::from_bytes(line).expect("a value"));
            }
            cookies(&headers, "ours").into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let found: [&[&[u8]]; 5] = [
            &[b"ours=1"],
            &["name=José; ours=1".as_bytes()],
            &[b"ours=1; name=Jos\xe9"],
            &[b"name=Jos\xe9;ours=1;\xff\xfe;=;a"],
            &[b"name=Jos\xe9", b"ours=1"],
        ];
        for lines in found {
            assert_eq!(with(lines), ["1"], "{lines:?}");
        }
        assert_eq!(with(&[b"ours=1; name=\xe9; ours=2", b"ours=a=b"]), ["1", "2", "a=b"]);
        assert!(with(&[b"theirs=1; ours; OURS=1", b"ours=\xe9"]).is_empty());
    }
}
