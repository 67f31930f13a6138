//! The machine: environment, clock, randomness, pauses, signals, configuration folder, host name, terminal and browser.
//! No other module reads them.

use std::{
    fs::{self, File},
    io::{self, IsTerminal},
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use jiff::Timestamp;

use crate::failure::Failure;

/// The width of a terminal that does not report its own.
const USUAL_COLUMNS: usize = 80;

/// The value of an environment variable, without white space around it, such as the carriage return of a file with
/// Windows line ends. `None` if nothing else is in it.
pub fn variable(name: &str) -> Option<String> {
    exact_variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn exact_variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "this is the one place of this program that reads the environment")]
    std::env::var(name).ok()
}

/// The folder that an environment variable names. Its name may end with white space.
fn folder_variable(name: &str) -> Option<PathBuf> {
    exact_variable(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Text from a file or standard input, without the byte order mark that some editors and shells put at its beginning.
pub fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
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
        return folder_variable("APPDATA");
    }
    let home = || folder_variable("HOME");
    if cfg!(target_os = "macos") {
        return home().map(|home| home.join("Library/Application Support"));
    }
    // The XDG specification says to ignore a relative path.
    let xdg = folder_variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    xdg.or_else(|| home().map(|home| home.join(".config")))
}

/// A random string of 32 hexadecimal digits.
pub fn random_text() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    let unavailable = |_| Failure::Usage("this system provides no random numbers".to_owned());
    #[expect(clippy::disallowed_methods, reason = "this is the one place of this program that draws random numbers")]
    aws_lc_rs::rand::fill(&mut bytes).map_err(unavailable)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Opens an address in the browser. Returns whether a program to open it was started.
pub async fn open_in_browser(address: &str) -> bool {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        // Unlike `start`, it does not interpret `&` and `%` in an address.
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else if variable("DISPLAY").or_else(|| variable("WAYLAND_DISPLAY")).is_some() {
        Command::new("xdg-open")
    } else {
        return false;
    };
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    // Some openers run until the browser is closed; one that fails ends at once.
    pause(Duration::from_secs(1)).await;
    !child.try_wait().is_ok_and(|ended| ended.is_some_and(|status| !status.success()))
}

/// Waits for Ctrl-C, SIGTERM, or the end of the terminal. Signals are caught from the call onwards, not only from the
/// first poll.
#[cfg(unix)]
pub fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    })
}

#[cfg(windows)]
pub fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}

/// This host's name, or `this machine`.
pub fn host_name() -> String {
    let from_kernel = || fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let from_program =
        || Command::new("hostname").output().ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let name = from_kernel().or_else(from_program).unwrap_or_default();
    let name = name.trim();
    let plain = !name.is_empty() && name.len() <= 100 && name.chars().all(|letter| letter.is_ascii_graphic());
    if plain { name.to_owned() } else { "this machine".to_owned() }
}

/// The output's width: the `COLUMNS` variable, or the terminal's width. `None` if the output goes to a
/// file or another program, which gets everything.
pub fn columns() -> Option<usize> {
    let given = variable("COLUMNS").and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    given.or_else(|| io::stdout().is_terminal().then(|| columns_of_terminal().unwrap_or(USUAL_COLUMNS)))
}

/// The width that `stty` shows. The standard library does not provide it.
fn columns_of_terminal() -> Option<usize> {
    let terminal = File::open("/dev/tty").ok()?;
    let output = Command::new("stty").arg("size").stdin(terminal).output().ok()?;
    let size = String::from_utf8(output.stdout).ok()?;
    size.split_whitespace().nth(1)?.parse().ok().filter(|columns| *columns > 0)
}
