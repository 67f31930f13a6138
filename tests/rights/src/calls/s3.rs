//! The actions and resources of S3's operations on objects.
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html>

use super::CallError;
use crate::{access::Access, names::bucket_arn};

pub fn accesses(method: &str, path: &str, query: &str, absent: bool) -> Result<Vec<Access>, CallError> {
    let unknown = || CallError::Operation(format!("s3: {method} {path}?{query}"));
    let (bucket, key) = place(path).ok_or_else(unknown)?;
    let named = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
    // Subresources require separate actions. Uploading parts requires the right to write.
    let others = ["acl", "tagging", "versionId", "versions", "policy", "retention", "legal-hold", "attributes"];
    if others.into_iter().any(named) {
        return Err(unknown());
    }
    let object = |action: &str| Access::new(action, format!("{}/{key}", bucket_arn(&bucket)));
    let access = match (method, key.is_empty()) {
        ("GET", true) if named("list-type") || query.is_empty() => Access::new("s3:ListBucket", bucket_arn(&bucket)),
        ("HEAD", true) => Access::new("s3:ListBucket", bucket_arn(&bucket)),
        ("GET" | "HEAD", false) => object("s3:GetObject"),
        ("PUT", false) => object("s3:PutObject"),
        ("POST", false) if named("uploads") || named("uploadId") => object("s3:PutObject"),
        ("DELETE", false) if named("uploadId") => object("s3:AbortMultipartUpload"),
        ("DELETE", false) => object("s3:DeleteObject"),
        _ => return Err(unknown()),
    };
    // Without this right, S3 responds with 403 instead of 404.
    // <https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html>
    let sees_absence = absent.then(|| Access::new("s3:ListBucket", bucket_arn(&bucket)));
    Ok([Some(access), sees_absence].into_iter().flatten().collect())
}

fn place(path: &str) -> Option<(String, String)> {
    let (bucket, key) = path.strip_prefix('/')?.split_once('/').unwrap_or((path.strip_prefix('/')?, ""));
    (!bucket.is_empty()).then(|| (decoded(bucket), decoded(key)))
}

fn decoded(text: &str) -> String {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(octet) if *first == b'%' => {
                octets.push(octet);
                rest = &after[2..];
            }
            _ => {
                octets.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&octets).into_owned()
}
