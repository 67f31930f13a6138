//! The calls of the functions of all bundles of a run, decided once at its end against template.yaml: no call may be
//! beyond the grants, and after a run of all tests no grant may be unused or wider than its uses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::{Mutex, PoisonError},
};

use rights::{Deployed, Grant, Misfit, Review, Rights, of_mappings};
use template::Template;

use super::project;

/// Grants that no test can use, and why they are there.
const UNUSED: [(&str, &str); 2] = [
    ("(AWSLambdaBasicExecutionRole statement 1)", "Lambda writes the logs in the function's name"),
    ("(EventInvokeConfig statement 1)", "Lambda sends there what failed, in the function's name"),
];

/// The distinct calls of the bundles that have ended, a line of JSON for each.
static CALLS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Reads the calls that a bundle has recorded in this file.
pub fn collect(record: &Path) {
    let text = fs::read_to_string(record).unwrap_or_default();
    CALLS.lock().unwrap_or_else(PoisonError::into_inner).extend(text.lines().map(str::to_owned));
}

/// The project's template.
fn template() -> Template {
    let text = fs::read_to_string(project().join("template.yaml")).expect("the project has a template.yaml");
    Template::parse(&text).expect("template.yaml is a template")
}

/// The rights of every function, deployed as `local` deploys them. Policies name no parameter but the environment.
pub fn template_rights() -> Rights {
    let [region, account, table, bucket] = ["us-east-1", "000000000000", "waypost-local", "geo-ip"].map(str::to_owned);
    let template = template();
    let environment = BTreeMap::from([("Environment".to_owned(), "local".to_owned())]);
    let parameters = template.defaults().clone().into_iter().chain(environment).collect();
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
    fn has(&self, function: &str) -> bool {
        match self {
            Self::All => true,
            Self::Of(names) => names.split(',').any(|name| name == function),
            Self::None => false,
        }
    }
}

/// The faults of the functions' rights, a sentence for each.
pub fn faults(whole: &Whole) -> Vec<String> {
    let rights = template_rights();
    let mut review = Review::default();
    let mut faults = Vec::new();
    for line in CALLS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        match serde_json::from_str(line) {
            Ok(call) => review.add(&rights, &call),
            Err(error) => faults.push(format!("a recorded call cannot be read ({error}): {line}")),
        }
    }
    of_mappings(&template()).for_each(|call| review.add(&rights, &call));
    let misfits = review.misfits(&rights);
    let of_whole = misfits.iter().filter(|misfit| match misfit {
        Misfit::Lacking { .. } | Misfit::Unread { .. } => true,
        Misfit::Unused(grant) => whole.has(&grant.function) && !is_known(grant),
        // The one test with a bucket keeps one edition in it.
        Misfit::Wider { grant, .. } => whole.has(&grant.function) && !grant.action.starts_with("s3:"),
    });
    faults.extend(of_whole.map(ToString::to_string));
    faults.extend(needless_mentions(&rights, &misfits, whole));
    faults
}

/// Whether no test can use a grant.
fn is_known(grant: &Grant) -> bool {
    let text = grant.to_string();
    UNUSED.iter().any(|(known, _)| text.contains(known))
}

/// The mentions of grants that no test can use, where one has used them all or there is none.
fn needless_mentions(rights: &Rights, misfits: &[Misfit], whole: &Whole) -> Vec<String> {
    let unused: BTreeSet<_> = misfits
        .iter()
        .filter_map(|misfit| match misfit {
            Misfit::Unused(grant) => Some(grant.clone()),
            _ => None,
        })
        .collect();
    let grants: Vec<_> = rights.functions().filter(|function| whole.has(&function.name)).collect();
    let grants: Vec<_> = grants.into_iter().flat_map(|function| function.grants()).collect();
    let is_needless = |known: &str| {
        let of_it: Vec<_> = grants.iter().filter(|grant| grant.to_string().contains(known)).collect();
        matches!(whole, Whole::All) && of_it.is_empty() || of_it.iter().any(|grant| !unused.contains(*grant))
    };
    let needless = UNUSED.iter().filter(|(known, _)| is_needless(known));
    needless.map(|(known, why)| format!("`{known}` needs no mention as a grant that no test can use ({why})")).collect()
}
