//! Whether a template's grants fit the calls that were made: a call that nothing grants, a grant that no call used, and
//! a grant that is wider than its uses.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use crate::{
    access::{Access, Asked},
    decision::{Decision, Use},
    grant::Grant,
    names::without_suffix,
    rights::{FunctionRights, Rights},
};

/// Calls, and by which grants a template allows them.
#[derive(Debug, Default)]
pub struct Review {
    lacking: BTreeSet<Asked>,
    of_functions: HashMap<String, FunctionUses>,
}

/// A place where grants and calls do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// A call that nothing grants.
    Lacking(Asked),
    /// A grant that no call used.
    Unused(Grant),
    /// A grant that is wider than its uses.
    Wider {
        /// The grant.
        grant: Grant,
        /// What would have been enough.
        enough: String,
    },
}

/// What a function used.
#[derive(Debug, Default)]
struct FunctionUses {
    of_parts: BTreeMap<Use, Uses>,
    /// The parts that one call used together: they have to stand in one statement.
    together: BTreeSet<BTreeSet<Use>>,
}

/// What a part of a grant was used for.
#[derive(Debug)]
struct Uses {
    actions: BTreeSet<String>,
    /// Whether each request named partition keys.
    always_with_keys: bool,
    /// What the partition keys begin with that this part names, or if it names none, all of the requests.
    kinds: BTreeSet<String>,
    /// The partition keys that this part names.
    keys: Common,
    /// The resources, by the pattern that covers them where the template is deployed.
    resources: BTreeMap<String, Common>,
}

/// What several texts begin with alike.
#[derive(Debug, Default, PartialEq, Eq)]
struct Common {
    /// Nothing before the first text.
    beginning: Option<String>,
    /// Whether a text is more than the beginning.
    has_more: bool,
}

impl Review {
    /// Decides on a call.
    pub fn add(&mut self, rights: &Rights, asked: &Asked) {
        let Asked { function, access } = asked;
        match rights.function(function).map(|function| (function, function.decide(access))) {
            Some((function, Decision::Allowed(uses))) => {
                self.allowed(function, &uses, access);
            }
            _ => {
                self.lacking.insert(asked.clone());
            }
        }
    }

    /// Adds a call that these parts of grants allow. Returns whether it says anything that the calls before it do not.
    pub fn allowed(&mut self, function: &FunctionRights, uses: &[Use], access: &Access) -> bool {
        if !self.of_functions.contains_key(&function.name) {
            self.of_functions.insert(function.name.clone(), FunctionUses::default());
        }
        let known = self.of_functions.get_mut(&function.name).expect("it is inserted above");
        let parts: BTreeSet<Use> = uses.iter().copied().collect();
        let mut is_news = false;
        for part in &parts {
            is_news |= known.of_parts.entry(*part).or_insert_with(Uses::none).add(function, *part, access);
        }
        known.together.insert(parts) || is_news
    }

    /// Every place where the calls and the grants of these rights do not fit.
    #[must_use]
    pub fn misfits(&self, rights: &Rights) -> Vec<Misfit> {
        let mut misfits: Vec<_> = self.lacking.iter().cloned().map(Misfit::Lacking).collect();
        for function in rights.functions() {
            let known = self.of_functions.get(&function.name);
            misfits.extend(function.parts().filter_map(|part| {
                let grant = function.grant(part);
                let Some(uses) = known.and_then(|known| known.of_parts.get(&part)) else {
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
    fn none() -> Self {
        let (actions, kinds, resources) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        Self { actions, always_with_keys: true, kinds, keys: Common::default(), resources }
    }

    /// Adds an access; returns whether it says anything new.
    fn add(&mut self, function: &FunctionRights, part: Use, access: &Access) -> bool {
        let mut is_news = add(&mut self.actions, &access.action);
        let keys = access.leading_keys.as_deref().unwrap_or_default();
        is_news |= keys.is_empty() && std::mem::replace(&mut self.always_with_keys, false);
        if part.key.is_none() {
            keys.iter().for_each(|key| is_news |= add(&mut self.kinds, kind(key)));
        }
        for key in function.keys_for(part, access) {
            is_news |= add(&mut self.kinds, kind(key));
            is_news |= self.keys.add(key);
        }
        let (pattern, resource) = (function.resource_pattern(part), without_suffix(&access.resource));
        match self.resources.get_mut(pattern) {
            Some(common) => common.add(resource) || is_news,
            None => self.resources.entry(pattern.to_owned()).or_default().add(resource),
        }
    }

    /// What would have been enough, if the grant is more.
    fn enough(&self, grant: &Grant, key: Option<&str>) -> Option<String> {
        if grant.action.contains(['*', '?']) {
            return Some(self.actions.iter().cloned().collect::<Vec<_>>().join(", "));
        }
        // A key of any kind is one of another function's, too.
        let is_of_any_kind = key.map_or(self.always_with_keys, |key| kind(key).contains(['*', '?']));
        if is_of_any_kind {
            let kinds =
                self.kinds.iter().map(|kind| if kind.ends_with('#') { format!("{kind}*") } else { kind.clone() });
            return Some(format!("the partition keys {}", kinds.collect::<Vec<_>>().join(", ")));
        }
        let of_keys = key.and_then(|pattern| self.keys.narrower(pattern, true));
        of_keys.or_else(|| self.resources.iter().find_map(|(pattern, common)| common.narrower(pattern, false)))
    }
}

impl Common {
    /// Adds a text; returns whether that changed anything.
    fn add(&mut self, text: &str) -> bool {
        let Some(beginning) = &mut self.beginning else {
            self.beginning = Some(text.to_owned());
            return true;
        };
        if text.starts_with(beginning.as_str()) {
            let is_more = text.len() > beginning.len();
            return is_more && !std::mem::replace(&mut self.has_more, true);
        }
        let alike = beginning.chars().zip(text.chars()).take_while(|(one, other)| one == other);
        let length = alike.map(|(character, _)| character.len_utf8()).sum();
        beginning.truncate(length);
        self.has_more = true;
        true
    }

    /// What covers all texts, if it is less than this pattern. A beginning ends at a separator, since the name of one
    /// entity, one webhook or one object is no part of it. A key that is always the same is one item if no name is in
    /// it: `REVOKED#DAY`.
    fn narrower(&self, pattern: &str, is_key: bool) -> Option<String> {
        let wildcard = pattern.find(['*', '?'])?;
        // The resource of an action that knows no resources is `*`.
        let beginning = self.beginning.as_deref().filter(|beginning| *beginning != pattern)?;
        let rest = beginning.get(wildcard..)?;
        let is_name = is_key && !rest.bytes().all(|byte| byte.is_ascii_uppercase());
        if !self.has_more && !is_name {
            return Some(beginning.to_owned());
        }
        let separators: &[char] = if is_key { &['#'] } else { &['/', ':', '-'] };
        let end = wildcard + rest.rfind(separators)?;
        Some(format!("{}*", &beginning[..=end]))
    }
}

/// What a partition key begins with.
fn kind(key: &str) -> &str {
    key.find('#').map_or(key, |end| &key[..=end])
}

/// Adds a text, without a copy of one that is there.
fn add(texts: &mut BTreeSet<String>, text: &str) -> bool {
    !texts.contains(text) && texts.insert(text.to_owned())
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacking(Asked { function, access: Access { action, resource, leading_keys } }) => {
                write!(f, "{function} lacks the right {action} on {resource}")?;
                match leading_keys {
                    Some(keys) => write!(f, " for the key {}", keys.join(", ")),
                    None => Ok(()),
                }
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
    use template::Template;

    use super::*;
    use crate::Deployed;

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
            - {Effect: Allow, Action: 'secretsmanager:BatchGetSecretValue', Resource: '*'}
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

    fn asked(action: &str, resource: &str, keys: &[&str]) -> Asked {
        let access = Access::new(action, resource);
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        let access = if keys.is_empty() { access } else { access.with_keys(keys) };
        Asked { function: "token".to_owned(), access }
    }

    /// Calls that use every grant of the template in its whole width.
    fn calls() -> Vec<Asked> {
        let table = "arn:aws:dynamodb:r:1:table/things";
        let index = format!("{table}/index/byDue");
        let secret = |name: &str| {
            asked("secretsmanager:GetSecretValue", &format!("arn:aws:secretsmanager:r:1:secret:{name}"), &[])
        };
        let both = ["dynamodb:GetItem", "dynamodb:UpdateItem"].into_iter();
        let of_table =
            both.flat_map(|action| [&["ENT#a", "REVOKED#DAY"][..], &["ENT#b"]].map(|keys| asked(action, table, keys)));
        of_table
            .chain([asked("dynamodb:Query", &index, &["JOBS"]), asked("sqs:SendMessage", "arn:aws:sqs:r:1:Queue", &[])])
            .chain(["provider-a-stands", "provider-b-stands"].map(secret))
            .chain([asked("secretsmanager:BatchGetSecretValue", "*", &[])])
            .collect()
    }

    /// What is said of the template with one part replaced.
    fn said(from: &str, to: &str) -> Vec<String> {
        let changed = TEMPLATE.replacen(from, to, 1);
        assert!(from == to || changed != TEMPLATE, "{from}");
        let rights = rights(&changed);
        let mut review = Review::default();
        calls().iter().for_each(|asked| review.add(&rights, asked));
        let of_logs = |misfit: &&Misfit| matches!(misfit, Misfit::Unused(grant) if grant.action.starts_with("logs:"));
        review.misfits(&rights).iter().filter(|misfit| !of_logs(misfit)).map(ToString::to_string).collect()
    }

    #[test]
    fn grants_that_fit_the_calls_are_not_named() {
        assert_eq!(said("Token", "Token"), Vec::<String>::new());
    }

    #[test]
    fn a_narrowed_grant_is_named_by_function_right_and_key() {
        let table = "arn:aws:dynamodb:r:1:table/things";
        for (from, to, expected) in [
            ("dynamodb:GetItem, ", "", format!("dynamodb:GetItem on {table} for the key ENT#a, REVOKED#DAY")),
            ("'ENT#*'", "'ENT#a*'", format!("dynamodb:GetItem on {table} for the key ENT#b")),
            ("StringLike", "StringEquals", format!("dynamodb:GetItem on {table} for the key ENT#b")),
            (", 'REVOKED#DAY'", "", format!("dynamodb:GetItem on {table} for the key ENT#a, REVOKED#DAY")),
            ("index/byDue", "index/byOwner", format!("dynamodb:Query on {table}/index/byDue for the key JOBS")),
            ("!GetAtt Queue.Arn", "!GetAtt Other.Arn", "sqs:SendMessage on arn:aws:sqs:r:1:Queue".to_owned()),
        ] {
            let said = said(from, to);
            assert!(said.contains(&format!("token lacks the right {expected}")), "{from} to {to}: {said:#?}");
        }
    }

    #[test]
    fn a_widened_grant_is_named_by_function_right_and_key() {
        let (one, condition) =
            ("['ENT#*', 'REVOKED#DAY']", "'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': [JOBS]}");
        let index = "${Table.Arn}/index/byDue";
        for (from, to, grant, said) in [
            // Further rights.
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
            // Wildcards.
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
    fn a_call_is_news_as_long_as_it_changes_what_is_known() {
        let rights = rights(TEMPLATE);
        let function = rights.function("token").expect("declared");
        let mut review = Review::default();
        let mut is_news = |asked: &Asked| match function.decide(&asked.access) {
            Decision::Allowed(uses) => review.allowed(function, &uses, &asked.access),
            other => panic!("{asked:?} is {other:?}"),
        };
        let all: Vec<_> = calls().iter().map(&mut is_news).collect();
        assert_eq!(all, vec![true; all.len()]);
        for asked in calls() {
            assert!(!is_news(&asked), "{asked:?}");
        }
        let get = |keys: &[&str]| asked("dynamodb:GetItem", "arn:aws:dynamodb:r:1:table/things", keys);
        assert!(!is_news(&get(&["ENT#c"])));
        assert!(is_news(&get(&["REVOKED#DAY"])), "without the other key");
    }

    proptest! {
        #[test]
        fn what_would_have_been_enough_covers_every_use_and_is_less(
            keys in prop::collection::vec("ENT#[ab]{1,3}(#(DAY|[ab]))?", 1..5),
        ) {
            let mut common = Common::default();
            keys.iter().for_each(|key| { common.add(key); });
            if let Some(enough) = common.narrower("ENT#*", true) {
                prop_assert!(keys.iter().all(|key| crate::pattern::matches(&enough, key)), "{enough}");
                prop_assert!(enough.len() > "ENT#*".len(), "{enough}");
            }
        }
    }
}
