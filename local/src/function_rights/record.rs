//! What functions were refused, and which of their grants allowed something: `refused.jsonl` and `used.jsonl`, a line for each
//! and none twice.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Mutex,
};

use rights::{Access, FunctionRights, Grant, Use};
use serde_json::{Value, json};

/// The most refusals that are kept.
const MOST_REFUSALS: usize = 10_000;

/// The two files.
pub struct Record {
    refused: Mutex<Lines>,
    used: Mutex<Lines>,
    /// What everything has in common that a grant was used for.
    common: Mutex<HashMap<(String, Use), String>>,
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
    pub fn open(folder: &Path) -> io::Result<Self> {
        let lines = |name: &str| Lines::open(folder.join(name)).map(Mutex::new);
        Ok(Self { refused: lines("refused.jsonl")?, used: lines("used.jsonl")?, common: Mutex::default() })
    }

    /// Keeps and logs a refusal.
    pub fn refused(&self, line: &Value, sentence: &str) {
        tracing::warn!("{sentence}");
        let mut lines = self.refused.lock().expect("nothing panics while holding it");
        if lines.known.len() < MOST_REFUSALS {
            lines.add(line);
        }
    }

    /// Keeps which grants allowed an access, and for what: the beginning that all their keys or resources have in common says
    /// how narrow a grant could be.
    pub fn used(&self, function: &FunctionRights, uses: &[Use], access: &Access) {
        for part in uses {
            for what in function.used_for(*part, access) {
                let mut common = self.common.lock().expect("nothing panics while holding it");
                let known = common.get(&(function.name.clone(), *part));
                if known.is_some_and(|known| what.starts_with(known.as_str())) {
                    continue;
                }
                let shared = known.map_or(what, |known| beginning(known, what)).to_owned();
                common.insert((function.name.clone(), *part), shared.clone());
                drop(common);
                let Grant { function: name, statement, action, resource, key } = function.grant(*part);
                let line = json!({
                    "function": name, "statement": statement, "action": action, "resource": resource, "key": key,
                    "pattern": function.pattern(*part), "common": shared,
                });
                self.used.lock().expect("nothing panics while holding it").add(&line);
            }
        }
    }
}

/// What two texts begin with alike.
fn beginning<'a>(one: &'a str, other: &str) -> &'a str {
    let alike = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
    &one[..alike.map(|(character, _)| character.len_utf8()).sum()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_kept_once_over_all_runs_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("a folder");
        for _ in 0..2 {
            let record = Record::open(folder.path()).expect("the folder is there");
            record.refused(&json!({ "function": "token" }), "no");
            record.refused(&json!({ "function": "token" }), "no");
            record.refused(&json!({ "function": "openapi" }), "no");
        }
        let file = folder.path().join("refused.jsonl");
        let kept = fs::read_to_string(&file).expect("it is there");
        assert_eq!(kept, "{\"function\":\"token\"}\n{\"function\":\"openapi\"}\n");
        assert_eq!(fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_texts_begin_with_alike_ends_between_characters() {
        assert_eq!(beginning("ENT#a", "ENT#b"), "ENT#");
        assert_eq!(beginning("é", "è"), "");
        assert_eq!(beginning("KEYS", "KEYS"), "KEYS");
    }
}
