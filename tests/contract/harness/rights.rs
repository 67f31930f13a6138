//! All functions' calls, recorded during a run and checked against template.yaml at its end: every call must be
//! granted, and after a run of all tests, no grant may be unused or broader than needed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::{Mutex, PoisonError},
};

use rights::{Deployed, Grant, Misfit, Review, Rights, of_mappings};
use template::Template;

use super::project;

/// Grants that no test can use, with the reasons.
const UNUSED: [(&str, &str); 2] = [
    ("(AWSLambdaBasicExecutionRole statement 1)", "Lambda writes the logs in the function's name"),
    ("(EventInvokeConfig statement 1)", "Lambda sends failed events there, in the function's name"),
];

/// The distinct calls from all ended bundles, each as a line of JSON.
static CALLS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Collects the calls that a bundle has recorded in this file.
pub fn collect(record: &Path) {
    let text = fs::read_to_string(record).unwrap_or_default();
    CALLS.lock().unwrap_or_else(PoisonError::into_inner).extend(text.lines().map(str::to_owned));
}

fn template() -> Template {
    let text = fs::read_to_string(project().join("template.yaml")).expect("the project has a template.yaml");
    Template::parse(&text).expect("template.yaml is a template")
}

/// The rights of every function, as deployed by `local`. The only parameter that policies contain is the environment.
pub fn template_rights() -> Rights {
    let [region, account, table, bucket] = ["us-east-1", "000000000000", "waypost-local", "geo-ip"].map(str::to_owned);
    let template = template();
    let environment = BTreeMap::from([("Environment".to_owned(), "local".to_owned())]);
    let parameters = template.defaults().clone().into_iter().chain(environment).collect();
    Rights::read(&template, Deployed { region, account, table, bucket, parameters })
        .expect("all policies are understood")
}

/// The functions for which a run must use every grant.
pub enum Whole {
    /// All functions, since all tests ran.
    All,
    /// The functions in `RIGHTS_OF`, separated by commas, for which the selected tests use every grant.
    Of(String),
    /// No function, since only some of the tests ran.
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

/// The faults in the functions' rights, one sentence each.
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
        // The only test with a bucket stores a single edition.
        Misfit::Wider { grant, .. } => whole.has(&grant.function) && !grant.action.starts_with("s3:"),
    });
    faults.extend(of_whole.map(ToString::to_string));
    faults.extend(needless_mentions(&rights, &misfits, whole));
    faults
}

/// Whether a grant is known to be unused by any test.
fn is_known(grant: &Grant) -> bool {
    let text = grant.to_string();
    UNUSED.iter().any(|(known, _)| text.contains(known))
}

/// The entries in [`UNUSED`] whose grants are used after all or do not exist.
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
    needless
        .map(|(known, why)| format!("`{known}` must not be listed as a grant that no test can use ({why})"))
        .collect()
}
