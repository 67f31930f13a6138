//! A measured function.

use std::{
    error::Error,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use fakes::booking;
use flate2::{Compression, write::DeflateEncoder};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::{
    bundle::{Bundle, FORM},
    runtime_api::RuntimeApi,
};

/// A function, an event for it, and the response expected.
#[derive(Clone)]
pub struct Subject {
    pub name: &'static str,
    event: String,
    answer: Answer,
}

/// The kinds of responses that are not failures.
#[derive(Clone, Copy)]
enum Answer {
    /// An HTTP response with this status.
    Status(u16),
    /// The response to a batch of messages with no failed items.
    AllHandled,
}

impl Subject {
    /// The baseline function.
    pub fn hello() -> Self {
        Self { name: "hello", event: http_event("GET", "/", &json!({}), &[], ""), answer: Answer::Status(200) }
    }

    /// A function that validates a token and responds from memory.
    pub fn list_event_types(bundle: &Bundle) -> Self {
        let entity = bundle.var("MANAGING_ENTITY");
        let path = format!("/api/managing-entity/{entity}/webhook/event/list");
        let parameters = json!({ "managingEntityIdentifier": entity });
        Self {
            name: "list-event-types",
            event: http_event("GET", &path, &parameters, &[bearer(bundle)], ""),
            answer: Answer::Status(200),
        }
    }

    /// A function that reads an application and signs a token.
    pub fn token(bundle: &Bundle) -> Self {
        let headers = [("content-type", FORM.to_owned())];
        Self {
            name: "token",
            event: http_event("POST", "/oauth2/token", &json!({}), &headers, &bundle.token_form()),
            answer: Answer::Status(200),
        }
    }

    /// A function that validates a token and reads a delivery.
    pub fn show_delivery(bundle: &Bundle, delivery: &str) -> Self {
        let entity = bundle.var("MANAGING_ENTITY");
        let path = format!("/api/managing-entity/{entity}/webhook/delivery/{delivery}");
        let parameters = json!({ "managingEntityIdentifier": entity, "deliveryIdentifier": delivery });
        Self {
            name: "show-delivery",
            event: http_event("GET", &path, &parameters, &[bearer(bundle)], ""),
            answer: Answer::Status(200),
        }
    }

    /// A function that validates a token, then responds to an agent from memory with the same list as
    /// [`list_event_types`](Self::list_event_types).
    pub fn mcp(bundle: &Bundle) -> Self {
        let call = json!({ "name": "list_event_types", "arguments": {} });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call }).to_string();
        let headers = [bearer(bundle), ("content-type", "application/json".to_owned())];
        let event = http_event("POST", "/mcp", &json!({}), &headers, &message);
        Self { name: "mcp", event, answer: Answer::Status(200) }
    }

    /// A function that updates a geo-IP database, with `live=true`.
    pub fn geo_ip_update(bundle: &Bundle) -> Self {
        let body = json!({ "key": bundle.var("TASK_KEY"), "environment": bundle.var("ENVIRONMENT") }).to_string();
        let headers = [bearer(bundle), ("content-type", "application/json".to_owned())];
        let event = http_event("POST", "/task/geo-ip-update", &json!({}), &headers, &body);
        let event = event.replace(r#""rawQueryString":"""#, r#""rawQueryString":"live=true""#);
        Self { name: "geo-ip-update", event, answer: Answer::Status(200) }
    }

    /// A function that publishes an event with this many bytes of JSON for a managing entity.
    pub fn publish_event(bundle: &Bundle, entity: &str, size: usize) -> Self {
        let path = format!("/api/managing-entity/{entity}/webhook/event");
        let parameters = json!({ "managingEntityIdentifier": entity });
        let authorization = ("authorization", format!("Bearer {}", bundle.platform_token));
        let headers = [authorization, ("content-type", "application/json".to_owned())];
        let event = |data: Value| json!({ "type": "booking.created", "data": data }).to_string();
        let rest = booking(size + "{}".len() - event(conforming_booking(json!({}))).len());
        let body = event(conforming_booking(rest));
        let event = http_event("POST", &path, &parameters, &headers, &body);
        Self { name: "publish-event", event, answer: Answer::Status(202) }
    }

    /// A function that makes the attempts announced by these messages.
    pub fn dispatch_deliveries(messages: String) -> Self {
        Self { name: "dispatch-deliveries", event: messages, answer: Answer::AllHandled }
    }

    fn binary(&self) -> PathBuf {
        Path::new("target/release").join(self.name)
    }

    /// Starts the function with additional variables.
    pub async fn spawn(&self, bundle: &Bundle, more: &[(&str, &str)]) -> Result<(RuntimeApi, Child), Box<dyn Error>> {
        self.spawn_logging(bundle, more, &File::create("/dev/null")?).await
    }

    /// Starts the function with additional variables and a log file.
    pub async fn spawn_logging(
        &self,
        bundle: &Bundle,
        more: &[(&str, &str)],
        log: &File,
    ) -> Result<(RuntimeApi, Child), Box<dyn Error>> {
        let api = RuntimeApi::start().await?;
        let process = Command::new(self.binary())
            .env_clear()
            .envs(bundle.function_env())
            .envs(more.iter().copied())
            .env("AWS_LAMBDA_RUNTIME_API", format!("http://{}", api.address))
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log.try_clone()?))
            .kill_on_drop(true)
            .spawn()?;
        Ok((api, process))
    }

    /// Invokes the function; returns its response, or an error if the response is wrong.
    pub async fn invoke(&self, api: &mut RuntimeApi) -> Result<Value, Box<dyn Error>> {
        let answer = tokio::time::timeout(Duration::from_secs(30), api.invoke(&self.event)).await?;
        let answer: Value = serde_json::from_slice(&answer.ok_or("no answer")?)?;
        let is_right = match self.answer {
            Answer::Status(status) => answer["statusCode"] == status,
            Answer::AllHandled => answer["batchItemFailures"] == json!([]),
        };
        if is_right { Ok(answer) } else { Err(format!("{} answered {answer}", self.name).into()) }
    }

    /// The program's size in bytes, uncompressed and compressed by `zip -9`.
    pub fn size(&self) -> Result<(u64, u64), Box<dyn Error>> {
        let program = fs::read(self.binary())?;
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&program)?;
        Ok((program.len().try_into()?, packed.finish()?.len().try_into()?))
    }
}

fn bearer(bundle: &Bundle) -> (&'static str, String) {
    ("authorization", format!("Bearer {}", bundle.token))
}

/// A booking with further data. It conforms to its schema, so that the function logs no warning.
fn conforming_booking(rest: Value) -> Value {
    let amount = json!({ "amount": "129.00", "currency": "EUR" });
    json!({
        "bookingIdentifier": "B-20417", "propertyIdentifier": "PRP-118", "status": "confirmed",
        "arrivalDate": "2027-02-12", "departureDate": "2027-02-13",
        "booking": {
            "source": { "type": "direct" },
            "units": [{
                "unitStayIdentifier": "1", "unitTypeIdentifier": "UT-DBL", "ratePlanIdentifier": "RP-FLEX",
                "occupancy": { "adults": 2 },
            }],
            "guests": [], "price": { "lines": [], "total": amount }, "balanceDue": amount,
            "cancellationTerms": { "isRefundable": true }, "createdAt": "2026-11-20T09:45:00Z", "details": rest,
        },
    })
}

/// An event from API Gateway's HTTP API, payload version 2.0.
fn http_event(method: &str, path: &str, parameters: &Value, headers: &[(&str, String)], body: &str) -> String {
    let headers: serde_json::Map<_, _> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into())).collect();
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "headers": headers,
        "pathParameters": parameters, "body": body, "isBase64Encoded": false,
        "requestContext": {
            "accountId": "000000000000", "apiId": "bench", "domainName": "localhost", "domainPrefix": "bench",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "bench"},
            "requestId": "bench", "routeKey": "$default", "stage": "$default",
            "time": "20/Nov/2026:09:45:00 +0000", "timeEpoch": 1_795_167_900_123_u64
        }
    })
    .to_string()
}
