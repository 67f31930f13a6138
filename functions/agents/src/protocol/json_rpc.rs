//! JSON-RPC 2.0 messages as MCP uses them: one in an HTTP request, and its response in the HTTP response.

use gate::Reply;
use http::StatusCode;
use problem::Problem;
use serde_json::{Map, Value, json};

use super::json::{self, Json, MAX_DEPTH};

/// A client's message.
#[derive(Debug, PartialEq)]
pub enum Message {
    /// A message that expects a response.
    Request(Request),
    /// A message that expects no response.
    Notification,
    /// A response, although this server never sends a request.
    Response,
}

/// A request.
#[derive(Debug, PartialEq)]
pub struct Request {
    /// The identifier that the response repeats: a string or an integer.
    pub id: Value,
    /// The method.
    pub method: String,
    /// The parameters; empty if absent or null.
    pub params: Map<String, Value>,
}

/// An error with a JSON-RPC code.
#[derive(Debug)]
pub struct RpcError {
    code: i32,
    message: String,
    data: Option<Value>,
    status: StatusCode,
    problem: Option<Box<Problem>>,
}

impl Message {
    /// Reads the body of an HTTP request. The error contains the request's identifier, if there is one.
    pub fn read(body: &[u8]) -> Result<Self, (Option<Value>, RpcError)> {
        let Json { value, doubled } = json::read(body).map_err(|_| (None, RpcError::not_json()))?;
        let Value::Object(mut message) = value else {
            return Err((
                None,
                RpcError::invalid_request("the body must be one message, an object; batches are not supported"),
            ));
        };
        let id = message.remove("id");
        let known_id = id.clone().filter(is_id);
        let invalid = |what: &str| (known_id.clone(), RpcError::invalid_request(what));
        if let Some(name) = doubled {
            return Err(invalid(&format!("`{}` must be given only once", shortened(&name))));
        }
        if message.get("jsonrpc").is_none_or(|version| version != "2.0") {
            return Err(invalid("`jsonrpc` must be \"2.0\""));
        }
        let method = match message.remove("method") {
            Some(Value::String(method)) => method,
            None if message.contains_key("result") || message.contains_key("error") => return Ok(Self::Response),
            _ => return Err(invalid("`method` must be a string")),
        };
        let params = match message.remove("params") {
            Some(Value::Object(params)) => params,
            None | Some(Value::Null) => Map::new(), // some libraries write null for an absent member
            Some(_) => return Err(invalid("`params` must be an object")),
        };
        match (id, known_id.clone()) {
            (_, Some(id)) => Ok(Self::Request(Request { id, method, params })),
            (None, None) => Ok(Self::Notification),
            (Some(_), None) => Err(invalid("`id` must be a string or an integer")),
        }
    }
}

/// Some languages write every number with a fraction: `1.0` is an integer, as in JSON Schema.
fn is_id(value: &Value) -> bool {
    value.is_string() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

impl Request {
    /// A member of the request's `_meta`.
    pub fn meta(&self, name: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(name)
    }

    /// A parameter that must be a string.
    pub fn text(&self, name: &str) -> Result<&str, RpcError> {
        let text = self.params.get(name).and_then(Value::as_str);
        text.ok_or_else(|| RpcError::invalid_params(format!("`{name}` is missing; it must be a string")))
    }

    /// The `arguments` parameter: an object, which may be absent. Some clients send null instead.
    pub fn arguments(&self) -> Result<Map<String, Value>, RpcError> {
        match self.params.get("arguments") {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(arguments)) => Ok(arguments.clone()),
            Some(_) => Err(RpcError::invalid_params("`arguments` must be an object")),
        }
    }
}

/// The reply to a request with this result.
pub fn result(id: &Value, result: Value) -> Result<Reply, Problem> {
    Ok(Reply::ok(&json!({"jsonrpc": "2.0", "id": id, "result": result}))?.uncached())
}

impl RpcError {
    /// The code for a missing resource in revisions with a handshake.
    pub const NO_RESOURCE: i32 = -32002;

    /// The code for a Problem: the service's fault, or the client's.
    pub fn code_of(problem: &Problem) -> i32 {
        if problem.kind.status().is_server_error() { -32603 } else { -32602 }
    }

    /// The body is not JSON, or exceeds the parser's limits.
    pub fn not_json() -> Self {
        let limits = format!(
            "numbers in the range of a double, no unpaired surrogates, and at most {MAX_DEPTH} levels of nesting"
        );
        let message = format!("Parse error: the body must be JSON in UTF-8, with {limits}");
        Self::new(-32700, message).with_status(StatusCode::BAD_REQUEST)
    }

    /// The message is invalid.
    pub fn invalid_request(what: &str) -> Self {
        Self::new(-32600, format!("Invalid request: {what}")).with_status(StatusCode::BAD_REQUEST)
    }

    /// The method does not exist.
    pub fn no_method(method: &str) -> Self {
        Self::new(-32601, format!("Method not found: {}", shortened(method)))
    }

    /// The parameters are invalid for the method.
    pub fn invalid_params(what: impl AsRef<str>) -> Self {
        Self::new(-32602, format!("Invalid params: {}", what.as_ref()))
    }

    /// The headers contradict the message, or are missing.
    pub fn header_mismatch(what: &str) -> Self {
        Self::new(-32020, format!("Header mismatch: {what}")).with_status(StatusCode::BAD_REQUEST)
    }

    /// The revision of the protocol is not supported.
    pub fn unsupported_revision(requested: &str, supported: &[&str]) -> Self {
        let data = json!({"supported": supported, "requested": shortened(requested)});
        Self::new(-32022, "Unsupported protocol version").with_status(StatusCode::BAD_REQUEST).with_data(data)
    }

    /// A Problem as an error with this code. The Problem's members are the error's data.
    pub fn of_problem(code: i32, problem: Problem, base_url: &str, request_id: &str) -> Self {
        let body = problem.body(base_url, request_id);
        Self { problem: Some(Box::new(problem)), ..Self::new(code, body_text(&body, "detail")) }.with_data(body.into())
    }

    /// Adds a client's text, shortened, to the data.
    pub fn with_datum(self, name: &str, text: &str) -> Self {
        let mut data = self.data.unwrap_or_else(|| json!({}));
        data[name] = shortened(text).into();
        Self { data: Some(data), ..self }
    }

    /// Sets the HTTP status, which is 200 by default.
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, status: StatusCode::OK, problem: None }
    }

    /// The reply to the request with this identifier; `None` if the identifier could not be read.
    pub fn reply(self, id: Option<&Value>) -> Result<Reply, Problem> {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = self.data {
            error["data"] = data;
        }
        let mut message = json!({"jsonrpc": "2.0", "error": error});
        if let Some(id) = id {
            message["id"] = id.clone();
        }
        let reply = Reply::json(self.status, &message)?.uncached();
        Ok(match self.problem {
            Some(problem) => reply.reporting(*problem),
            None => reply,
        })
    }
}

fn body_text(body: &Map<String, Value>, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The beginning of a client's text, for error messages.
pub fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(body: &str) -> (i32, Option<Value>) {
        let (id, error) = Message::read(body.as_bytes()).expect_err(body);
        assert_eq!(error.status, StatusCode::BAD_REQUEST, "{body}");
        (error.code, id)
    }

    #[test]
    fn a_message_is_a_request_a_notification_or_a_response() {
        for params in ["", r#","params":{}"#, r#","params":null"#] {
            let message = format!(r#"{{"jsonrpc":"2.0","id":"1","method":"ping"{params}}}"#);
            let expected = Request { id: json!("1"), method: "ping".to_owned(), params: Map::new() };
            assert_eq!(Message::read(message.as_bytes()).expect("a request"), Message::Request(expected), "{params}");
        }
        let notification = Message::read(br#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#);
        assert_eq!(notification.expect("a notification"), Message::Notification);
        let response = Message::read(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(response.expect("a response"), Message::Response);
    }

    #[test]
    fn an_identifier_that_is_an_integer_with_a_fraction_of_zero_is_repeated() {
        let Message::Request(request) = Message::read(br#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#).expect("read")
        else {
            panic!("no request");
        };
        assert_eq!(request.id.to_string(), "1.0");
    }

    #[test]
    fn arguments_are_an_object_or_none() {
        let arguments = |params: Value| {
            let params = params.as_object().cloned().expect("an object");
            Request { id: json!(1), method: "tools/call".to_owned(), params }.arguments()
        };
        for none in [json!({}), json!({ "arguments": null }), json!({ "arguments": {} })] {
            assert_eq!(arguments(none).expect("none"), Map::new());
        }
        for bad in [json!([]), json!(""), json!(false)] {
            assert!(arguments(json!({ "arguments": bad })).is_err());
        }
    }

    #[test]
    fn an_invalid_message_is_distinguished_from_invalid_json() {
        for no_json in ["", "{", "nonsense", r#"{"jsonrpc":"2.0",}"#] {
            assert_eq!(code(no_json), (-32700, None), "{no_json}");
        }
        assert_eq!(Message::read(b"{\"a\":\"\xff\"}").expect_err("not UTF-8").1.code, -32700);
        for no_message in ["null", "1", "\"x\"", "[]", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "{}"] {
            assert_eq!(code(no_message), (-32600, None), "{no_message}");
        }
    }

    #[test]
    fn an_error_repeats_a_valid_identifier() {
        for (body, id) in [
            (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, Some(json!(7))),
            (r#"{"id":"a","method":"ping"}"#, Some(json!("a"))),
            (r#"{"jsonrpc":"2.0","id":7}"#, Some(json!(7))),
            (r#"{"jsonrpc":"2.0","id":7,"method":1}"#, Some(json!(7))),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#, Some(json!(7))),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None),
        ] {
            assert_eq!(code(body), (-32600, id), "{body}");
        }
    }

    #[test]
    fn a_duplicate_member_is_refused_by_its_name_and_a_unique_identifier_kept() {
        for (body, name, id) in [
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, "id", None),
            (r#"{"jsonrpc":"2.0","id":1,"id":1,"id":1,"method":"ping"}"#, "id", None),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}"#, "method", Some(json!(7))),
            (r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"method":"ping"}"#, "jsonrpc", Some(json!(7))),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{},"params":{}}"#, "params", None),
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{"b":1,"b":2}}"#, "b", Some(json!("a"))),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"id":1,"id":2}}"#, "id", Some(json!(7))),
            (r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"arguments":{"b":1,"b":2}}}"#, "b", Some(json!(7))),
        ] {
            let (known_id, error) = Message::read(body.as_bytes()).expect_err(body);
            let message = format!("Invalid request: `{name}` must be given only once");
            assert_eq!((error.code, error.message, known_id), (-32600, message, id), "{body}");
        }
        let long = "n".repeat(10_000);
        let (_, error) = Message::read(format!(r#"{{"{long}":1,"{long}":2}}"#).as_bytes()).expect_err("refused");
        assert!(error.message.len() < 200, "{}", error.message);
    }

    #[test]
    fn the_error_on_unreadable_json_names_the_limits() {
        for value in ["1e400".to_owned(), r#""\ud800""#.to_owned(), "9".repeat(400), "[".repeat(127) + &"]".repeat(127)]
        {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{value}}}}}"#);
            let (id, error) = Message::read(body.as_bytes()).expect_err("refused");
            assert_eq!((error.code, id), (-32700, None));
            for limit in ["UTF-8", "range of a double", "unpaired surrogates", "127 levels"] {
                assert!(error.message.contains(limit), "{}", error.message);
            }
        }
    }

    #[test]
    fn an_error_repeats_only_the_beginning_of_a_clients_text() {
        let long = "é".repeat(500_000);
        let begun = json!("é".repeat(100));
        let error = RpcError::invalid_params("x").with_datum("uri", &long);
        assert_eq!(error.data.expect("data")["uri"], begun);
        let error = RpcError::unsupported_revision(&long, &[]);
        assert_eq!(error.data.expect("data")["requested"], begun);
        assert!(RpcError::no_method(&long).message.len() < 300);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(Message::read(&body));
        }
    }
}
