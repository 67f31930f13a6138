//! AWS Signature Version 4, for requests that are sent without an SDK.

use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningSettings, sign},
    sign::v4,
};
use reqwest::{Body, RequestBuilder};

use crate::clock;

/// An AWS caller's credentials.
#[derive(Debug, Clone)]
pub struct AwsCaller(Credentials);

impl AwsCaller {
    /// A caller that has these credentials.
    pub fn new(access_key_id: &str, secret_access_key: &str) -> Self {
        Self(Credentials::new(access_key_id, secret_access_key, None, None, "a test"))
    }

    /// The signature headers for a request with these headers and this body.
    pub fn signature<'a>(
        &self,
        method: &'a str,
        url: &'a str,
        headers: impl Iterator<Item = (&'a str, &'a str)>,
        body: &'a [u8],
    ) -> Vec<(&'static str, String)> {
        let identity = self.0.clone().into();
        let now = UNIX_EPOCH + Duration::from_secs(clock::seconds().unsigned_abs());
        let params = v4::SigningParams::builder().identity(&identity).region("us-east-1").name("any");
        let params = params.time(now).settings(SigningSettings::default()).build().expect("every part is given");
        let request = SignableRequest::new(method, url, headers, SignableBody::Bytes(body)).expect("an address");
        let signed = sign(request, &params.into()).expect("headers of tests are text");
        let (headers, _) = signed.into_parts().0.into_parts();
        headers.iter().map(|header| (header.name(), header.value().to_owned())).collect()
    }

    /// The signed request. The signature does not cover headers that are added later.
    pub fn sign(&self, request: RequestBuilder) -> RequestBuilder {
        let unsigned = request.try_clone().and_then(|request| request.build().ok()).expect("a request with its body");
        let headers = unsigned.headers().iter();
        let headers = headers.map(|(name, value)| (name.as_str(), value.to_str().expect("headers of tests are text")));
        let body = unsigned.body().and_then(Body::as_bytes).unwrap_or_default();
        let signature = self.signature(unsigned.method().as_str(), unsigned.url().as_str(), headers, body);
        signature.into_iter().fold(request, |request, (name, value)| request.header(name, value))
    }
}
