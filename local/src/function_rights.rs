//! Each function's own credentials, as its role gives them on AWS, and what they may do at the stand-ins: what template.yaml
//! grants the function and no more. The operator's credentials, those of `service.env`, may do everything.
//!
//! The data folder keeps each refusal, and a call for each way in which a grant allowed something, for the tests to read.

mod record;

use std::{
    collections::{BTreeMap, HashMap},
    io,
    path::Path,
    sync::Arc,
};

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{Method, StatusCode, header::CONTENT_TYPE},
    middleware::Next,
    response::{IntoResponse, Response},
};
use base::Random;
use geo_ip::StoreAddress;
use rights::{Access, Asked, Call, Decision, Deployed, FunctionRights, Rights, RightsError, accesses, sees_absence};
use serde_json::json;
use template::Template;

use crate::{
    aws::{ACCOUNT, Credentials, REGION},
    bundle::ENVIRONMENT,
    settings::Settings,
    table::TABLE_NAME,
};
use record::Record;

/// The limit on a body that is read to decide on it: DynamoDB's, which is the largest.
const MAX_REQUEST: usize = 16 * 1024 * 1024;

/// A bucket's name where geo-IP databases lie in a folder, so that no function asks for one.
const NO_BUCKET: &str = "waypost-local-geo-ip";

/// The calls that Lambda makes for a mapping of a queue.
const MAPPING: [&str; 3] = ["AmazonSQS.ReceiveMessage", "AmazonSQS.DeleteMessage", "AmazonSQS.GetQueueAttributes"];

/// The credentials of every function, and what each may do.
pub struct FunctionCallers {
    rights: Rights,
    credentials: BTreeMap<String, Credentials>,
    /// The functions' names by access key id. The map's hash is keyed, so that its time says nothing of the ids in it.
    names: HashMap<String, String>,
    record: Record,
}

/// Why functions have no credentials.
#[derive(Debug, thiserror::Error)]
pub enum FunctionRightsError {
    #[error(transparent)]
    Rights(#[from] RightsError),
    #[error("what functions are granted and refused cannot be kept")]
    Record(#[from] io::Error),
}

impl FunctionCallers {
    /// New credentials for every function of the template.
    pub fn new(
        template: &Template,
        settings: &Settings,
        geo_ip_store: &StoreAddress,
        folder: &Path,
        random: &dyn Random,
    ) -> Result<Arc<Self>, FunctionRightsError> {
        let mut parameters = settings.parameters.clone();
        parameters.insert("Environment".to_owned(), ENVIRONMENT.to_owned());
        let bucket = match geo_ip_store {
            StoreAddress::S3 { bucket, .. } => bucket.clone(),
            StoreAddress::Folder(_) => NO_BUCKET.to_owned(),
        };
        let deployed = Deployed {
            region: REGION.to_owned(),
            account: ACCOUNT.to_owned(),
            table: TABLE_NAME.to_owned(),
            bucket,
            parameters,
        };
        let record = Record::open(folder, &deployed)?;
        let rights = Rights::read(template, deployed)?;
        let fresh = |function: &FunctionRights| (function.name.clone(), Credentials::fresh(random));
        let credentials: BTreeMap<_, _> = rights.functions().map(fresh).collect();
        let names = credentials.iter().map(|(name, own)| (own.access_key_id.clone(), name.clone())).collect();
        Ok(Arc::new(Self { rights, credentials, names, record }))
    }

    /// The credentials of a function, which all its processes share.
    pub fn credentials(&self, function: &str) -> Option<&Credentials> {
        self.credentials.get(function)
    }

    /// The function with this access key id.
    pub fn function(&self, access_key_id: &str) -> Option<&FunctionRights> {
        self.rights.function(self.names.get(access_key_id)?)
    }

    /// Decides whether a mapping may invoke a function with the messages of the queue at this address: Lambda receives and
    /// deletes them with the function's role. Decided once, since neither changes while the service runs; the error is AWS's
    /// sentence.
    /// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html>
    pub fn decide_on_mapping(&self, function: &str, queue_url: &str) -> Result<(), String> {
        let function = self.rights.function(function).ok_or_else(|| format!("there is no function {function}"))?;
        let body = json!({ "QueueUrl": queue_url }).to_string();
        MAPPING.iter().try_for_each(|target| self.decide(function, Call::Json { target, body: body.as_bytes() }))
    }

    /// Passes a function's request on if the function may do all that it asks.
    pub async fn pass(&self, function: &FunctionRights, request: Request, next: Next) -> Response {
        let (parts, body) = request.into_parts();
        let Some(target) = parts.headers.get("x-amz-target").and_then(|target| target.to_str().ok()) else {
            let request = Request::from_parts(parts, body);
            return self.pass_to_s3(function, request, next).await;
        };
        let target = target.to_owned();
        let Ok(body) = to_bytes(body, MAX_REQUEST).await else {
            return StatusCode::PAYLOAD_TOO_LARGE.into_response();
        };
        match self.decide(function, Call::Json { target: &target, body: &body }) {
            Ok(()) => next.run(Request::from_parts(parts, Body::from(body))).await,
            Err(sentence) => refusal_in_json(&target, &sentence),
        }
    }

    async fn pass_to_s3(&self, function: &FunctionRights, request: Request, next: Next) -> Response {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let query = request.uri().query().unwrap_or_default();
        if let Err(sentence) = self.decide(function, Call::S3 { method: method.as_str(), path: &path, query }) {
            return refusal_in_xml(&sentence);
        }
        let answer = next.run(request).await;
        let absent = answer.status() == StatusCode::NOT_FOUND && [Method::GET, Method::HEAD].contains(&method);
        let Some(access) = absent.then(|| sees_absence(&path)).flatten() else { return answer };
        match self.decide_on(function, &access) {
            Ok(()) => answer,
            Err(sentence) => refusal_in_xml(&sentence),
        }
    }

    /// Decides on a call and keeps the decision; the error is AWS's sentence.
    fn decide(&self, function: &FunctionRights, call: Call<'_>) -> Result<(), String> {
        match accesses(&self.rights, call) {
            Ok(asked) => asked.iter().try_for_each(|access| self.decide_on(function, access)),
            Err(error) => {
                let sentence = format!("{} asked for {call}, on which nothing is decided here: {error}", function.name);
                let line = json!({ "function": function.name, "action": call.to_string(), "error": error.to_string() });
                self.record.refused(&line, &sentence);
                Err(sentence)
            }
        }
    }

    fn decide_on(&self, function: &FunctionRights, access: &Access) -> Result<(), String> {
        let decision = function.decide(access);
        if let Decision::Allowed(uses) = &decision {
            self.record.allowed(function, uses, access);
        }
        let Some(sentence) = function.refusal(ACCOUNT, access, &decision) else { return Ok(()) };
        let asked = Asked { function: function.name.clone(), access: access.clone() };
        self.record.refused(&json!(asked), &sentence);
        Err(sentence)
    }
}

/// A refusal as services answer it that speak JSON. DynamoDB and Secrets Manager answer 400, SQS 403.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>
fn refusal_in_json(target: &str, sentence: &str) -> Response {
    let status = if target.starts_with("AmazonSQS.") { StatusCode::FORBIDDEN } else { StatusCode::BAD_REQUEST };
    let body = json!({ "__type": "com.amazon.coral.service#AccessDeniedException", "Message": sentence }).to_string();
    (status, [(CONTENT_TYPE, "application/x-amz-json-1.0")], body).into_response()
}

/// A refusal as S3 answers it.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>
fn refusal_in_xml(sentence: &str) -> Response {
    let sentence = sentence.replace('&', "&amp;").replace('<', "&lt;");
    let body = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code><Message>{sentence}</Message></Error>"#
    );
    (StatusCode::FORBIDDEN, [(CONTENT_TYPE, "application/xml")], body).into_response()
}
