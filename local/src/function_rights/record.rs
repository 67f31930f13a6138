//! What functions were refused, and what they asked and got: `refused.jsonl` and `asked.jsonl`, a line for each and
//! none twice. `deployed.json` says what the resources are called here.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Mutex,
};

use rights::{Access, Asked, Deployed, FunctionRights, Review, Use};
use serde_json::{Value, json};

/// The most refusals that are kept.
const MOST_REFUSALS: usize = 10_000;

/// The files.
pub struct Record {
    refused: Mutex<Lines>,
    asked: Mutex<Lines>,
    /// What the kept calls say of the grants, so that few are kept of all that there are.
    review: Mutex<Review>,
}

/// A file that gets each line once, over all runs.
struct Lines {
    path: PathBuf,
    known: HashSet<String>,
}

impl Lines {
    fn open(path: PathBuf) -> io::Result<Self> {
        let known = match fs::read_to_string(&path) {
            Ok(text) => text.lines().map(str::to_owned).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => HashSet::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { path, known })
    }

    fn add(&mut self, line: &Value) {
        let mut line = line.to_string();
        if self.known.contains(&line) {
            return;
        }
        self.known.insert(line.clone());
        line.push('\n');
        let file = File::options().create(true).append(true).mode(0o600).open(&self.path);
        if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
            tracing::warn!("{}: {error}", self.path.display());
        }
    }
}

impl Record {
    /// The files in this folder.
    pub fn open(folder: &Path, deployed: &Deployed) -> io::Result<Self> {
        fs::write(folder.join("deployed.json"), json!(deployed).to_string())?;
        let lines = |name: &str| Lines::open(folder.join(name)).map(Mutex::new);
        Ok(Self { refused: lines("refused.jsonl")?, asked: lines("asked.jsonl")?, review: Mutex::default() })
    }

    /// Keeps and logs a refusal.
    pub fn refused(&self, line: &Value, sentence: &str) {
        tracing::warn!("{sentence}");
        let mut lines = self.refused.lock().expect("nothing panics while holding it");
        if lines.known.len() < MOST_REFUSALS {
            lines.add(line);
        }
    }

    /// Keeps a call that was allowed if it says more of the grants than those that are kept: which parts were used,
    /// which of them together, and for what. These calls say of any other template as well whether its grants fit.
    pub fn allowed(&self, function: &FunctionRights, uses: &[Use], access: &Access) {
        if self.review.lock().expect("nothing panics while holding it").allowed(function, uses, access) {
            let asked = Asked { function: function.name.clone(), access: access.clone() };
            self.asked.lock().expect("nothing panics while holding it").add(&json!(asked));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_line_is_kept_once_over_all_runs_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("a folder");
        let [region, account, table, bucket] = ["r", "1", "things", "files"].map(str::to_owned);
        let deployed = Deployed { region, account, table, bucket, parameters: BTreeMap::new() };
        for _ in 0..2 {
            let record = Record::open(folder.path(), &deployed).expect("the folder is there");
            record.refused(&json!({ "function": "token" }), "no");
            record.refused(&json!({ "function": "token" }), "no");
            record.refused(&json!({ "function": "openapi" }), "no");
        }
        let file = folder.path().join("refused.jsonl");
        let kept = fs::read_to_string(&file).expect("it is there");
        assert_eq!(kept, "{\"function\":\"token\"}\n{\"function\":\"openapi\"}\n");
        assert_eq!(fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o600);
    }
}
