//! Changes of template.yaml's grants as a person makes them by hand: each is found, and named by function, right and
//! key. The narrowed ones are tried in a bundle; all of them are decided on the calls that the tests have made.

use std::collections::BTreeSet;

use super::rights::Whole;

/// A change of one function's grants.
pub struct Change {
    /// What the template calls the function.
    resource: &'static str,
    /// The function's name.
    pub function: &'static str,
    from: &'static str,
    to: &'static str,
    /// What one sentence says of it: the right, and the key or the resource.
    said: [&'static str; 2],
}

impl Change {
    const fn of(
        resource: &'static str,
        function: &'static str,
        [from, to]: [&'static str; 2],
        said: [&'static str; 2],
    ) -> Self {
        Self { resource, function, from, to, said }
    }

    /// The template with this change.
    pub fn apply(&self, template: &str) -> Result<String, String> {
        let Self { resource, from, to, .. } = self;
        let head = format!("\n  {resource}:\n");
        let start = template.find(&head).map(|place| place + head.len());
        let (before, rest) = template.split_at(start.ok_or_else(|| format!("template.yaml has no {resource}"))?);
        let end = rest.find("\n\n").unwrap_or(rest.len());
        let changed = rest[..end].replacen(from, to, 1);
        if changed == rest[..end] {
            return Err(format!(
                "{resource} has no `{from}` that could be changed by hand; choose another change of a grant"
            ));
        }
        Ok(format!("{before}{changed}{}", &rest[end..]))
    }

    /// Whether a sentence names the change.
    pub fn is_named_by(&self, sentence: &str) -> bool {
        let words = || sentence.split(|character: char| character.is_whitespace() || character == ':');
        words().any(|word| word == self.function) && self.said.iter().all(|said| sentence.contains(said))
    }
}

/// Rights that are taken away.
pub const NARROWED: [Change; 5] = [
    // An action.
    Change::of(
        "RecoverDeliveries",
        "recover-deliveries",
        ["[dynamodb:GetItem, dynamodb:PutItem]", "dynamodb:PutItem"],
        ["lacks the right dynamodb:GetItem on ", " for the key JOB#"],
    ),
    // Some of the partition keys.
    Change::of(
        "PublishEvent",
        "publish-event",
        ["['ENT#*']", "['ENT#hotel-*']"],
        ["lacks the right dynamodb:Query on ", " for the key ENT#"],
    ),
    // A resource, for another one.
    Change::of(
        "ListWebhooks",
        "list-webhooks",
        ["!GetAtt Table.Arn", "!Sub ${Table.Arn}/index/byDue"],
        ["lacks the right dynamodb:Query on ", " for the key ENT#"],
    ),
    // A queue.
    Change::of(
        "TestWebhook",
        "test-webhook",
        ["[!GetAtt DeliveryQueue.Arn, !GetAtt SlowDeliveryQueue.Arn]", "!GetAtt SlowDeliveryQueue.Arn"],
        ["lacks the right sqs:SendMessage on ", ":DeliveryQueue"],
    ),
    // A secret.
    Change::of(
        "CreateApplication",
        "create-application",
        ["!Ref ClientSecretPepper", "!Ref SigningKey"],
        ["lacks the right secretsmanager:GetSecretValue on ", "client-secret-pepper"],
    ),
];

/// Rights that are added.
const WIDENED: [Change; 8] = [
    // An action.
    Change::of(
        "TokenKeys",
        "token-keys",
        ["Action: dynamodb:GetItem", "Action: [dynamodb:GetItem, dynamodb:DeleteItem]"],
        ["no call used the grant token-keys: dynamodb:DeleteItem on ", " for KEYS "],
    ),
    // All actions.
    Change::of(
        "ListDeliveries",
        "list-deliveries",
        ["dynamodb:Query", "dynamodb:*"],
        ["the grant list-deliveries: dynamodb:* on ", " was used for dynamodb:Query only"],
    ),
    // All partition keys.
    Change::of(
        "ProviderStart",
        "provider-start",
        ["['STATE#*']", "['*']"],
        ["the grant provider-start: dynamodb:GetItem on ", " was used for the partition keys STATE#* only"],
    ),
    // A condition less.
    Change::of(
        "ListConnections",
        "list-connections",
        ["Condition: {'ForAllValues:StringLike': {'dynamodb:LeadingKeys': ['ENT#*']}}", ""],
        ["the grant list-connections: dynamodb:Query on ", " was used for the partition keys ENT#* only"],
    ),
    // A condition that lets other keys pass beside one of these.
    Change::of(
        "WebhookStats",
        "webhook-stats",
        ["ForAllValues", "ForAnyValue"],
        ["the grant webhook-stats: dynamodb:BatchGetItem on ", " was used for the partition keys ENT#* only"],
    ),
    // The partition keys of another function.
    Change::of(
        "ListApplications",
        "list-applications",
        ["['APPS#*']", "['APPS#*', 'ENT#*']"],
        ["no call used the grant list-applications: dynamodb:Query on ", " for ENT#* "],
    ),
    // Another item.
    Change::of(
        "RemoveApplication",
        "remove-application",
        ["StringEquals': {'dynamodb:LeadingKeys': [REVOKED]", "StringLike': {'dynamodb:LeadingKeys': ['REV*']"],
        ["the grant remove-application: dynamodb:PutItem on ", " was used for REVOKED only"],
    ),
    // Another queue.
    Change::of(
        "ResendDelivery",
        "resend-delivery",
        ["Resource: !GetAtt DeliveryQueue.Arn", "Resource: [!GetAtt DeliveryQueue.Arn, !GetAtt RejectedEvents.Arn]"],
        ["no call used the grant resend-delivery: sqs:SendMessage on ", "${RejectedEvents.Arn}"],
    ),
];

/// The changes of functions whose tests have all run that the end of the run would not name; `faults` says what it
/// finds in a template.
pub fn unnoticed(
    template: &str,
    whole: &Whole,
    faults: &dyn Fn(&str) -> Result<BTreeSet<String>, String>,
) -> Vec<String> {
    let changes: Vec<_> = NARROWED.iter().chain(&WIDENED).filter(|change| whole.has(change.function)).collect();
    if changes.is_empty() {
        return Vec::new();
    }
    let before = match faults(template) {
        Ok(before) => before,
        Err(fault) => return vec![fault],
    };
    let fault = |change: &Change| {
        let found = match change.apply(template).and_then(|changed| faults(&changed)) {
            Ok(found) => found,
            Err(fault) => return Some(fault),
        };
        let new: Vec<_> = found.difference(&before).collect();
        let is_named = new.iter().any(|sentence| change.is_named_by(sentence));
        let is_alone = new.iter().all(|sentence| sentence.contains(change.function));
        let Change { resource, from, to, .. } = change;
        (!is_named || !is_alone).then(|| format!("nothing names {resource}'s `{to}` in place of `{from}`, but {new:?}"))
    };
    changes.into_iter().filter_map(fault).collect()
}
