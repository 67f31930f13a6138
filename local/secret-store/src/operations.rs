//! The operations, with their requests and responses.
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_Operations.html>

use std::collections::BTreeSet;

use base::{Time, random};
use serde::{Deserialize, de::DeserializeOwned, de::IgnoredAny};
use serde_json::{Map, Value, json};

use crate::{
    refusal::Refusal,
    secret::{CURRENT, Secret},
    store::{SecretStore, Secrets},
};

/// Secrets Manager's limits.
const LONGEST_TEXT: usize = 65_536;
const LONGEST_LABEL: usize = 256;
const MOST_LABELS: usize = 20;
const TOKEN_LENGTH: std::ops::RangeInclusive<usize> = 32..=64;
const RECOVERY_DAYS: std::ops::RangeInclusive<u64> = 7..=30;
const LONGEST_PAGE: usize = 100;

pub fn carry_out(store: &SecretStore, operation: &str, body: &[u8]) -> Result<Value, Refusal> {
    let mut call = Call { store, secrets: store.secrets() };
    match operation {
        "CreateSecret" => call.create(read(body)?),
        "DeleteSecret" => call.delete(read(body)?),
        "DescribeSecret" => call.describe(read(body)?),
        "GetSecretValue" => call.get(read(body)?),
        "ListSecrets" => call.list(read(body)?),
        "PutSecretValue" => call.put(read(body)?),
        "RotateSecret" => call.rotate(read(body)?),
        "UpdateSecretVersionStage" => call.update_stage(read(body)?),
        other => Err(Refusal::Operation(other.to_owned())),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|_| Refusal::Form)
}

/// One operation on the secrets.
struct Call<'a> {
    store: &'a SecretStore,
    secrets: Secrets<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Named {
    secret_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Get {
    secret_id: String,
    version_id: Option<String>,
    version_stage: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Create {
    name: String,
    #[serde(flatten)]
    content: Content,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Put {
    secret_id: String,
    version_stages: Option<BTreeSet<String>>,
    #[serde(flatten)]
    content: Content,
}

/// A new value, and its version's identifier.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Content {
    client_request_token: Option<String>,
    secret_string: Option<String>,
    secret_binary: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UpdateStage {
    secret_id: String,
    version_stage: String,
    move_to_version_id: Option<String>,
    remove_from_version_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Delete {
    secret_id: String,
    recovery_window_in_days: Option<u64>,
    #[serde(default)]
    force_delete_without_recovery: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct List {
    #[serde(default)]
    include_planned_deletion: bool,
    #[serde(default)]
    filters: Vec<Filter>,
    #[serde(flatten)]
    page: Page,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Filter {
    key: String,
    values: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    max_results: Option<usize>,
    next_token: Option<String>,
}

impl Call<'_> {
    fn get(&mut self, asked: Get) -> Result<Value, Refusal> {
        let name = self.name_of(&asked.secret_id)?;
        let version = self.secrets.usable(&name)?.asked(asked.version_id.as_deref(), asked.version_stage.as_deref())?;
        let value = json!({
            "ARN": self.store.arn(&name), "Name": self.store.full_name(&name),
            "VersionId": version.id, "VersionStages": version.labels,
            "SecretString": version.text, "CreatedDate": seconds(version.created),
        });
        Ok(value)
    }

    fn create(&mut self, asked: Create) -> Result<Value, Refusal> {
        let Some(name) = self.store.name_of(&asked.name).filter(|_| !asked.name.starts_with("arn:")) else {
            let pattern = self.store.full_name("NAME");
            return Err(Refusal::Parameter(format!(
                "A secret's name must be {pattern}, where NAME has at most 200 letters, digits and characters of \
                 _+=.@- and does not begin with a dot."
            )));
        };
        let name = name.to_owned();
        let (id, text) = self.content(asked.content)?;
        let now = self.secrets.now;
        let mut secret = Secret::new(now);
        match (self.secrets.present(&name)?, &text) {
            (Some(present), _) if present.deletion.is_some() => return Err(Refusal::NameMarkedForDeletion),
            // A repeated request gets the same response as the first.
            (Some(present), Some(text)) if present.version(&id).is_some_and(|version| version.text == *text) => {}
            (Some(_), _) => return Err(Refusal::SecretExists(asked.name)),
            (None, Some(text)) => {
                secret.put(&id, text.clone(), BTreeSet::from([CURRENT.to_owned()]), now)?;
                self.secrets.keep(&name, secret)?;
            }
            (None, None) => {
                self.secrets.keep(&name, secret)?;
                return Ok(self.named(&name));
            }
        }
        Ok(with(self.named(&name), json!({ "VersionId": id })))
    }

    fn put(&mut self, asked: Put) -> Result<Value, Refusal> {
        let name = self.name_of(&asked.secret_id)?;
        let labels = asked.version_stages.unwrap_or_else(|| BTreeSet::from([CURRENT.to_owned()]));
        let is_good = |label: &String| (1..=LONGEST_LABEL).contains(&label.len());
        if !(1..=MOST_LABELS).contains(&labels.len()) || !labels.iter().all(is_good) {
            return Err(Refusal::Parameter(format!(
                "VersionStages must have 1 to {MOST_LABELS} labels of 1 to {LONGEST_LABEL} characters."
            )));
        }
        let (id, text) = self.content(asked.content)?;
        let text = text.ok_or(Refusal::NoValue)?;
        let now = self.secrets.now;
        let secret = self.change(&name, |secret| secret.put(&id, text, labels, now))?;
        let labels = secret.version(&id).map(|version| version.labels.clone()).unwrap_or_default();
        Ok(with(self.named(&name), json!({ "VersionId": id, "VersionStages": labels })))
    }

    fn update_stage(&mut self, asked: UpdateStage) -> Result<Value, Refusal> {
        let name = self.name_of(&asked.secret_id)?;
        let to = asked.move_to_version_id.as_deref();
        let from = asked.remove_from_version_id.as_deref();
        let label = asked.version_stage.as_str();
        let now = self.secrets.now;
        if !(1..=LONGEST_LABEL).contains(&label.len()) {
            return Err(Refusal::Parameter(format!("VersionStage must have 1 to {LONGEST_LABEL} characters.")));
        }
        if to.or(from).is_none() {
            return Err(Refusal::Parameter("You must specify MoveToVersionId or RemoveFromVersionId.".to_owned()));
        }
        self.change(&name, |secret| secret.move_label(label, to, from, now))?;
        Ok(self.named(&name))
    }

    fn describe(&mut self, asked: Named) -> Result<Value, Refusal> {
        let name = self.name_of(&asked.secret_id)?;
        let secret = self.secrets.present(&name)?.ok_or(Refusal::NoSecret)?;
        let dates = dates(secret);
        let labels = labels_of(secret);
        Ok(with(with(self.named(&name), dates), json!({ "VersionIdsToStages": labels })))
    }

    fn list(&mut self, asked: List) -> Result<Value, Refusal> {
        // A filter by name matches prefixes; `!` before a value negates it.
        if asked
            .filters
            .iter()
            .any(|filter| filter.key != "name" || filter.values.iter().any(|text| text.starts_with('!')))
        {
            return Err(Refusal::Unsupported("A filter other than a prefix of the name"));
        }
        let mut found = Vec::new();
        let is_wanted = |name: &str| {
            let full_name = self.store.full_name(name);
            asked.filters.iter().all(|filter| filter.values.iter().any(|text| full_name.starts_with(text)))
        };
        let mut names = self.secrets.names()?;
        names.retain(|name| is_wanted(name));
        for name in names {
            let secret = self.secrets.present(&name)?;
            if let Some(secret) = secret.filter(|secret| asked.include_planned_deletion || secret.deletion.is_none()) {
                let shown = with(dates(secret), json!({ "SecretVersionsToStages": labels_of(secret) }));
                found.push((name.clone(), with(self.named(&name), shown)));
            }
        }
        let (page, next) = asked.page.of(found)?;
        Ok(with(json!({ "SecretList": page }), next))
    }

    fn delete(&mut self, asked: Delete) -> Result<Value, Refusal> {
        let name = self.name_of(&asked.secret_id)?;
        let force = asked.force_delete_without_recovery;
        let days = asked.recovery_window_in_days;
        if force && days.is_some() {
            let said = "You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.";
            return Err(Refusal::Parameter(said.to_owned()));
        }
        let days = days.unwrap_or(*RECOVERY_DAYS.end());
        if !RECOVERY_DAYS.contains(&days) {
            let said = "RecoveryWindowInDays value must be between 7 and 30 days (inclusive).";
            return Err(Refusal::Parameter(said.to_owned()));
        }
        let now = self.secrets.now;
        let deletion = if force {
            // Removing a missing secret also succeeds.
            self.secrets.remove(&name)?;
            now
        } else {
            self.change(&name, |secret| Ok(secret.schedule_deletion(days, now)))?;
            now + std::time::Duration::from_secs(days * 24 * 60 * 60)
        };
        Ok(with(self.named(&name), json!({ "DeletionDate": seconds(deletion) })))
    }

    /// Refuses a rotation: no function is configured for it, and the operator's program performs the rotation's steps.
    fn rotate(&mut self, asked: Named) -> Result<Value, Refusal> {
        let name = self.name_of(&asked.secret_id)?;
        self.secrets.usable(&name)?;
        Err(Refusal::NoRotation)
    }

    /// The name in the folder of the requested secret.
    fn name_of(&self, id: &str) -> Result<String, Refusal> {
        self.store.name_of(id).map(str::to_owned).ok_or(Refusal::NoSecret)
    }

    /// Changes a usable secret, and returns its new state.
    fn change<T>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Secret) -> Result<T, Refusal>,
    ) -> Result<Secret, Refusal> {
        let mut secret = self.secrets.usable(name)?.clone();
        change(&mut secret)?;
        self.secrets.keep(name, secret.clone())?;
        Ok(secret)
    }

    /// The new version's identifier, and its value.
    fn content(&self, content: Content) -> Result<(String, Option<String>), Refusal> {
        if content.secret_binary.is_some() {
            return Err(Refusal::Unsupported("SecretBinary"));
        }
        if content.secret_string.as_ref().is_some_and(|text| !(1..=LONGEST_TEXT).contains(&text.len())) {
            return Err(Refusal::Parameter(format!("SecretString must have 1 to {LONGEST_TEXT} bytes.")));
        }
        let id = content.client_request_token.unwrap_or_else(|| random::uuid(self.store.random().as_ref()));
        if !TOKEN_LENGTH.contains(&id.len()) {
            return Err(Refusal::Parameter("ClientRequestToken must be 32-64 characters long.".to_owned()));
        }
        Ok((id, content.secret_string))
    }

    fn named(&self, name: &str) -> Value {
        json!({ "ARN": self.store.arn(name), "Name": self.store.full_name(name) })
    }
}

impl Page {
    /// The items on this page, and an object with the token for the next page, if there is one. `items` contains all
    /// items, ordered by key.
    fn of(&self, items: Vec<(String, Value)>) -> Result<(Vec<Value>, Value), Refusal> {
        let most = self.max_results.unwrap_or(LONGEST_PAGE);
        if !(1..=LONGEST_PAGE).contains(&most) {
            return Err(Refusal::Parameter(format!("MaxResults must be 1 to {LONGEST_PAGE}.")));
        }
        let after = |key: &String| self.next_token.as_ref().is_none_or(|token| key > token);
        let mut page: Vec<_> = items.into_iter().filter(|(key, _)| after(key)).take(most + 1).collect();
        let has_more = page.len() > most;
        page.truncate(most);
        let last = page.last().map(|(key, _)| key.clone()).filter(|_| has_more);
        let next = last.map_or_else(|| json!({}), |last| json!({ "NextToken": last }));
        Ok((page.into_iter().map(|(_, item)| item).collect(), next))
    }
}

fn dates(secret: &Secret) -> Value {
    let deletion = secret.deletion.map_or_else(|| json!({}), |deletion| json!({ "DeletedDate": seconds(deletion) }));
    with(json!({ "CreatedDate": seconds(secret.created), "LastChangedDate": seconds(secret.changed) }), deletion)
}

/// The labels of each version that has any.
fn labels_of(secret: &Secret) -> Value {
    let labelled = secret.versions.iter().filter(|version| !version.labels.is_empty());
    labelled.map(|version| (version.id.clone(), json!(version.labels))).collect::<Map<_, _>>().into()
}

/// An object, extended with another object's members.
fn with(mut object: Value, more: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (object.as_object_mut(), more) {
        members.extend(more);
    }
    object
}

fn seconds(time: Time) -> f64 {
    time.as_millis() as f64 / 1000.0
}
