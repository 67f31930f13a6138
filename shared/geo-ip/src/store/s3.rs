//! An S3 bucket as a store, with conditional writes.
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html>

use std::{fmt::Debug, path::Path};

use aws_sdk_s3::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::list_objects_v2::ListObjectsV2Output,
    primitives::ByteStream,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use storage::aws::CallError;
use tokio::{fs::File, io::AsyncWriteExt};

use super::object::{Object, Reading, StoreError, Swap, Tag};

/// A store in an S3 bucket.
#[derive(Debug, Clone)]
pub struct S3Store {
    client: Client,
    bucket: String,
    prefix: String,
}

/// Wraps an error of this step.
fn failed<E>(doing: &'static str, key: &str) -> impl FnOnce(E) -> StoreError
where
    E: std::error::Error + Send + Sync + 'static,
{
    let key = key.to_owned();
    move |error| StoreError::S3 { doing, key, source: Box::new(error) }
}

/// Wraps the error of a call to S3.
fn refused<E>(doing: &'static str, key: &str) -> impl FnOnce(SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let failed = failed(doing, key);
    move |error| failed(CallError::of(&error))
}

/// An error response's status.
fn status<E: ProvideErrorMetadata + Debug>(error: &SdkError<E>) -> Option<u16> {
    error.raw_response().map(|response| response.status().as_u16())
}

impl S3Store {
    /// The store in this bucket, under keys that begin with the prefix.
    pub fn new(client: Client, bucket: String, prefix: String) -> Self {
        Self { client, bucket, prefix }
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    pub(super) async fn read(&self, key: &str, known: Option<&Tag>) -> Result<Reading<Object>, StoreError> {
        let known = known.map(|tag| tag.0.clone());
        let request = self.client.get_object().bucket(&self.bucket).key(self.key(key)).set_if_none_match(known);
        let answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) if status(&error) == Some(304) => return Ok(Reading::Same),
            Err(error) if error.as_service_error().is_some_and(|error| error.is_no_such_key()) => {
                return Ok(Reading::Absent);
            }
            Err(error) => return Err(refused("reading", key)(error)),
        };
        let tag = Tag(answer.e_tag.unwrap_or_default());
        let content = answer.body.collect().await.map_err(failed("reading", key))?.to_vec();
        Ok(Reading::Found(Object { content, tag }))
    }

    pub(super) async fn fetch(&self, key: &str, into: &Path) -> Result<bool, StoreError> {
        let request = self.client.get_object().bucket(&self.bucket).key(self.key(key));
        let mut answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) if error.as_service_error().is_some_and(|error| error.is_no_such_key()) => return Ok(false),
            Err(error) => return Err(refused("fetching", key)(error)),
        };
        let mut file = File::create(into).await.map_err(failed("fetching", key))?;
        while let Some(piece) = answer.body.try_next().await.map_err(failed("fetching", key))? {
            file.write_all(&piece).await.map_err(failed("fetching", key))?;
        }
        file.flush().await.map_err(failed("fetching", key))?;
        Ok(true)
    }

    pub(super) async fn put(&self, key: &str, file: &Path, sha256: &str) -> Result<(), StoreError> {
        let body = ByteStream::from_path(file).await.map_err(failed("keeping", key))?;
        let put = self.client.put_object().bucket(&self.bucket).key(self.key(key)).body(body);
        let put = put.set_checksum_sha256(base64_of_hex(sha256)).send().await;
        put.map(drop).map_err(refused("keeping", key))
    }

    pub(super) async fn swap(&self, key: &str, content: &[u8], expected: Option<&Tag>) -> Result<Swap, StoreError> {
        let put = self.client.put_object().bucket(&self.bucket).key(self.key(key)).content_type("application/json");
        let put = match expected {
            Some(tag) => put.if_match(&tag.0),
            None => put.if_none_match("*"),
        };
        match put.body(ByteStream::from(content.to_owned())).send().await {
            Ok(_) => Ok(Swap::Swapped),
            Err(error) if matches!(status(&error), Some(412 | 409)) => Ok(Swap::Lost),
            // The pointer was removed.
            Err(error) if error.code() == Some("NoSuchKey") => Ok(Swap::Lost),
            Err(error) => Err(refused("changing", key)(error)),
        }
    }

    pub(super) async fn remove(&self, key: &str) -> Result<(), StoreError> {
        let removed = self.client.delete_object().bucket(&self.bucket).key(self.key(key)).send().await;
        removed.map(drop).map_err(refused("removing", key))
    }

    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let objects = self.pages(prefix).await?.into_iter().flat_map(|page| page.contents.unwrap_or_default());
        Ok(objects.filter_map(|object| Some(object.key?.strip_prefix(&self.prefix)?.to_owned())).collect())
    }

    pub(super) async fn folders(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let whole = self.key(prefix);
        let folders = self.pages(prefix).await?.into_iter().flat_map(|page| page.common_prefixes.unwrap_or_default());
        let names =
            folders.filter_map(|folder| Some(folder.prefix?.strip_prefix(&whole)?.trim_end_matches('/').to_owned()));
        Ok(names.collect())
    }

    async fn pages(&self, prefix: &str) -> Result<Vec<ListObjectsV2Output>, StoreError> {
        let request = self.client.list_objects_v2().bucket(&self.bucket).prefix(self.key(prefix)).delimiter("/");
        request.into_paginator().send().try_collect().await.map_err(refused("listing", prefix))
    }
}

/// Converts a checksum to S3's format.
fn base64_of_hex(hex: &str) -> Option<String> {
    let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok());
    bytes.collect::<Option<Vec<u8>>>().map(|bytes| BASE64_STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_converted_to_base_64() {
        assert_eq!(base64_of_hex("00ff10").as_deref(), Some("AP8Q"));
        assert_eq!(base64_of_hex("0"), None);
        assert_eq!(base64_of_hex("zz"), None);
    }
}
