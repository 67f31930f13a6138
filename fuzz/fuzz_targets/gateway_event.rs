//! Events of API Gateway before they are parsed: no input makes the reader panic. A request has its event's path, verb,
//! body and valid cookies, and a response can be written.
#![no_main]

use base64::{Engine, prelude::BASE64_STANDARD};
use gate::event::{self, UnreadableBody};
use http::{HeaderValue, Response, header::COOKIE};
use lambda_http::RequestExt;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(request) = event::request(text) else { return };
    // A number that this parser refuses may be in a member that the reader ignores.
    let Ok(event) = serde_json::from_str::<Value>(text) else { return };
    assert_eq!(request.raw_http_path(), event["rawPath"].as_str().unwrap_or_default());
    assert_eq!(request.method().as_str(), event["requestContext"]["http"]["method"]);

    let encoded = event["isBase64Encoded"] == true;
    let expected = match event["body"].as_str() {
        None => Some(Vec::new()),
        Some(body) if encoded => BASE64_STANDARD.decode(body).ok(),
        Some(body) => Some(body.as_bytes().to_vec()),
    };
    assert_eq!(request.extensions().get::<UnreadableBody>().is_some(), expected.is_none());
    assert_eq!(request.body().to_vec(), expected.unwrap_or_default());

    let cookies = event["cookies"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let cookies: Vec<_> = cookies.filter(|cookie| HeaderValue::from_bytes(cookie.as_bytes()).is_ok()).collect();
    if event["cookies"].as_array().is_some_and(|all| !all.is_empty()) {
        assert!(request.headers().get_all(COOKIE).iter().eq(cookies));
    }

    let (_, body) = request.into_parts();
    let answer = serde_json::to_value(event::response(Response::new(body))).expect("a response is JSON");
    assert_eq!(answer["statusCode"], 200);
});
