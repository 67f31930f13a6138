//! AWS signatures, version 4. A stand-in computes each request's signature with the caller's secret key, and compares
//! it with the signature sent.
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>

use std::time::SystemTime;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_sdk_dynamodb::config::Credentials;
use aws_sigv4::{
    http_request::{
        PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode, sign,
    },
    sign::v4,
};
use axum::http::{
    HeaderMap,
    header::{AUTHORIZATION, HOST},
    request::Parts,
};
use base::Time;
use jiff::{civil::DateTime, tz::TimeZone};

/// The maximum difference between a signature's time and the clock, in seconds.
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html>
const LARGEST_SKEW: i64 = 15 * 60;

const S3: &str = "s3";
const TARGET: &str = "x-amz-target";
const DATE: &str = "x-amz-date";
const CONTENT_SHA256: &str = "x-amz-content-sha256";

/// The signature from the header `Authorization`.
#[derive(Debug)]
pub struct Signature {
    /// The access key id of the caller that the request claims to come from.
    pub access_key_id: String,
    /// The date, as in `X-Amz-Date`.
    date: String,
    region: String,
    service: String,
    signed_headers: Vec<String>,
    value: String,
}

/// Why a signature is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureError {
    /// The header `Authorization` has no signature.
    Absent,
    /// A part of the signature is missing or malformed.
    Malformed,
    /// The signature does not match the caller and the request.
    Different,
    /// The signature is too old, or its time is in the future.
    Expired,
}

impl Signature {
    /// Reads the header. Signatures in the query are not supported, since nothing here creates presigned URLs.
    pub fn read(headers: &HeaderMap) -> Result<Self, SignatureError> {
        let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let fields = header.and_then(|value| value.strip_prefix("AWS4-HMAC-SHA256 ")).ok_or(SignatureError::Absent)?;
        let field = |name: &str| {
            let found = fields.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='));
            found.ok_or(SignatureError::Malformed)
        };
        let scope: Vec<_> = field("Credential")?.split('/').collect();
        let [access_key_id, date, region, service, "aws4_request"] = scope[..] else {
            return Err(SignatureError::Malformed);
        };
        let [access_key_id, date, region, service] = [access_key_id, date, region, service].map(str::to_owned);
        let signed_headers = field("SignedHeaders")?.split(';').map(str::to_owned).collect();
        Ok(Self { access_key_id, date, region, service, signed_headers, value: field("Signature")?.to_owned() })
    }

    /// Whether the signature is for S3.
    pub fn is_of_s3(&self) -> bool {
        self.service == S3
    }

    /// Whether checking the signature requires the body. An S3 request has a signed header with its body's hash, or
    /// with a mark that the body is unsigned. The other server checks the hash, so a large object need not be held in
    /// memory here.
    pub fn needs_body(&self, headers: &HeaderMap) -> bool {
        !self.is_of_s3() || headers.contains_key(TARGET)
    }

    /// Checks that the caller with this secret key signed the request. `body` is required if [`Self::needs_body`] is
    /// true.
    pub fn check(&self, secret: &str, parts: &Parts, body: Option<&[u8]>, now: Time) -> Result<(), SignatureError> {
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let date = header(DATE).ok_or(SignatureError::Malformed)?;
        let time = DateTime::strptime("%Y%m%dT%H%M%SZ", date).and_then(|time| time.to_zoned(TimeZone::UTC));
        let time = time.map_err(|_| SignatureError::Malformed)?.timestamp();
        if (time.as_second() - now.as_seconds()).abs() > LARGEST_SKEW {
            return Err(SignatureError::Expired);
        }
        let is_signed = |name: &str| self.signed_headers.iter().any(|signed| signed == name);
        let has_target = parts.headers.contains_key(TARGET);
        let is_of_its_day = date.get(..8) == Some(&*self.date);
        if !(parts.headers.contains_key(HOST) && is_signed("host") && is_signed(TARGET) == has_target && is_of_its_day)
        {
            return Err(SignatureError::Different);
        }
        let body = match body {
            Some(body) => SignableBody::Bytes(body),
            None => SignableBody::Precomputed(header(CONTENT_SHA256).ok_or(SignatureError::Malformed)?.to_owned()),
        };
        let expected = self.of_caller(secret, parts, body, time.into()).ok_or(SignatureError::Different)?;
        verify_slices_are_equal(expected.as_bytes(), self.value.as_bytes()).map_err(|_| SignatureError::Different)
    }

    /// The signature that the caller with this secret key would send; `None` if the request cannot be signed.
    fn of_caller(&self, secret: &str, parts: &Parts, body: SignableBody<'_>, time: SystemTime) -> Option<String> {
        let mut headers = Vec::new();
        for name in &self.signed_headers {
            for value in parts.headers.get_all(name) {
                headers.push((name.as_str(), value.to_str().ok()?));
            }
        }
        let mut settings = SigningSettings::default();
        settings.excluded_headers = None;
        if self.is_of_s3() {
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        }
        let identity = Credentials::new(&self.access_key_id, secret, None, None, "a caller").into();
        let params = v4::SigningParams::builder().identity(&identity).region(&self.region).name(&self.service);
        let params = params.time(time).settings(settings).build().ok()?.into();
        let target = parts.uri.path_and_query()?.as_str();
        let request = SignableRequest::new(parts.method.as_str(), target, headers.into_iter(), body).ok()?;
        Some(sign(request, &params).ok()?.into_parts().1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use aws_sigv4::http_request::PayloadChecksumKind;
    use axum::http::{HeaderName, HeaderValue, Method, Request, Uri};

    use super::*;

    const SECRET: &str = "the secret key";
    /// The time 2026-01-02T03:04:05Z.
    const NOW: i64 = 1_767_323_045;
    const BODY: &[u8] = br#"{"TableName": "things"}"#;

    fn time(seconds: i64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds.try_into().expect("after 1970"))
    }

    /// A request, signed as an SDK would sign it at this time.
    fn signed(service: &str, target: &str, body: SignableBody<'_>, at: i64) -> Parts {
        let mut settings = SigningSettings::default();
        let mut headers = vec![("content-type", "application/x-amz-json-1.0"), ("user-agent", "an SDK")];
        if service == S3 {
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        } else {
            headers.push((TARGET, "DynamoDB_20120810.Scan"));
        }
        let identity = Credentials::new("LOCALkey", SECRET, None, None, "a test").into();
        let params = v4::SigningParams::builder().identity(&identity).region("us-east-1").name(service).time(time(at));
        let params = params.settings(settings).build().expect("complete").into();
        let address = format!("http://127.0.0.2:4566{target}");
        let signable = SignableRequest::new("POST", address, headers.iter().copied(), body).expect("well-formed");
        let signature = sign(signable, &params).expect("it can be signed").into_parts().0;
        let mut request = Request::post(target).header("host", "127.0.0.2:4566");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let mut request = request.body(()).expect("well-formed");
        signature.apply_to_request_http1x(&mut request);
        request.into_parts().0
    }

    fn of_table() -> Parts {
        signed("dynamodb", "/", SignableBody::Bytes(BODY), NOW)
    }

    /// The verdict on a request with this body.
    fn verdict(parts: &Parts, secret: &str, body: &[u8], now: i64) -> Result<(), SignatureError> {
        let signature = Signature::read(&parts.headers)?;
        assert_eq!(signature.access_key_id, "LOCALkey");
        let body = signature.needs_body(&parts.headers).then_some(body);
        signature.check(secret, parts, body, Time::from_millis(now * 1000))
    }

    #[test]
    fn a_request_that_its_caller_signed_passes() {
        assert_eq!(verdict(&of_table(), SECRET, BODY, NOW), Ok(()));
        assert_eq!(verdict(&of_table(), SECRET, BODY, NOW + LARGEST_SKEW), Ok(()));
        for target in ["/000000000000/Queue", "/a%20b/%C3%BC?b=2&a=x%2Fy&c", "/2015-03-31/functions/a/invocations"] {
            let parts = signed("sqs", target, SignableBody::Bytes(BODY), NOW);
            assert_eq!(verdict(&parts, SECRET, BODY, NOW), Ok(()), "{target}");
        }
    }

    #[test]
    fn an_object_passes_with_every_form_of_its_hash() {
        for body in [
            SignableBody::Bytes(BODY),
            SignableBody::UnsignedPayload,
            SignableBody::StreamingUnsignedPayloadTrailer,
            SignableBody::StreamingSignedPayloadTrailer,
        ] {
            let mut parts = signed(S3, "/files/a%20b/../c//d?x-id=PutObject", body, NOW);
            assert_eq!(verdict(&parts, SECRET, b"not read here", NOW), Ok(()));
            parts.headers.insert(CONTENT_SHA256, HeaderValue::from_static("another hash"));
            assert_eq!(verdict(&parts, SECRET, b"", NOW), Err(SignatureError::Different));
            parts.headers.remove(CONTENT_SHA256);
            assert_eq!(verdict(&parts, SECRET, b"", NOW), Err(SignatureError::Malformed));
        }
    }

    #[test]
    fn a_request_that_is_not_as_its_caller_signed_it_is_refused() {
        assert_eq!(verdict(&of_table(), "another key", BODY, NOW), Err(SignatureError::Different));
        assert_eq!(verdict(&of_table(), SECRET, b"{}", NOW), Err(SignatureError::Different));
        for (name, value) in [
            ("x-amz-target", "DynamoDB_20120810.DeleteTable"),
            ("content-type", "text/plain"),
            ("host", "localhost"),
            ("x-amz-date", "20260102T030406Z"),
            ("x-amz-date", "20260103T030405Z"),
        ] {
            let mut parts = of_table();
            let name: HeaderName = name.parse().expect("a name");
            parts.headers.insert(&name, HeaderValue::from_static(value));
            let now = if value.starts_with("20260103") { NOW + 24 * 60 * 60 } else { NOW };
            assert_eq!(verdict(&parts, SECRET, BODY, now), Err(SignatureError::Different), "{name}: {value}");
            parts.headers.append(&name, HeaderValue::from_static(value));
            assert_eq!(verdict(&parts, SECRET, BODY, now), Err(SignatureError::Different), "{name} twice");
        }
        let mut parts = of_table();
        parts.method = Method::GET;
        assert_eq!(verdict(&parts, SECRET, BODY, NOW), Err(SignatureError::Different));
        for target in ["/another", "/?a=b"] {
            parts = of_table();
            parts.uri = Uri::from_static(target);
            assert_eq!(verdict(&parts, SECRET, BODY, NOW), Err(SignatureError::Different), "{target}");
        }
        // If a request has a target, its body and its target must always be signed.
        for service in [S3, "sqs"] {
            let mut parts = signed(S3, "/", SignableBody::UnsignedPayload, NOW);
            parts.headers.insert(TARGET, HeaderValue::from_static("AmazonSQS.ListQueues"));
            let header = parts.headers[AUTHORIZATION].to_str().expect("text").replace("/s3/", &format!("/{service}/"));
            parts.headers.insert(AUTHORIZATION, header.parse().expect("a value"));
            assert_eq!(verdict(&parts, SECRET, BODY, NOW), Err(SignatureError::Different), "{service}");
        }
    }

    #[test]
    fn a_signature_of_another_time_is_refused() {
        for now in [NOW - LARGEST_SKEW - 1, NOW + LARGEST_SKEW + 1] {
            assert_eq!(verdict(&of_table(), SECRET, BODY, now), Err(SignatureError::Expired));
        }
        let mut parts = of_table();
        parts.headers.insert(DATE, HeaderValue::from_static("yesterday"));
        assert_eq!(verdict(&parts, SECRET, BODY, NOW), Err(SignatureError::Malformed));
        parts.headers.remove(DATE);
        assert_eq!(verdict(&parts, SECRET, BODY, NOW), Err(SignatureError::Malformed));
    }

    #[test]
    fn an_incomplete_signature_is_malformed_and_another_scheme_is_absent() {
        let read = |header: &'static str| {
            let headers = [(AUTHORIZATION, HeaderValue::from_static(header))];
            Signature::read(&headers.into_iter().collect()).map(|signature| signature.access_key_id)
        };
        let credential = "AWS4-HMAC-SHA256 Credential=LOCALkey/20260102/us-east-1/any/aws4_request";
        assert_eq!(
            read("AWS4-HMAC-SHA256 Signature=0,SignedHeaders=host, Credential=k/1/r/s/aws4_request"),
            Ok("k".to_owned())
        );
        for header in
            ["AWS4-HMAC-SHA256 ", credential, "AWS4-HMAC-SHA256 Credential=k/1/r, SignedHeaders=host, Signature=0"]
        {
            assert_eq!(read(header), Err(SignatureError::Malformed), "{header}");
        }
        for header in ["Bearer LOCALkey", "LOCALkey", "AWS LOCALkey:0", ""] {
            assert_eq!(read(header), Err(SignatureError::Absent), "{header}");
        }
        assert_eq!(Signature::read(&HeaderMap::new()).map(drop), Err(SignatureError::Absent));
    }
}
