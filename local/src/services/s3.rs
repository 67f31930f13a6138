//! Forwards S3 requests to another server. The server for queues and secrets checks the requests' signatures and
//! forwards the requests unchanged. The other server must not check signatures, since it does not know this run's
//! credentials.

use std::str::FromStr;

use axum::{
    body::Body,
    extract::Request,
    http::{
        HeaderMap, HeaderName, StatusCode, Uri, Version,
        header::{CONNECTION, EXPECT, TRANSFER_ENCODING, UPGRADE},
        uri::{Authority, PathAndQuery, Scheme},
    },
    response::{IntoResponse, Response},
};
use base::logging;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

/// Headers that concern a single connection, so they are not forwarded. The local server handles `Expect`.
const OF_A_CONNECTION: [HeaderName; 4] = [CONNECTION, EXPECT, TRANSFER_ENCODING, UPGRADE];

/// An S3 server to which requests are forwarded.
#[derive(Debug, Clone)]
pub struct S3 {
    server: Authority,
    client: Client<HttpConnector, Body>,
}

/// A malformed address of an S3 server.
#[derive(Debug, thiserror::Error)]
#[error("it is not of the form http://127.0.0.1:4566")]
pub struct S3Error;

impl FromStr for S3 {
    type Err = S3Error;

    fn from_str(address: &str) -> Result<Self, S3Error> {
        let address: Uri = address.parse().map_err(|_| S3Error)?;
        let is_plain = address.scheme() == Some(&Scheme::HTTP) && address.path() == "/" && address.query().is_none();
        let server = address.authority().filter(|_| is_plain).ok_or(S3Error)?.clone();
        Ok(Self { server, client: Client::builder(TokioExecutor::new()).build_http() })
    }
}

impl S3 {
    /// The other server's response.
    pub async fn pass(&self, mut request: Request) -> Response {
        let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let uri = Uri::builder().scheme(Scheme::HTTP).authority(self.server.clone()).path_and_query(path).build();
        *request.uri_mut() = uri.expect("its three parts are there");
        *request.version_mut() = Version::HTTP_11;
        strip(request.headers_mut());
        match self.client.request(request).await {
            Ok(answer) => {
                let mut answer = answer.map(Body::new);
                strip(answer.headers_mut());
                answer
            }
            // Every SDK retries after this status.
            Err(error) => (StatusCode::SERVICE_UNAVAILABLE, logging::chain(&error)).into_response(),
        }
    }
}

/// Removes connection headers, and the CORS headers that would grant access to browser pages.
fn strip(headers: &mut HeaderMap) {
    for name in &OF_A_CONNECTION {
        headers.remove(name);
    }
    let for_pages: Vec<_> =
        headers.keys().filter(|name| name.as_str().starts_with("access-control-")).cloned().collect();
    for name in for_pages {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_plain_address_of_a_server_is_one_of_s3() {
        for address in ["http://127.0.0.1:4566", "http://localhost:4566/", "http://[::1]"] {
            assert!(address.parse::<S3>().is_ok(), "{address}");
        }
        for address in ["", "here", "127.0.0.1:4566", "https://s3.example", "http://h/path", "http://h/?a=b", "/x"] {
            assert!(address.parse::<S3>().is_err(), "{address}");
        }
    }
}
