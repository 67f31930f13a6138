//! Checks a catalogue's folder and compares it with an earlier version.

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

use event_catalogue::{Catalogue, TRAVEL, compatibility, read};

fn main() -> ExitCode {
    let folders: Vec<_> = env::args_os().skip(1).map(PathBuf::from).collect();
    let checked = match folders.as_slice() {
        [] => check(Path::new(TRAVEL), None),
        [folder] => check(folder, None),
        [folder, earlier] => check(folder, Some(earlier)),
        _ => Err(vec!["usage: event-catalogue [FOLDER [FOLDER OF AN EARLIER VERSION]]".to_owned()]),
    };
    match checked {
        Ok(sentence) => {
            println!("{sentence}");
            ExitCode::SUCCESS
        }
        Err(lines) => {
            lines.iter().for_each(|line| eprintln!("{line}"));
            ExitCode::FAILURE
        }
    }
}

fn check(folder: &Path, earlier: Option<&Path>) -> Result<String, Vec<String>> {
    let read = |folder: &Path| -> Result<Catalogue, Vec<String>> {
        read(folder).map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
    };
    let catalogue = read(folder)?;
    let own = catalogue.types.iter().filter(|kind| kind.is_own).count();
    let mut sentence = format!("{} types, and {own} of the service: no mistakes.", catalogue.types.len() - own);
    if let Some(earlier) = earlier {
        let broken = compatibility::violations(&read(earlier)?, &catalogue);
        if !broken.is_empty() {
            let advice = "Subscribers rely on the earlier version. Undo these changes, or make a new type:".to_owned();
            return Err([advice].into_iter().chain(broken).collect());
        }
        sentence += " Compatible with the earlier version.";
    }
    Ok(sentence)
}
