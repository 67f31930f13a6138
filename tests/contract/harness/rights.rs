//! What functions were refused in all bundles of a run, and which of their grants they used: no refusal may be left that no
//! test wanted, and after a run of all tests no grant that nothing used.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::{Mutex, MutexGuard},
};

use rights::{Deployed, Grant, Rights};
use serde_json::Value;
use template::Template;

use super::project;

/// Grants that no test can use, and why they are there.
const UNUSED: [(&str, &str); 3] = [
    ("(AWSLambdaBasicExecutionRole statement 1)", "Lambda writes the logs in the function's name"),
    ("dispatch-deliveries: sqs:GetQueueAttributes ", "Lambda asks for them, which receives for the mappings"),
    ("(EventInvokeConfig statement 1)", "Lambda sends there what failed, in the function's name"),
];

/// The refusals and used grants of all bundles that have ended.
#[derive(Default)]
struct Seen {
    refused: BTreeSet<String>,
    expected: BTreeSet<(String, String)>,
    /// By grant and by what it names where the bundle ran: what everything begins with that it was used for.
    used: BTreeMap<Grant, BTreeMap<String, String>>,
}

static SEEN: Mutex<Option<Seen>> = Mutex::new(None);

fn seen() -> MutexGuard<'static, Option<Seen>> {
    // A test that fails while holding it has told so itself.
    let mut seen = SEEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    seen.get_or_insert_default();
    seen
}

/// Reads what a bundle with this data folder has kept.
pub fn collect(data: &Path) {
    let lines = |name: &str| fs::read_to_string(data.join("rights").join(name)).unwrap_or_default();
    let (refused, used) = (lines("refused.jsonl"), lines("used.jsonl"));
    let mut seen = seen();
    let seen = seen.get_or_insert_default();
    seen.refused.extend(refused.lines().map(str::to_owned));
    // A bundle that was killed may have left half a line.
    for line in used.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let text = |member: &str| line[member].as_str().unwrap_or_default().to_owned();
        let grant = Grant {
            function: text("function"),
            statement: text("statement"),
            action: text("action"),
            resource: text("resource"),
            key: line["key"].as_str().map(str::to_owned),
        };
        let of_grant = seen.used.entry(grant).or_default();
        let common = of_grant.entry(text("pattern")).or_insert_with(|| text("common"));
        *common = beginning(common, &text("common"));
    }
}

/// Says that a test wants this function to be refused this action.
pub fn expect_refusal(function: &str, action: &str) {
    seen().get_or_insert_default().expected.insert((function.to_owned(), action.to_owned()));
}

/// Every grant of the template.
pub fn grants() -> Vec<Grant> {
    let rights = template_rights();
    rights.functions().flat_map(|function| function.grants().collect::<Vec<_>>()).collect()
}

/// The rights of every function, deployed anywhere.
pub fn template_rights() -> Rights {
    let text = fs::read_to_string(project().join("template.yaml")).expect("the project has a template.yaml");
    let template = Template::parse(&text).expect("template.yaml is a template");
    let mut parameters = template.defaults().clone();
    parameters.insert("Environment".to_owned(), "any".to_owned());
    let [region, account, table, bucket] = ["any-1", "000000000000", "any", "any"].map(str::to_owned);
    Rights::read(&template, Deployed { region, account, table, bucket, parameters })
        .expect("all policies are understood")
}

/// The functions whose grants a run must use all of.
pub enum Whole {
    /// Every function: all tests ran.
    All,
    /// The function that `RIGHTS_OF` names: the tests that were chosen are said to be all of that function.
    Of(String),
    /// None: some tests were chosen.
    None,
}

impl Whole {
    fn has(&self, function: &str) -> bool {
        match self {
            Self::All => true,
            Self::Of(name) => name == function,
            Self::None => false,
        }
    }
}

/// The faults of the functions' rights, a sentence for each.
pub fn faults(whole: &Whole) -> Vec<String> {
    let mut seen = seen();
    let seen = seen.get_or_insert_default();
    let mut faults: Vec<_> = seen.refused.iter().filter_map(|line| refusal(line, &seen.expected)).collect();
    let grants: Vec<_> = grants().into_iter().filter(|grant| whole.has(&grant.function)).collect();
    for (known, why) in UNUSED {
        let of_it: Vec<_> = grants.iter().filter(|grant| grant.to_string().contains(known)).collect();
        if matches!(whole, Whole::All) && of_it.is_empty() || of_it.iter().any(|grant| seen.used.contains_key(*grant)) {
            faults.push(format!("`{known}` needs no mention as a grant that no test can use ({why})"));
        }
    }
    for grant in &grants {
        let text = grant.to_string();
        match seen.used.get(grant) {
            None if UNUSED.iter().any(|(known, _)| text.contains(known)) => {}
            None => faults.push(format!("no test used the grant {text}")),
            // The one test with a bucket keeps one edition in it.
            Some(_) if grant.action.starts_with("s3:") => {}
            Some(uses) => faults.extend(uses.iter().filter_map(|(pattern, common)| {
                let narrow = narrower(pattern, common, grant.key.is_some())?;
                Some(format!("the grant {text} was used for {narrow}* only, and should name no more"))
            })),
        }
    }
    faults
}

/// The sentence for a refusal that no test wanted.
fn refusal(line: &str, expected: &BTreeSet<(String, String)>) -> Option<String> {
    let refusal: Value = serde_json::from_str(line).ok()?;
    let text = |member: &str| refusal[member].as_str().unwrap_or_default().to_owned();
    if expected.contains(&(text("function"), text("action"))) {
        return None;
    }
    let keys: Vec<_> = refusal["leadingKeys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let keys = if keys.is_empty() { String::new() } else { format!(" for the key {}", keys.join(", ")) };
    let error = refusal["error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
    let resource = refusal["resource"].as_str().map(|resource| format!(" on {resource}")).unwrap_or_default();
    Some(format!("{} lacks the right {}{resource}{keys}{error}", text("function"), text("action")))
}

/// The whole beginning that everything has in common for which a grant was used, if the grant's own is shorter. What one entity,
/// one webhook or one object is called is no part of it: a beginning is whole at a separator.
fn narrower<'a>(pattern: &str, common: &'a str, is_key: bool) -> Option<&'a str> {
    let wildcard = pattern.find(['*', '?'])?;
    let separators: &[char] = if is_key { &['#'] } else { &['/', ':'] };
    let whole = &common[..=common.rfind(separators)?];
    (whole.len() > wildcard && whole.starts_with(&pattern[..wildcard])).then_some(whole)
}

/// What two texts begin with alike.
fn beginning(one: &str, other: &str) -> String {
    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).map(|(character, _)| character).collect()
}
