//! The table and the queues, in the form needed to create them.

use serde_json::{Value, json};

use crate::TemplateError;

/// A DynamoDB table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The table's name in the template.
    pub logical_id: String,
    /// The body of a `CreateTable` request, without the `TableName`.
    pub definition: Value,
    /// The attribute with an item's expiry, in seconds since 1970.
    pub expiry_attribute: Option<String>,
}

impl Table {
    pub(crate) fn read(logical_id: &str, properties: &Value) -> Result<Self, TemplateError> {
        let mut definition = json!({ "BillingMode": "PAY_PER_REQUEST" });
        for (name, required) in [("AttributeDefinitions", true), ("KeySchema", true), ("GlobalSecondaryIndexes", false)]
        {
            match properties.get(name) {
                Some(value) => definition[name] = value.clone(),
                None if required => {
                    return Err(TemplateError::Member { resource: logical_id.to_owned(), what: name });
                }
                None => {}
            }
        }
        let expiry = &properties["TimeToLiveSpecification"];
        Ok(Self {
            logical_id: logical_id.to_owned(),
            definition,
            expiry_attribute: (expiry["Enabled"] == true)
                .then(|| expiry["AttributeName"].as_str().map(str::to_owned))
                .flatten(),
        })
    }
}

/// An SQS queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// The queue's name in the template.
    pub logical_id: String,
    /// The queue's properties, with references yet to be resolved.
    pub properties: Value,
    /// The dead-letter queue, by logical id, and the number of receives before a message goes there.
    pub dead_letter: Option<(String, u64)>,
}

impl Queue {
    /// Properties that `CreateQueue` does not accept as attributes, or accepts in another form.
    const NOT_ATTRIBUTES: [&str; 3] = ["QueueName", "RedrivePolicy", "Tags"];

    pub(crate) fn read(logical_id: &str, properties: &Value) -> Self {
        let redrive = &properties["RedrivePolicy"];
        Self {
            logical_id: logical_id.to_owned(),
            properties: properties.clone(),
            dead_letter: redrive["deadLetterTargetArn"]["Fn::GetAtt"][0]
                .as_str()
                .zip(redrive["maxReceiveCount"].as_u64())
                .map(|(queue, receives)| (queue.to_owned(), receives)),
        }
    }

    /// The attributes of a `CreateQueue` request that need only the template: plain numbers and flags.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, String)> {
        self.properties
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| !Self::NOT_ATTRIBUTES.contains(&name.as_str()))
            .filter_map(|(name, value)| match value {
                Value::String(text) => Some((name.as_str(), text.clone())),
                Value::Number(_) | Value::Bool(_) => Some((name.as_str(), value.to_string())),
                _ => None,
            })
    }
}
