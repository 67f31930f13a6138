//! A simulated S3 bucket: conditional writes, strongly consistent reads and lists, and every version of every object.
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html>,
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel>

use std::collections::BTreeMap;

use aws_lc_rs::digest;
use aws_smithy_runtime_api::client::{orchestrator::HttpRequest, result::ConnectorError};
use aws_smithy_types::byte_stream::ByteStream;
use base64::{Engine, prelude::BASE64_STANDARD};
use percent_encoding::percent_decode_str;

/// The URL of S3.
pub const ORIGIN: &str = "http://s3.simulated";
/// The bucket's name.
pub const BUCKET: &str = "geo-ip";
/// The number of keys on one page of a list. S3 returns 1 000 keys; a small number exercises paging.
const PAGE: usize = 3;

/// The simulated bucket.
#[derive(Debug, Default)]
pub struct Bucket {
    objects: BTreeMap<String, Vec<u8>>,
    /// All changes so far, in order.
    pub changes: Vec<Change>,
}

/// A change to an object.
#[derive(Debug, Clone)]
pub struct Change {
    /// When it was changed, in milliseconds.
    pub at: u64,
    /// The object's key.
    pub key: String,
    /// The SHA-256 hash of the content, and the content itself for pointers; `None` if the object was removed.
    pub content: Option<Content>,
    /// The sandbox that made the change.
    pub sandbox: u64,
}

/// An object's content.
#[derive(Debug, Clone)]
pub struct Content {
    /// The SHA-256 hash, in lower-case hexadecimal.
    pub sha256: String,
    /// The content, if the object is small; empty for large objects.
    pub small: Vec<u8>,
}

/// A request to the bucket.
#[derive(Debug)]
pub struct BucketRequest {
    /// The method.
    pub method: String,
    /// The object's key; empty for a list.
    pub key: String,
    /// The query's parameters.
    pub query: BTreeMap<String, String>,
    /// The headers, with lower-case names.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

/// The bucket's response.
#[derive(Debug)]
pub struct BucketAnswer {
    /// The status.
    pub status: u16,
    /// The entity tag.
    pub tag: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl BucketAnswer {
    fn of(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, tag: None, body: body.into() }
    }

    /// An error with this code.
    pub fn error(status: u16, code: &str) -> Self {
        Self::of(status, format!("<Error><Code>{code}</Code><Message>played</Message></Error>"))
    }
}

impl BucketRequest {
    /// Reads the SDK's request; `None` if the request is for another service.
    pub async fn read(request: &mut HttpRequest) -> Result<Option<Self>, ConnectorError> {
        let Some(target) = request.uri().strip_prefix(ORIGIN).map(str::to_owned) else { return Ok(None) };
        let body = ByteStream::new(request.take_body()).collect().await;
        let body = body.map_err(|error| ConnectorError::io(error.into()))?.to_vec();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let key = path.trim_start_matches('/').strip_prefix(BUCKET).unwrap_or_default().trim_start_matches('/');
        let query = query.split('&').filter_map(|part| part.split_once('='));
        Ok(Some(Self {
            method: request.method().to_owned(),
            key: decoded(key),
            query: query.map(|(name, value)| (name.to_owned(), decoded(value))).collect(),
            headers: request.headers().iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            body,
        }))
    }

    /// Whether the write has a condition.
    pub fn is_conditional_write(&self) -> bool {
        self.method == "PUT" && self.point().contains(" if-")
    }

    /// The kind of request, for coverage.
    pub fn point(&self) -> String {
        let kind = match self.key.rsplit_once('.') {
            Some((_, "json")) => "pointer",
            Some((_, "mmdb")) => "database",
            Some((_, "txt")) => "licence",
            _ => "objects",
        };
        let condition = ["if-match", "if-none-match"].into_iter().find(|name| self.headers.contains_key(*name));
        format!("{} {kind}{}", self.method, condition.map(|name| format!(" {name}")).unwrap_or_default())
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

impl Bucket {
    /// An object's current content.
    pub fn object(&self, key: &str) -> Option<&[u8]> {
        self.objects.get(key).map(Vec::as_slice)
    }

    /// Handles a request at this time.
    pub fn answer(&mut self, request: &BucketRequest, now: u64, sandbox: u64) -> BucketAnswer {
        match request.method.as_str() {
            "GET" if request.key.is_empty() => self.list(request),
            "GET" => self.get(request),
            "PUT" => self.put(request, now, sandbox),
            "DELETE" => {
                if self.objects.remove(&request.key).is_some() {
                    self.changes.push(Change { at: now, key: request.key.clone(), content: None, sandbox });
                }
                BucketAnswer::of(204, "")
            }
            _ => BucketAnswer::error(405, "MethodNotAllowed"),
        }
    }

    fn get(&self, request: &BucketRequest) -> BucketAnswer {
        let Some(content) = self.objects.get(&request.key) else { return BucketAnswer::error(404, "NoSuchKey") };
        let tag = tag(content);
        if request.header("if-none-match") == Some(&tag) {
            return BucketAnswer { tag: Some(tag), ..BucketAnswer::of(304, "") };
        }
        BucketAnswer { tag: Some(tag), ..BucketAnswer::of(200, content.clone()) }
    }

    fn put(&mut self, request: &BucketRequest, now: u64, sandbox: u64) -> BucketAnswer {
        let present = self.objects.get(&request.key).map(|content| tag(content));
        if let Some(expected) = request.header("if-match") {
            match &present {
                None => return BucketAnswer::error(404, "NoSuchKey"),
                Some(present) if present != expected => return BucketAnswer::error(412, "PreconditionFailed"),
                Some(_) => {}
            }
        }
        if request.header("if-none-match").is_some() && present.is_some() {
            return BucketAnswer::error(412, "PreconditionFailed");
        }
        let sha256 = digest::digest(&digest::SHA256, &request.body);
        let claimed = request.header("x-amz-checksum-sha256");
        if claimed.is_some_and(|claimed| claimed != BASE64_STANDARD.encode(sha256)) {
            return BucketAnswer::error(400, "BadDigest");
        }
        let small = if request.key.ends_with(".json") { request.body.clone() } else { Vec::new() };
        let content = Content { sha256: hex(sha256.as_ref()), small };
        self.changes.push(Change { at: now, key: request.key.clone(), content: Some(content), sandbox });
        self.objects.insert(request.key.clone(), request.body.clone());
        BucketAnswer { tag: Some(tag(&request.body)), ..BucketAnswer::of(200, "") }
    }

    /// One page of the keys that begin with a prefix. Nested folders are not simulated, since no use case in a history
    /// lists any.
    fn list(&self, request: &BucketRequest) -> BucketAnswer {
        let of = |name: &str| request.query.get(name).map(String::as_str).unwrap_or_default();
        let after = of("continuation-token");
        let keys = self.objects.keys().filter(|key| key.starts_with(of("prefix")) && key.as_str() > after);
        let page: Vec<_> = keys.take(PAGE + 1).collect();
        let contents: String =
            page.iter().take(PAGE).map(|key| format!("<Contents><Key>{key}</Key></Contents>")).collect();
        let next = match page.get(PAGE - 1) {
            Some(last) if page.len() > PAGE => format!("<NextContinuationToken>{last}</NextContinuationToken>"),
            _ => String::new(),
        };
        let truncated = !next.is_empty();
        let body =
            format!("<ListBucketResult><IsTruncated>{truncated}</IsTruncated>{next}{contents}</ListBucketResult>");
        BucketAnswer::of(200, body)
    }
}

/// An entity tag, which, as in S3, depends only on the content.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html>
fn tag(content: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, content);
    format!("\"{}\"", &hex(digest.as_ref())[..32])
}

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
