//! The machine: environment, clock, pauses, configuration folder and host name. No other module reads them.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use jiff::Timestamp;

/// The value of an environment variable that is set and not empty.
pub fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "this is the one place of this program that reads the environment")]
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The wall clock.
pub fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "this is the one place of this program that reads the clock")]
    Timestamp::now()
}

pub async fn pause(duration: Duration) {
    #[expect(clippy::disallowed_methods, reason = "this is the one place of this program that pauses")]
    tokio::time::sleep(duration).await;
}

/// The system's folder for a user's configuration.
pub fn configuration_folder() -> Option<PathBuf> {
    if cfg!(windows) {
        return variable("APPDATA").map(PathBuf::from);
    }
    let home = || variable("HOME").map(PathBuf::from);
    if cfg!(target_os = "macos") {
        return home().map(|home| home.join("Library/Application Support"));
    }
    // The XDG specification says to ignore a relative path.
    let xdg = variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    xdg.or_else(|| home().map(|home| home.join(".config")))
}

/// The name of this host, or `this machine`.
pub fn host_name() -> String {
    let from_kernel = || fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let from_program =
        || Command::new("hostname").output().ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let name = from_kernel().or_else(from_program).unwrap_or_default();
    let name = name.trim();
    let plain = !name.is_empty() && name.len() <= 100 && name.chars().all(|letter| letter.is_ascii_graphic());
    if plain { name.to_owned() } else { "this machine".to_owned() }
}
