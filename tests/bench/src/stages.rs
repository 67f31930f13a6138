//! A delivery's processor time by stage, taken from the lines that the functions log at `trace`.

use std::{collections::BTreeMap, error::Error, fs, path::Path, time::Duration};

use serde::Deserialize;

/// The stages of a run by function and name: how often each ran, and its processor time.
#[derive(Debug, Clone, Default)]
pub struct Stages(BTreeMap<(String, String), Stage>);

#[derive(Debug, Clone, Copy, Default)]
pub struct Stage {
    pub count: u64,
    pub computing: Duration,
}

/// A log line about a stage, as written by `base::stage`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stage: String,
    computed_nanos: u64,
}

impl Stages {
    /// The stages that this folder's logs contain so far.
    pub fn of(logs: &Path) -> Result<Self, Box<dyn Error>> {
        let mut stages: BTreeMap<(String, String), Stage> = BTreeMap::new();
        for file in fs::read_dir(logs)? {
            let path = file?.path();
            let function = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path)?;
            // The last line may be incomplete, and most lines are about other things.
            for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
                let stage = stages.entry((function.clone(), line.stage)).or_default();
                stage.count += 1;
                stage.computing += Duration::from_nanos(line.computed_nanos);
            }
        }
        Ok(Self(stages))
    }

    /// The stages logged since an earlier reading.
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |(key, stage): (&(String, String), &Stage)| {
            let before = earlier.0.get(key).copied().unwrap_or_default();
            let computing = stage.computing.saturating_sub(before.computing);
            (key.clone(), Stage { count: stage.count - before.count, computing })
        };
        Self(self.0.iter().map(difference).collect())
    }

    /// The names of a function's stages.
    pub fn names<'a>(&'a self, function: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.keys().filter(move |(of, _)| of == function).map(|(_, name)| name.as_str())
    }

    pub fn get(&self, function: &str, name: &str) -> Stage {
        self.0.get(&(function.to_owned(), name.to_owned())).copied().unwrap_or_default()
    }

    /// The total processor time of a function's stages.
    pub fn sum(&self, function: &str) -> Duration {
        self.0.iter().filter(|((of, _), _)| of == function).map(|(_, stage)| stage.computing).sum()
    }
}
