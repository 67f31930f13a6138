//! Comparing a template's grants with the recorded calls: calls without a grant, unused grants, and grants that are
//! broader than needed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use crate::{
    access::Access,
    calls::{Call, accesses},
    decision::{Decision, Use},
    grant::Grant,
    names::without_suffix,
    rights::{FunctionRights, Rights},
};

/// The placeholder for identifiers in recorded partition keys, such as `ENT#{id}`. `local` writes this placeholder.
pub const IDENTIFIER: &str = "{id}";

/// The calls, and the grants in a template that allow them.
#[derive(Debug, Default)]
pub struct Review {
    faults: BTreeSet<Misfit>,
    of_functions: HashMap<String, BTreeMap<Use, Uses>>,
}

/// A mismatch between grants and calls.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misfit {
    /// A call that no grant allows.
    Lacking {
        /// The function's name.
        function: String,
        /// The access that lacks a grant.
        access: Access,
    },
    /// A call that IAM's rules cannot be applied to.
    Unread {
        /// The function's name.
        function: String,
        /// The call's operation.
        call: String,
        /// Why the rules cannot be applied.
        error: String,
    },
    /// A grant that no call used.
    Unused(Grant),
    /// A grant that is broader than needed.
    Wider {
        /// The grant that is too broad.
        grant: Grant,
        /// The grant that would suffice.
        enough: String,
    },
}

/// How one part of a grant was used.
#[derive(Debug, Default)]
struct Uses {
    actions: BTreeSet<String>,
    /// Whether a request without a partition key used it.
    without_keys: bool,
    /// The partition keys in requests that this part covers; if it names no key, all of them.
    keys: BTreeSet<String>,
    /// The requested resources, each with the pattern that covers it in the deployment.
    resources: BTreeMap<String, BTreeSet<String>>,
}

impl Review {
    /// Decides on a call, and records the grants that it used.
    pub fn add(&mut self, rights: &Rights, call: &Call) {
        let function = &call.function;
        let asked = match accesses(rights, &call.request) {
            Ok(asked) => asked,
            Err(error) => {
                let call = call.request.to_string();
                let error = error.to_string();
                self.faults.insert(Misfit::Unread { function: function.clone(), call, error });
                return;
            }
        };
        asked.into_iter().for_each(|access| self.decide(rights, function, access));
    }

    fn decide(&mut self, rights: &Rights, function: &str, access: Access) {
        match rights.function(function).map(|rights| (rights, rights.decide(&access))) {
            Some((rights, Decision::Allowed(uses))) => {
                let known = self.of_functions.entry(function.to_owned()).or_default();
                uses.iter().for_each(|part| known.entry(*part).or_default().add(rights, *part, &access));
            }
            _ => {
                self.faults.insert(Misfit::Lacking { function: function.to_owned(), access });
            }
        }
    }

    /// All mismatches between the calls and the grants of these rights.
    #[must_use]
    pub fn misfits(&self, rights: &Rights) -> Vec<Misfit> {
        let mut misfits: Vec<_> = self.faults.iter().cloned().collect();
        for function in rights.functions() {
            let known = self.of_functions.get(&function.name);
            misfits.extend(function.parts().filter_map(|part| {
                let grant = function.grant(part);
                let Some(uses) = known.and_then(|known| known.get(&part)) else {
                    return Some(Misfit::Unused(grant));
                };
                let enough = uses.enough(&grant, function.key_pattern(part))?;
                Some(Misfit::Wider { grant, enough })
            }));
        }
        misfits
    }
}

impl Uses {
    fn add(&mut self, function: &FunctionRights, part: Use, access: &Access) {
        self.actions.insert(access.action.clone());
        let keys = access.leading_keys.as_deref().unwrap_or_default();
        self.without_keys |= keys.is_empty();
        match part.key {
            None => self.keys.extend(keys.iter().cloned()),
            Some(_) => self.keys.extend(function.keys_for(part, access).map(str::to_owned)),
        }
        let resources = self.resources.entry(function.resource_pattern(part).to_owned()).or_default();
        resources.insert(without_suffix(&access.resource).to_owned());
    }

    /// The grant that would suffice, if this one is broader.
    fn enough(&self, grant: &Grant, key: Option<&str>) -> Option<String> {
        if grant.action.contains(['*', '?']) {
            return Some(self.actions.iter().cloned().collect::<Vec<_>>().join(", "));
        }
        // A pattern for keys of any kind also covers other functions' keys.
        let is_of_any_kind = key.map_or(!self.without_keys, |key| kind(key).contains(['*', '?']));
        if is_of_any_kind {
            let kinds: BTreeSet<_> = self.keys.iter().map(|key| kind(key)).collect();
            let kinds =
                kinds.iter().map(|kind| if kind.ends_with('#') { format!("{kind}*") } else { (*kind).to_owned() });
            return Some(format!("the partition keys {}", kinds.collect::<Vec<_>>().join(", ")));
        }
        let of_keys = key.and_then(|pattern| narrower(&self.keys, pattern, true));
        of_keys.or_else(|| self.resources.iter().find_map(|(pattern, used)| narrower(used, pattern, false)))
    }
}

/// A pattern that covers all these strings, if it is narrower than the given one. The common prefix ends at a
/// separator, so that it does not contain the name of an entity, webhook or object. A single string without such a name
/// is one item, such as `REVOKED#DAY`.
fn narrower(texts: &BTreeSet<String>, pattern: &str, is_key: bool) -> Option<String> {
    // An operation without resources, such as listing all secrets, requires a right for `*`.
    if texts.contains(pattern) {
        return None;
    }
    let wildcard = pattern.find(['*', '?'])?;
    // The strings are sorted, so a prefix of both the first and the last is a prefix of all.
    let first = texts.first()?;
    let last = texts.last()?;
    let alike = first.char_indices().zip(last.chars()).find(|((_, one), other)| one != other);
    let shared = &first[..alike.map_or(first.len(), |((place, _), _)| place)];
    let beginning = &shared[..shared.find(IDENTIFIER).unwrap_or(shared.len())];
    let rest = beginning.get(wildcard..)?;
    let is_name = is_key && !rest.bytes().all(|byte| byte.is_ascii_uppercase());
    if texts.len() == 1 && beginning.len() == first.len() && !is_name {
        return Some(beginning.to_owned());
    }
    let separators: &[char] = if is_key { &['#'] } else { &['/', ':', '-'] };
    let end = wildcard + rest.rfind(separators)?;
    Some(format!("{}*", &beginning[..=end]))
}

/// The first part of a partition key.
fn kind(key: &str) -> &str {
    key.find('#').map_or(key, |end| &key[..=end])
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacking { function, access: Access { action, resource, leading_keys } } => {
                write!(f, "{function} lacks the right {action} on {resource}")?;
                match leading_keys {
                    Some(keys) => write!(f, " for the key {}", keys.join(", ")),
                    None => Ok(()),
                }
            }
            Self::Unread { function, call, error } => {
                write!(f, "{function} made the call {call}, which cannot be decided: {error}")
            }
            Self::Unused(grant) => write!(f, "no call used the grant {grant}"),
            Self::Wider { grant, enough } => {
                write!(f, "the grant {grant} was used for {enough} only, and should name no more")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;
    use template::Template;

    use super::*;
    use crate::{Deployed, calls::Request};

    const TEMPLATE: &str = r"
Globals: {Function: {Timeout: 15, MemorySize: 256}}
Resources:
  Token:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: target/lambda/token
      Policies:
        - Statement:
            - Effect: Allow
              Action: [dynamodb:GetItem, dynamodb:UpdateItem]
              Resource: !GetAtt Table.Arn
              Condition: {'ForAllValues:StringLike': {'dynamodb:LeadingKeys': ['ENT#*', 'REVOKED#DAY']}}
            - Effect: Allow
              Action: dynamodb:Query
              Resource: !Sub '${Table.Arn}/index/byDue'
              Condition: {'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': [JOBS]}}
            - {Effect: Allow, Action: sqs:SendMessage, Resource: !GetAtt Queue.Arn}
            - Effect: Allow
              Action: secretsmanager:GetSecretValue
              Resource: !Sub 'arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:provider-*'
  Table:
    Type: AWS::DynamoDB::Table
    Properties: {KeySchema: [{AttributeName: pk, KeyType: HASH}], AttributeDefinitions: []}
  Queue: {Type: AWS::SQS::Queue}
  Other: {Type: AWS::SQS::Queue}
";

    fn rights(template: &str) -> Rights {
        let [region, account, table, bucket] = ["r", "1", "things", "files"].map(str::to_owned);
        let deployed = Deployed { region, account, table, bucket, parameters: BTreeMap::new() };
        Rights::read(&Template::parse(template).expect("a template"), deployed).expect("understood")
    }

    fn asked(action: &str, resource: &str, keys: &[&str]) -> Access {
        let access = Access::new(action, resource);
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        if keys.is_empty() { access } else { access.with_keys(keys) }
    }

    /// Accesses that make full use of every grant in the template.
    fn calls() -> Vec<Access> {
        let table = "arn:aws:dynamodb:r:1:table/things";
        let index = format!("{table}/index/byDue");
        let secret = |name: &str| {
            asked("secretsmanager:GetSecretValue", &format!("arn:aws:secretsmanager:r:1:secret:{name}"), &[])
        };
        let both = ["dynamodb:GetItem", "dynamodb:UpdateItem"].into_iter();
        let of_table = both.flat_map(|action| {
            [&["ENT#{id}", "REVOKED#DAY"][..], &["ENT#{id}"]].map(|keys| asked(action, table, keys))
        });
        of_table
            .chain([asked("dynamodb:Query", &index, &["JOBS"]), asked("sqs:SendMessage", "arn:aws:sqs:r:1:Queue", &[])])
            .chain(["provider-a-local0", "provider-b-local0"].map(secret))
            .collect()
    }

    /// The mismatches after one part of the template is replaced.
    fn said(from: &str, to: &str) -> Vec<String> {
        let changed = TEMPLATE.replacen(from, to, 1);
        assert!(from == to || changed != TEMPLATE, "{from}");
        let rights = rights(&changed);
        let mut review = Review::default();
        calls().into_iter().for_each(|access| review.decide(&rights, "token", access));
        let of_logs = |misfit: &&Misfit| matches!(misfit, Misfit::Unused(grant) if grant.action.starts_with("logs:"));
        review.misfits(&rights).iter().filter(|misfit| !of_logs(misfit)).map(ToString::to_string).collect()
    }

    #[test]
    fn grants_that_fit_the_calls_are_not_named() {
        assert_eq!(said("Token", "Token"), Vec::<String>::new());
    }

    #[test]
    fn a_right_that_has_no_resource_is_not_too_wide() {
        let changed = TEMPLATE.replacen("sqs:SendMessage", "secretsmanager:ListSecrets", 1);
        let rights = rights(&changed.replacen("!GetAtt Queue.Arn", "'*'", 1));
        let mut review = Review::default();
        review.decide(&rights, "token", asked("secretsmanager:ListSecrets", "*", &[]));
        let misfits: Vec<_> = review.misfits(&rights).iter().map(ToString::to_string).collect();
        assert!(!misfits.iter().any(|misfit| misfit.contains("ListSecrets")), "{misfits:#?}");
    }

    #[test]
    fn a_narrowed_grant_is_named_by_function_right_and_key() {
        let table = "arn:aws:dynamodb:r:1:table/things";
        let item = format!("dynamodb:GetItem on {table} for the key ENT#{{id}}");
        for (from, to, expected) in [
            ("dynamodb:GetItem, ", "", item.clone()),
            ("'ENT#*'", "'ENT#hotel-*'", item.clone()),
            ("StringLike", "StringEquals", item.clone()),
            (", 'REVOKED#DAY'", "", format!("{item}, REVOKED#DAY")),
            ("index/byDue", "index/byEntity", format!("dynamodb:Query on {table}/index/byDue for the key JOBS")),
            ("!GetAtt Queue.Arn", "!GetAtt Other.Arn", "sqs:SendMessage on arn:aws:sqs:r:1:Queue".to_owned()),
            (
                "provider-*",
                "provider-a*",
                "secretsmanager:GetSecretValue on arn:aws:secretsmanager:r:1:secret:provider-b-local0".to_owned(),
            ),
        ] {
            let said = said(from, to);
            assert!(said.contains(&format!("token lacks the right {expected}")), "{from} to {to}: {said:#?}");
        }
    }

    #[test]
    fn a_widened_grant_is_named_by_function_right_and_key() {
        let one = "['ENT#*', 'REVOKED#DAY']";
        let condition = "'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': [JOBS]}";
        let index = "${Table.Arn}/index/byDue";
        for (from, to, grant, said) in [
            // Rights that are not needed.
            (
                "dynamodb:UpdateItem]",
                "dynamodb:UpdateItem, dynamodb:Scan]",
                "dynamodb:Scan on ${Table.Arn} for ENT#*",
                "no call used",
            ),
            (one, "['ENT#*', 'REVOKED#DAY', 'APP#*']", "dynamodb:GetItem on ${Table.Arn} for APP#*", "no call used"),
            (
                "!GetAtt Queue.Arn",
                "[!GetAtt Queue.Arn, !GetAtt Other.Arn]",
                "sqs:SendMessage on ${Other.Arn}",
                "no call used",
            ),
            // Wildcards that are too broad.
            ("dynamodb:Query", "dynamodb:*", &format!("dynamodb:* on {index} for JOBS"), "for dynamodb:Query only"),
            ("'ENT#*'", "'E*'", "dynamodb:GetItem on ${Table.Arn} for E*", "for the partition keys ENT#* only"),
            (one, "['*']", "dynamodb:GetItem on ${Table.Arn} for *", "for the partition keys ENT#*, REVOKED#* only"),
            ("'REVOKED#DAY'", "'REVOKED#*'", "dynamodb:GetItem on ${Table.Arn} for REVOKED#*", "for REVOKED#DAY only"),
            (
                "Equals': {'dynamodb:LeadingKeys': [JOBS]",
                "Like': {'dynamodb:LeadingKeys': ['JOBS*']",
                "for JOBS*",
                "for the partition keys JOBS only",
            ),
            ("index/byDue", "index/*", "on ${Table.Arn}/index/* for JOBS", "/index/byDue only"),
            ("!GetAtt Queue.Arn", "'*'", "sqs:SendMessage on *", "for arn:aws:sqs:r:1:Queue only"),
            ("secret:provider-*", "secret:*", "secretsmanager:GetSecretValue on ", ":secret:provider-* only"),
            // Conditions that do not limit the keys.
            (&format!("\n              Condition: {{{condition}}}"), "", index, "for the partition keys JOBS only"),
            (condition, "'Null': {'dynamodb:LeadingKeys': 'false'}", index, "for the partition keys JOBS only"),
            (
                "ForAllValues:StringLike",
                "ForAnyValue:StringLike",
                "on ${Table.Arn} (",
                "for the partition keys ENT#*, REVOKED#* only",
            ),
        ] {
            let sentences = self::said(from, to);
            let named = sentences.iter().any(|sentence| {
                sentence.contains("the grant token: ") && sentence.contains(grant) && sentence.contains(said)
            });
            assert!(named, "{from} to {to}: {sentences:#?}");
        }
    }

    #[test]
    fn ungranted_and_unknown_calls_are_named() {
        let rights = rights(TEMPLATE);
        let call = |target: &str, body: serde_json::Value| Call {
            function: "token".to_owned(),
            request: Request::Json { target: target.to_owned(), body },
        };
        let key = json!({ "pk": { "S": "APP#{id}" } });
        let mut review = Review::default();
        review.add(&rights, &call("DynamoDB_20120810.GetItem", json!({ "TableName": "things", "Key": key })));
        review.add(&rights, &call("DynamoDB_20120810.ImportTable", json!({})));
        let said: Vec<_> = review.misfits(&rights).iter().map(ToString::to_string).collect();
        let sentences = [
            "token lacks the right dynamodb:GetItem on arn:aws:dynamodb:r:1:table/things for the key APP#{id}",
            "token made the call DynamoDB_20120810.ImportTable, which cannot be decided: \
             the operation dynamodb:ImportTable is unknown",
        ];
        assert_eq!(&said[..2], &sentences);
    }

    proptest! {
        #[test]
        fn sufficient_grants_cover_every_use_and_are_narrower(
            keys in prop::collection::btree_set("ENT#([ab]{1,3}|\\{id\\})(#(DAY|[ab]))?", 1..5),
        ) {
            if let Some(enough) = narrower(&keys, "ENT#*", true) {
                prop_assert!(keys.iter().all(|key| crate::pattern::matches(&enough, key)), "{enough}");
                prop_assert!(enough.len() > "ENT#*".len(), "{enough}");
            }
        }
    }
}
