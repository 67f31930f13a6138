//! The values that the template's references have in a deployment: the ARNs of its resources.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use template::Reference;

/// The parts of ARNs that depend on the deployment.
#[derive(Debug, Clone)]
pub struct Deployed {
    /// The region.
    pub region: String,
    /// The account number.
    pub account: String,
    /// The table's name.
    pub table: String,
    /// The bucket's name.
    pub bucket: String,
    /// The values of the template's parameters.
    pub parameters: BTreeMap<String, String>,
}

/// The suffix of a secret's name in its ARN: a hyphen and six characters, which are random on AWS.
const SECRET_SUFFIX: &str = "-local0";

impl Deployed {
    /// The value of a reference, derived from the template's resources.
    pub(crate) fn value(&self, resources: &Map<String, Value>, reference: Reference<'_>) -> Option<Value> {
        let (name, attribute) = match reference {
            Reference::Name(name) => (name, None),
            Reference::Attribute(name, attribute) => (name, Some(attribute)),
        };
        let pseudo = match name {
            "AWS::Region" => Some(&*self.region),
            "AWS::AccountId" => Some(&*self.account),
            "AWS::Partition" => Some("aws"),
            _ => self.parameters.get(name).map(String::as_str),
        };
        if let (Some(text), None) = (pseudo, attribute) {
            return Some(text.into());
        }
        let resource = resources.get(name)?;
        let text = match (resource["Type"].as_str()?, attribute) {
            ("AWS::DynamoDB::Table", Some("Arn")) => self.table_arn(&self.table),
            ("AWS::DynamoDB::Table", None) => self.table.clone(),
            ("AWS::SQS::Queue", Some("Arn")) => self.queue_arn(name),
            ("AWS::S3::Bucket", Some("Arn")) => bucket_arn(&self.bucket),
            ("AWS::S3::Bucket", None) => self.bucket.clone(),
            ("AWS::SecretsManager::Secret", None) => {
                let lookup = |reference: Reference<'_>| self.value(resources, reference);
                let name = template::resolve_to_text(&resource["Properties"]["Name"], &lookup).ok()?;
                self.secret_arn(&name)
            }
            _ => return None,
        };
        Some(text.into())
    }

    /// The ARN of a table that a request names by name or ARN.
    pub(crate) fn table_arn(&self, table: &str) -> String {
        if table.starts_with("arn:") {
            return table.to_owned();
        }
        format!("arn:aws:dynamodb:{}:{}:table/{table}", self.region, self.account)
    }

    /// A queue's ARN.
    pub(crate) fn queue_arn(&self, queue: &str) -> String {
        format!("arn:aws:sqs:{}:{}:{queue}", self.region, self.account)
    }

    /// The ARN of a secret that a request names by name or ARN. The last six characters are the same for every secret,
    /// since the real ones are not known here.
    pub(crate) fn secret_arn(&self, secret: &str) -> String {
        let in_arn = secret.split_once(":secret:").and_then(|(_, name)| name.rsplit_once('-')).map(|(name, _)| name);
        let name = in_arn.unwrap_or(secret);
        format!("arn:aws:secretsmanager:{}:{}:secret:{name}{SECRET_SUFFIX}", self.region, self.account)
    }
}

/// A bucket's ARN.
pub(crate) fn bucket_arn(bucket: &str) -> String {
    format!("arn:aws:s3:::{bucket}")
}

/// An ARN without the suffix that the service appends to the name.
pub(crate) fn without_suffix(arn: &str) -> &str {
    arn.strip_suffix(SECRET_SUFFIX).unwrap_or(arn)
}
