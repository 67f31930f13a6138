//! What functions asked and were refused in all bundles of a run: no refusal may be left that no test wanted, and after
//! a run of all tests no grant that nothing used or that is wider than its uses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::{Mutex, MutexGuard},
};

use rights::{Asked, Deployed, Grant, Misfit, Review, Rights};
use serde_json::Value;
use template::Template;

use super::{changed_grants, project};

/// Grants that no test can use, and why they are there.
const UNUSED: [(&str, &str); 2] = [
    ("(AWSLambdaBasicExecutionRole statement 1)", "Lambda writes the logs in the function's name"),
    ("(EventInvokeConfig statement 1)", "Lambda sends there what failed, in the function's name"),
];

/// What the bundles have kept that have ended.
#[derive(Default)]
struct Seen {
    refused: BTreeSet<String>,
    expected: BTreeSet<Expected>,
    /// The calls that were allowed, by where their resources are.
    asked: BTreeMap<Deployed, BTreeSet<Asked>>,
}

/// A refusal that a test wants.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Expected {
    function: String,
    action: String,
    /// The end of the key or else of the resource.
    named: String,
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
    let asked = kept(data, "asked.jsonl");
    let mut seen = seen();
    let seen = seen.get_or_insert_default();
    seen.refused.extend(kept(data, "refused.jsonl"));
    let Some(deployed) = deployed(data) else { return };
    // A bundle that was killed may have left half a line.
    let asked = asked.iter().filter_map(|line| serde_json::from_str(line).ok());
    seen.asked.entry(deployed).or_default().extend(asked);
}

/// The sentences for everything that a bundle with this data folder was refused.
pub fn refusals(data: &Path) -> Vec<String> {
    kept(data, "refused.jsonl").iter().filter_map(|line| refusal(line, &BTreeSet::new())).collect()
}

fn kept(data: &Path, name: &str) -> Vec<String> {
    let text = fs::read_to_string(data.join("rights").join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// What the resources are called in the bundle with this data folder. Policies name no parameter but the environment,
/// so that bundles with other settings have their resources at the same place.
fn deployed(data: &Path) -> Option<Deployed> {
    let text = fs::read_to_string(data.join("rights/deployed.json")).ok()?;
    let mut deployed: Deployed = serde_json::from_str(&text).ok()?;
    deployed.parameters.retain(|name, _| name == "Environment");
    Some(deployed)
}

/// Says that a test wants this function to be refused this action, for a key or resource that no function of its own
/// would name.
pub fn expect_refusal(function: &str, action: &str, named: &str) {
    let [function, action, named] = [function, action, named].map(str::to_owned);
    seen().get_or_insert_default().expected.insert(Expected { function, action, named });
}

/// The text of the project's template.
pub fn template_text() -> String {
    fs::read_to_string(project().join("template.yaml")).expect("the project has a template.yaml")
}

/// The rights of every function, deployed anywhere.
pub fn template_rights() -> Rights {
    let [region, account, table, bucket] = ["any-1", "000000000000", "any", "any"].map(str::to_owned);
    let parameters = BTreeMap::from([("Environment".to_owned(), "any".to_owned())]);
    let template = Template::parse(&template_text()).expect("template.yaml is a template");
    Rights::read(&template, Deployed { region, account, table, bucket, parameters })
        .expect("all policies are understood")
}

/// The functions whose grants a run must use all of.
pub enum Whole {
    /// Every function: all tests ran.
    All,
    /// The functions that `RIGHTS_OF` names, separated by commas: the tests that were chosen are said to be all of
    /// theirs.
    Of(String),
    /// None: some tests were chosen.
    None,
}

impl Whole {
    pub fn has(&self, function: &str) -> bool {
        match self {
            Self::All => true,
            Self::Of(names) => names.split(',').any(|name| name == function),
            Self::None => false,
        }
    }
}

/// The faults of the functions' rights, a sentence for each.
pub fn faults(whole: &Whole) -> Vec<String> {
    let mut seen = seen();
    let seen = seen.get_or_insert_default();
    let mut faults: Vec<_> = seen.refused.iter().filter_map(|line| refusal(line, &seen.expected)).collect();
    let text = template_text();
    match misfits(&text, &seen.asked) {
        Err(fault) => faults.push(fault),
        Ok(misfits) => {
            faults.extend(of_whole(&misfits, whole).map(ToString::to_string));
            faults.extend(needless_mentions(&misfits, whole));
            faults.extend(changed_grants::unnoticed(&text, whole, &|text| sentences(text, &seen.asked, whole)));
        }
    }
    faults
}

/// What does not fit between the grants of a template and the calls of all bundles.
fn misfits(template: &str, asked: &BTreeMap<Deployed, BTreeSet<Asked>>) -> Result<Vec<Misfit>, String> {
    let template = Template::parse(template).map_err(|error| format!("template.yaml: {error}"))?;
    let read = |deployed: &Deployed| {
        let mut deployed = deployed.clone();
        let defaults = template.defaults().clone();
        deployed.parameters = defaults.into_iter().chain(deployed.parameters).collect();
        Rights::read(&template, deployed).map_err(|error| error.to_string())
    };
    let mut review = Review::default();
    let mut last = None;
    for (deployed, asked) in asked {
        let rights = read(deployed)?;
        asked.iter().for_each(|asked| review.add(&rights, asked));
        last = Some(rights);
    }
    Ok(last.map(|rights| review.misfits(&rights)).unwrap_or_default())
}

/// The same as sentences, without what is not said of the project's own template either.
fn sentences(
    template: &str,
    asked: &BTreeMap<Deployed, BTreeSet<Asked>>,
    whole: &Whole,
) -> Result<BTreeSet<String>, String> {
    Ok(of_whole(&misfits(template, asked)?, whole).map(ToString::to_string).collect())
}

/// The faults among the misfits.
fn of_whole<'a>(misfits: &'a [Misfit], whole: &'a Whole) -> impl Iterator<Item = &'a Misfit> {
    misfits.iter().filter(|misfit| match misfit {
        Misfit::Lacking(_) => true,
        Misfit::Unused(grant) => whole.has(&grant.function) && !is_known(grant),
        // The one test with a bucket keeps one edition in it.
        Misfit::Wider { grant, .. } => whole.has(&grant.function) && !grant.action.starts_with("s3:"),
    })
}

/// Whether no test can use a grant.
fn is_known(grant: &Grant) -> bool {
    let text = grant.to_string();
    UNUSED.iter().any(|(known, _)| text.contains(known))
}

/// The mentions of grants that no test can use, where one has used them all or there is none.
fn needless_mentions(misfits: &[Misfit], whole: &Whole) -> Vec<String> {
    let unused: BTreeSet<_> = misfits
        .iter()
        .filter_map(|misfit| match misfit {
            Misfit::Unused(grant) => Some(grant.clone()),
            _ => None,
        })
        .collect();
    let rights = template_rights();
    let grants: Vec<_> = rights.functions().filter(|function| whole.has(&function.name)).collect();
    let grants: Vec<_> = grants.into_iter().flat_map(|function| function.grants()).collect();
    let is_needless = |known: &str| {
        let of_it: Vec<_> = grants.iter().filter(|grant| grant.to_string().contains(known)).collect();
        matches!(whole, Whole::All) && of_it.is_empty() || of_it.iter().any(|grant| !unused.contains(*grant))
    };
    let needless = UNUSED.iter().filter(|(known, _)| is_needless(known));
    needless.map(|(known, why)| format!("`{known}` needs no mention as a grant that no test can use ({why})")).collect()
}

/// The sentence for a refusal that no test wanted.
fn refusal(line: &str, expected: &BTreeSet<Expected>) -> Option<String> {
    let refusal: Value = serde_json::from_str(line).ok()?;
    let text = |member: &str| refusal[member].as_str().unwrap_or_default().to_owned();
    let (function, action) = (text("function"), text("action"));
    let sentence = match serde_json::from_str(line) {
        Ok(asked) => Misfit::Lacking(asked).to_string(),
        Err(_) => format!("{function} lacks the right {action}: {}", text("error")),
    };
    let is_wanted = |expected: &Expected| {
        expected.function == function && expected.action == action && sentence.ends_with(&expected.named)
    };
    (!expected.iter().any(is_wanted)).then_some(sentence)
}
