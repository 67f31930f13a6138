//! A request, converted to the event that API Gateway's HTTP API sends to a function (payload format 2.0).

use std::{borrow::Cow, collections::BTreeMap, net::SocketAddr};

use base::{Random, Time, random};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderValue, Version,
    header::{CONTENT_TYPE, COOKIE, HOST, USER_AGENT},
    request::Parts,
};
use jiff::Timestamp;
use serde_json::json;
use url::Url;

use super::{refusal::Refusal, routes::raw_path};
use crate::aws;

/// A request, with the facts that the gateway knows about it.
pub struct Received<'a> {
    pub parts: &'a Parts,
    pub body: &'a [u8],
    /// The sender's address: the other end of the connection, regardless of headers.
    pub peer: SocketAddr,
    pub route: &'a str,
    pub parameters: BTreeMap<String, String>,
    pub now: Time,
    pub random: &'a dyn Random,
}

/// The event as JSON.
pub fn of_request(received: &Received<'_>) -> Result<Vec<u8>, Refusal> {
    let Received { parts, body, peer, route, .. } = received;
    let source = peer.ip().to_string();
    let path = raw_path(parts.uri.path()); // the query stays as the client sent it
    let query = parts.uri.query().unwrap_or_default();
    let mut headers = headers_of(parts);
    headers.insert("host".to_owned(), host(parts)?);
    forwarded(&mut headers, &source);

    let now = Timestamp::from_millisecond(received.now.as_millis()).unwrap_or_default();
    let mut event = json!({
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {
            "accountId": aws::ACCOUNT,
            "apiId": "local",
            "domainName": headers["host"],
            "domainPrefix": "local",
            "http": {
                "method": parts.method.as_str(),
                "path": path,
                "protocol": protocol(parts.version),
                "sourceIp": source,
                "userAgent": headers.get(USER_AGENT.as_str()).map_or("", String::as_str),
            },
            "requestId": request_id(received.random),
            "routeKey": route,
            "stage": "$default",
            "time": now.strftime("%d/%b/%Y:%H:%M:%S +0000").to_string(),
            "timeEpoch": now.as_millisecond(),
        },
        "isBase64Encoded": false,
    });
    // Members without content are omitted, not empty.
    let cookies = cookies(&parts.headers);
    if !cookies.is_empty() {
        event["cookies"] = cookies.into();
    }
    if !query.is_empty() {
        let pairs = form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name.into_owned(), value));
        event["queryStringParameters"] = json!(joined(pairs));
    }
    if !received.parameters.is_empty() {
        event["pathParameters"] = json!(received.parameters);
    }
    match (body.is_empty(), text(&parts.headers, body)) {
        (true, _) => {}
        (false, Some(text)) => event["body"] = text.into(),
        (false, None) => {
            event["body"] = BASE64_STANDARD.encode(body).into();
            event["isBase64Encoded"] = true.into();
        }
    }
    serde_json::to_vec(&event).map_err(Refusal::of_answer)
}

/// The headers, with lower-case names. Cookies have a separate member.
fn headers_of(parts: &Parts) -> BTreeMap<String, String> {
    let headers = parts.headers.iter().filter(|(name, _)| *name != COOKIE);
    joined(headers.map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()))))
}

/// One value per name; several values are joined with commas.
fn joined<'a>(pairs: impl Iterator<Item = (String, Cow<'a, str>)>) -> BTreeMap<String, String> {
    let mut joined = BTreeMap::<String, String>::new();
    for (name, value) in pairs {
        joined
            .entry(name)
            .and_modify(|known| *known = format!("{known},{value}"))
            .or_insert_with(|| value.into_owned());
    }
    joined
}

/// The host name that the client sent. AWS accepts only the API's host names; here, any well-formed name is accepted.
fn host(parts: &Parts) -> Result<String, Refusal> {
    let named = parts.headers.get(HOST).map(HeaderValue::to_str);
    let host = match (named, parts.uri.authority()) {
        (Some(Ok(host)), _) => host,
        (Some(Err(_)), _) => "",
        (None, Some(authority)) => authority.as_str(),
        (None, None) => "localhost",
    };
    let fits = Url::parse(&format!("http://{host}/")).is_ok_and(|url| url.path() == "/" && url.username().is_empty());
    if fits { Ok(host.to_owned()) } else { Err(Refusal::bad_host()) }
}

/// Sets the `X-Forwarded-*` headers. In `X-Forwarded-For`, the gateway's entry follows the client's.
fn forwarded(headers: &mut BTreeMap<String, String>, source: &str) {
    headers
        .entry("x-forwarded-for".to_owned())
        .and_modify(|claimed| {
            claimed.push_str(", ");
            claimed.push_str(source);
        })
        .or_insert_with(|| source.to_owned());
    let port = headers["host"].rsplit_once(':').map_or("80", |(_, port)| port).to_owned();
    headers.insert("x-forwarded-port".to_owned(), port);
    headers.insert("x-forwarded-proto".to_owned(), "http".to_owned());
}

fn cookies(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(COOKIE)
        .iter()
        .flat_map(|value| String::from_utf8_lossy(value.as_bytes()).split("; ").map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// The body as text, if API Gateway would pass it as text. Forms are passed in Base64.
fn text<'a>(headers: &HeaderMap, body: &'a [u8]) -> Option<&'a str> {
    let content_type = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    let media_type = content_type.map(|value| value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    let is_text = media_type.is_none_or(|media_type| {
        media_type.starts_with("text/")
            || matches!(media_type.as_str(), "application/json" | "application/xml" | "application/javascript")
            || media_type.ends_with("+json")
            || media_type.ends_with("+xml")
    });
    is_text.then(|| std::str::from_utf8(body).ok()).flatten()
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        _ => "HTTP/1.1",
    }
}

/// A request's id in API Gateway's format, which is not a UUID.
fn request_id(random: &dyn Random) -> String {
    BASE64_STANDARD.encode(random::bytes::<11>(random))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use serde_json::Value;

    use super::*;
    use base::SystemRandom;

    fn event(request: Request<&[u8]>) -> Value {
        let (parts, body) = request.into_parts();
        let received = Received {
            parts: &parts,
            body,
            peer: ([192, 0, 2, 7], 4711).into(),
            route: "POST /hook/{id}",
            parameters: BTreeMap::from([("id".to_owned(), "a b".to_owned())]),
            now: "2026-11-20T09:45:00.123Z".parse().expect("a time"),
            random: &SystemRandom,
        };
        serde_json::from_slice(&of_request(&received).unwrap_or_default()).expect("the event is JSON")
    }

    #[test]
    fn an_event_has_everything_of_the_request() {
        let request = Request::post("http://127.0.0.1:9000/hook/a%20b?x=1&y=%2B&x=2")
            .header("host", "127.0.0.1:9000")
            .header("Content-Type", "application/json; charset=utf-8")
            .header("X-Several", "1")
            .header("X-Several", "2")
            .header("Cookie", "a=1; b=2")
            .header("X-Forwarded-For", "203.0.113.9")
            .header("X-Forwarded-Proto", "gopher")
            .body("{\"ü\":1}".as_bytes())
            .expect("a request");
        let event = event(request);
        assert_eq!(event["rawPath"], "/hook/a b");
        assert_eq!(event["rawQueryString"], "x=1&y=%2B&x=2");
        assert_eq!(event["queryStringParameters"], json!({"x": "1,2", "y": "+"}));
        assert_eq!(event["pathParameters"], json!({"id": "a b"}));
        assert_eq!(event["headers"]["x-several"], "1,2");
        assert_eq!(event["headers"].get("cookie"), None);
        assert_eq!(event["cookies"], json!(["a=1", "b=2"]));
        assert_eq!(event["body"], "{\"ü\":1}");
        assert_eq!(event["isBase64Encoded"], false);
        let context = &event["requestContext"];
        assert_eq!(context["http"]["sourceIp"], "192.0.2.7");
        assert_eq!(context["time"], "20/Nov/2026:09:45:00 +0000");
        assert_eq!(context["timeEpoch"], 1_795_167_900_123_i64);
        // The client's entry is kept, but never comes last.
        assert_eq!(event["headers"]["x-forwarded-for"], "203.0.113.9, 192.0.2.7");
        assert_eq!(event["headers"]["x-forwarded-proto"], "http");
    }

    #[test]
    fn bytes_and_forms_are_encoded() {
        for (content_type, body) in [
            ("application/json", &[0xff, 0xfe][..]),
            ("application/octet-stream", b"x"),
            ("application/x-www-form-urlencoded", b"grant_type=client_credentials"),
        ] {
            let request = Request::post("http://h/hook/a").header("content-type", content_type).body(body);
            let event = event(request.expect("a request"));
            assert_eq!(event["isBase64Encoded"], true, "{content_type}");
            assert_eq!(event["body"], BASE64_STANDARD.encode(body));
        }
    }

    #[test]
    fn a_malformed_host_is_refused() {
        for host in ["", "a b", "h:99999", "user@h", "h/path"] {
            let (parts, ()) = Request::get("/x").header("host", host).body(()).expect("a request").into_parts();
            assert!(self::host(&parts).is_err(), "{host}");
        }
    }
}
