//! The request in an event of API Gateway's HTTP API (payload format 2.0), and the response for it.
//!
//! `lambda_http` can convert both, but it panics on a query with a character that an address must not contain, and on a
//! body that is not valid Base64. Clients choose both, so this module reads events itself.

use std::collections::HashMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderName, HeaderValue, Response,
    header::{COOKIE, SET_COOKIE},
};
use lambda_http::{
    Body, Request, RequestExt,
    aws_lambda_events::{
        apigw::{ApiGatewayV2httpRequestContext, ApiGatewayV2httpResponse},
        query_map::QueryMap,
    },
    request::RequestContext,
};
use serde::Deserialize;

/// Marks a request whose body is not in the encoding that its event declares. The gate refuses it.
#[derive(Debug, Clone, Copy)]
pub struct UnreadableBody;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(default)]
    raw_path: String,
    raw_query_string: Option<String>,
    cookies: Option<Vec<String>>,
    headers: Option<HashMap<String, String>>,
    path_parameters: Option<HashMap<String, String>>,
    request_context: ApiGatewayV2httpRequestContext,
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

/// The request in an event. Its address is empty, since the gate uses the path and the query as they appear in the
/// event. Headers and cookies that HTTP does not allow are left out.
///
/// # Errors
/// The event is not from API Gateway.
pub fn request(event: &str) -> serde_json::Result<Request> {
    let event: Event = serde_json::from_str(event)?;
    let Ok(query) = event.raw_query_string.unwrap_or_default().parse::<QueryMap>();
    let mut request = Request::new(Body::Empty)
        .with_raw_http_path(event.raw_path)
        .with_query_string_parameters(query)
        .with_path_parameters(event.path_parameters.unwrap_or_default());
    *request.method_mut() = event.request_context.http.method.clone();
    *request.headers_mut() = headers(event.headers.unwrap_or_default(), event.cookies.unwrap_or_default());
    match (event.body, event.is_base64_encoded) {
        (None, _) => {}
        (Some(text), false) => *request.body_mut() = text.into(),
        (Some(text), true) => match BASE64_STANDARD.decode(text) {
            Ok(bytes) => *request.body_mut() = bytes.into(),
            Err(_) => {
                request.extensions_mut().insert(UnreadableBody);
            }
        },
    }
    Ok(request.with_request_context(RequestContext::ApiGatewayV2(event.request_context)))
}

/// The headers, with each cookie as a separate header, so that an invalid cookie does not hide another.
fn headers(all: HashMap<String, String>, cookies: Vec<String>) -> HeaderMap {
    let pairs = all.iter().filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_bytes(value.as_bytes()).ok()?))
    });
    let mut headers: HeaderMap = pairs.collect();
    if !cookies.is_empty() {
        headers.remove(COOKIE); // some gateways repeat the cookies here
    }
    for cookie in cookies.iter().filter_map(|cookie| HeaderValue::from_bytes(cookie.as_bytes()).ok()) {
        headers.append(COOKIE, cookie);
    }
    headers
}

/// The response in API Gateway's format, which has cookies in a separate member.
pub fn response(response: Response<Body>) -> ApiGatewayV2httpResponse {
    let (mut parts, body) = response.into_parts();
    let mut answer = ApiGatewayV2httpResponse::default();
    answer.status_code = parts.status.as_u16().into();
    let cookies = parts.headers.get_all(SET_COOKIE).iter();
    answer.cookies = cookies.filter_map(|cookie| cookie.to_str().ok().map(str::to_owned)).collect();
    parts.headers.remove(SET_COOKIE);
    answer.headers = parts.headers;
    answer.is_base64_encoded = matches!(body, Body::Binary(_));
    answer.body = (!matches!(body, Body::Empty)).then_some(body);
    answer
}

#[cfg(test)]
mod tests {
    use http::{Method, header::LOCATION};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// An event of `POST /a` with these members.
    fn event(members: Value) -> Request {
        let mut event = json!({
            "version": "2.0",
            "rawPath": "/a",
            "requestContext": { "http": { "method": "POST", "path": "/a", "sourceIp": "192.0.2.7" } },
        });
        event.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
        request(&event.to_string()).expect("an event")
    }

    #[test]
    fn a_request_has_everything_of_its_event() {
        let read = event(json!({
            "rawPath": "/hook/a b",
            "rawQueryString": "x=1&y=%2B&x=2",
            "headers": { "x-several": "1,2", "host": "api.example.com" },
            "cookies": ["a=1", "b=2"],
            "pathParameters": { "id": "a b" },
            "body": "{\"ü\":1}",
        }));
        assert_eq!((read.method(), read.raw_http_path()), (&Method::POST, "/hook/a b"));
        let query = read.query_string_parameters();
        assert_eq!((query.all("x"), query.first("y")), (Some(vec!["1", "2"]), Some("+")));
        assert_eq!(read.path_parameters().first("id"), Some("a b"));
        assert_eq!(read.headers()["x-several"], "1,2");
        assert_eq!(read.headers().get_all(COOKIE).iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
        assert_eq!(read.body(), &Body::Text("{\"ü\":1}".to_owned()));
        let Some(RequestContext::ApiGatewayV2(context)) = read.request_context_ref() else { panic!("no context") };
        assert_eq!(context.http.source_ip.as_deref(), Some("192.0.2.7"));
    }

    #[test]
    fn a_character_that_an_address_must_not_have_is_a_part_of_the_query() {
        for raw in ["\"", "<", ">", " ", "é", "\u{a0}", "|", "\\", "^", "`", "{}", "\u{0}", "#", "%", "%ff", "%zz"] {
            let read = event(json!({ "rawPath": format!("/a{raw}/b"), "rawQueryString": format!("x={raw}&y=1") }));
            assert_eq!(read.raw_http_path(), format!("/a{raw}/b"));
            assert_eq!(read.query_string_parameters().first("y"), Some("1"), "{raw}");
        }
    }

    #[test]
    fn a_body_is_decoded_and_one_that_cannot_be_is_marked() {
        let read = event(json!({ "body": "/w==", "isBase64Encoded": true }));
        assert_eq!(read.body(), &Body::Binary(vec![0xff]));
        assert!(read.extensions().get::<UnreadableBody>().is_none());
        for bad in ["/w", "é", "-_==", "{\"a\":1}", " "] {
            let read = event(json!({ "body": bad, "isBase64Encoded": true }));
            assert!(read.extensions().get::<UnreadableBody>().is_some() && read.body().is_empty(), "{bad}");
        }
        for none in [json!({}), json!({ "body": null, "isBase64Encoded": true })] {
            assert_eq!(event(none).body(), &Body::Empty);
        }
    }

    #[test]
    fn a_header_beyond_ascii_is_kept_and_an_invalid_one_hides_no_other() {
        let read = event(json!({
            "headers": { "x-name": "José", "x-bad": "a\nb", "x bad": "1", "x-good": "1", "cookie": "c=3" },
            "cookies": ["name=José", "bad=\u{1}", "a=1"],
        }));
        assert_eq!(read.headers()["x-name"].as_bytes(), "José".as_bytes());
        assert_eq!((read.headers().get("x-bad"), read.headers().len()), (None, 4));
        let cookies: Vec<_> = read.headers().get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(cookies, ["name=José".as_bytes(), b"a=1"]);
    }

    #[test]
    fn an_event_of_another_source_is_an_error() {
        for other in ["", "null", "{}", "[]", r#"{"requestContext": null}"#, r#"{"Records": []}"#] {
            assert!(request(other).is_err(), "{other}");
        }
    }

    #[test]
    fn a_response_has_its_cookies_in_a_separate_member() {
        let mut answer = Response::new(Body::Text("{}".to_owned()));
        answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/a"));
        for cookie in ["a=1", "b=2"] {
            answer.headers_mut().append(SET_COOKIE, HeaderValue::from_static(cookie));
        }
        let answer = serde_json::to_value(response(answer)).expect("JSON");
        assert_eq!(answer["cookies"], json!(["a=1", "b=2"]));
        assert_eq!(answer["headers"], json!({ "location": "/a" }));
        assert_eq!((&answer["statusCode"], &answer["body"]), (&json!(200), &json!("{}")));
        assert_eq!(answer["isBase64Encoded"], false);
        let bytes = serde_json::to_value(response(Response::new(Body::Binary(vec![0xff])))).expect("JSON");
        assert_eq!((&bytes["body"], &bytes["isBase64Encoded"]), (&json!("/w=="), &json!(true)));
        let none = serde_json::to_value(response(Response::new(Body::Empty))).expect("JSON");
        assert!(none["body"].is_null() && none["isBase64Encoded"] == false);
    }

    proptest! {
        #[test]
        fn no_text_in_an_event_makes_the_reader_panic(
            path in any::<String>(),
            query in any::<String>(),
            name in any::<String>(),
            value in any::<String>(),
            is_base64_encoded in any::<bool>(),
        ) {
            let read = event(json!({
                "rawPath": &path,
                "rawQueryString": &query,
                "headers": { name: &value },
                "cookies": [&value, "a=1"],
                "body": &value,
                "isBase64Encoded": is_base64_encoded,
            }));
            prop_assert_eq!(read.raw_http_path(), path);
            prop_assert!(read.headers().get_all(COOKIE).iter().any(|cookie| cookie == "a=1"));
        }
    }
}
