//! Following the functions' logs, so that the terminal shows attempts, warnings and errors. If `LOG_LEVEL` is above
//! `info`, the logs contain no attempts, so the terminal shows none.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::Duration,
};

use anstyle::AnsiColor;
use serde::Deserialize;
use tokio::{task, time};

use crate::terminal::{DIM, Terminal, clock, colour_of, plain};

/// How often the files are read.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The maximum number of bytes read from a file at a time. A longer line is not shown.
const CHUNK: u64 = 1024 * 1024;
/// The maximum number of characters of a sentence that are shown. The log has the complete sentence.
const SENTENCE: usize = 300;

/// Shows new lines from this folder's logs until the process ends.
pub async fn follow(folder: PathBuf, terminal: Terminal) {
    let mut files = LogFiles::from_now_on(folder);
    let mut ticks = time::interval(POLL_INTERVAL);
    loop {
        ticks.tick().await;
        let read = task::spawn_blocking(move || {
            let lines = files.new_lines();
            (files, lines)
        });
        let Ok((back, lines)) = read.await else { return };
        files = back;
        lines.into_iter().for_each(|line| terminal.show(line));
    }
}

/// A folder's files, and how far each has been read.
struct LogFiles {
    folder: PathBuf,
    read: HashMap<PathBuf, u64>,
}

impl LogFiles {
    fn from_now_on(folder: PathBuf) -> Self {
        let length = |path: PathBuf| Some((fs::metadata(&path).ok()?.len(), path));
        let read = logs(&folder).filter_map(length).map(|(length, path)| (path, length)).collect();
        Self { folder, read }
    }

    /// The lines to show that were added since the last call. The next call tries again to read an unreadable file.
    fn new_lines(&mut self) -> Vec<String> {
        let mut shown = Vec::new();
        for path in logs(&self.folder) {
            let function = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let read = self.read.entry(path.clone()).or_default();
            if let Ok(text) = added(&path, read) {
                shown.extend(text.lines().filter_map(|line| line_of(&function, line)));
            }
        }
        shown
    }
}

fn logs(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "log"))
}

/// The complete lines after the position `read`, which advances past them.
fn added(path: &Path, read: &mut u64) -> io::Result<String> {
    if fs::metadata(path)?.len() <= *read {
        return Ok(String::new());
    }
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(*read))?;
    let mut bytes = Vec::new();
    file.take(CHUNK).read_to_end(&mut bytes)?;
    match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(last) => bytes.truncate(last + 1),
        // The rest of the line has not been written yet.
        None if (bytes.len() as u64) < CHUNK => bytes.clear(),
        None => {}
    }
    *read += bytes.len() as u64;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The members of a line that are shown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    timestamp: String,
    level: String,
    message: String,
    error: Option<String>,
    cause: Option<String>,
    reason: Option<String>,
    webhook_id: Option<String>,
    delivery_id: Option<String>,
    event_type: Option<String>,
    attempt: Option<u32>,
    http_status: Option<u16>,
    duration_ms: Option<u64>,
    next: Option<String>,
    next_attempt_date: Option<String>,
}

/// A line from a function's log, formatted for the terminal, if it is shown.
fn line_of(function: &str, line: &str) -> Option<String> {
    // Most lines are not shown and need not be parsed as JSON.
    if !["\"attempted\"", "\"ERROR\"", "\"WARN\""].iter().any(|mark| line.contains(mark)) {
        return None;
    }
    let line: Line = serde_json::from_str(line).ok()?;
    match line.level.as_str() {
        "ERROR" | "WARN" => Some(fault_line(function, &line)),
        _ if line.message == "attempted" => Some(attempt_line(&line)),
        _ => None,
    }
}

fn fault_line(function: &str, line: &Line) -> String {
    let colour = if line.level == "ERROR" { AnsiColor::Red } else { AnsiColor::Yellow }.on_default();
    let why = line.error.as_ref().or(line.cause.as_ref()).or(line.reason.as_ref());
    let error = why.map(|why| format!(": {why}")).unwrap_or_default();
    let about = line.delivery_id.as_ref().or(line.webhook_id.as_ref()).map(|id| format!(" ({id})")).unwrap_or_default();
    let sentence = plain(&format!("{}{error}{about}", line.message), SENTENCE);
    let at = clock(&line.timestamp);
    format!("{DIM}{at}{DIM:#} {colour}{:<6}{colour:#} {function}: {sentence}", line.level)
}

fn attempt_line(line: &Line) -> String {
    let colour = colour_of(line.http_status);
    let status = line.http_status.map_or_else(|| "---".to_owned(), |status| status.to_string());
    let kind = line.event_type.as_deref().unwrap_or("event");
    let attempt = line.attempt.unwrap_or_default();
    let delivery = line.delivery_id.as_deref().unwrap_or_default();
    let error = line.error.as_ref().map(|error| format!(" {colour}{error}{colour:#}")).unwrap_or_default();
    let next = match (line.next.as_deref(), &line.next_attempt_date) {
        (_, Some(date)) => format!(", next attempt at {}", clock(date)),
        (Some("exhausted"), _) => ", which was the last attempt".to_owned(),
        (Some("gone"), _) => ", and the webhook is disabled".to_owned(),
        _ => String::new(),
    };
    let at = clock(&line.timestamp);
    let took = line.duration_ms.unwrap_or_default();
    let what = format!("{kind}, attempt {attempt} of {delivery}");
    format!("{DIM}{at}{DIM:#} ->     {colour}{status}{colour:#} {what}{error} {DIM}{took} ms{DIM:#}{next}")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use anstream::adapter::strip_str;

    use super::*;

    fn shown(line: &str) -> Option<String> {
        line_of("dispatch-deliveries", line).map(|line| strip_str(&line).to_string())
    }

    #[test]
    fn an_attempt_is_one_short_line() {
        let line = |rest: &str| {
            let line = r#"{"timestamp":"2026-11-20T09:45:00.123456Z","level":"INFO","message":"attempted","deliveryId":"dlv_1","webhookId":"whk_1","eventId":"evt_1","eventType":"booking.created","attempt":2,"durationMs":7,"#;
            shown(&format!("{line}{rest},\"target\":\"webhooks\"}}")).expect("an attempt")
        };
        assert_eq!(
            line(r#""httpStatus":204,"next":"delivered""#),
            "09:45:00Z ->     204 booking.created, attempt 2 of dlv_1 7 ms"
        );
        assert_eq!(
            line(r#""error":"connection: refused","next":"retry","nextAttemptDate":"2026-11-20T09:45:05.123Z""#),
            "09:45:00Z ->     --- booking.created, attempt 2 of dlv_1 connection: refused 7 ms, next attempt at 09:45:05Z"
        );
        assert!(line(r#""httpStatus":500,"next":"exhausted""#).ends_with("7 ms, which was the last attempt"));
    }

    #[test]
    fn a_fault_is_shown_with_its_cause_and_other_lines_are_not() {
        assert_eq!(
            shown(
                r#"{"timestamp":"2026-11-20T09:45:00.1Z","level":"ERROR","message":"failed","kind":"internal-error","cause":"the table did not answer"}"#
            ),
            Some("09:45:00Z ERROR  dispatch-deliveries: failed: the table did not answer".to_owned())
        );
        let rejected =
            r#"{"timestamp":"2026-11-20T09:45:00.1Z","level":"WARN","message":"rejected","reason":"invalid-request"}"#;
        assert!(shown(rejected).is_some_and(|line| line.ends_with(": rejected: invalid-request")));
        assert!(shown(r#"{"timestamp":"2026-11-20T09:45:00.1Z","level":"INFO","message":"answered"}"#).is_none());
        assert!(shown(r#"{"level":"INFO","message":"it said \"ERROR\""}"#).is_none());
        assert!(shown("thread panicked: \"ERROR\"").is_none());
    }

    #[test]
    fn only_new_and_complete_lines_are_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let fault = r#"{"timestamp":"2026-11-20T09:45:00.1Z","level":"WARN","message":"new"}"#;
        let path = folder.path().join("token.log");
        fs::write(&path, format!("{fault}\n")).expect("written");
        let mut files = LogFiles::from_now_on(folder.path().to_owned());
        assert!(files.new_lines().is_empty());
        let mut log = File::options().append(true).open(&path).expect("there");
        let (beginning, end) = fault.split_at(20);
        log.write_all(beginning.as_bytes()).expect("written");
        assert!(files.new_lines().is_empty());
        log.write_all(format!("{end}\n").as_bytes()).expect("written");
        fs::write(folder.path().join("new.log"), format!("{fault}\n")).expect("written");
        fs::write(folder.path().join("old.log.1"), format!("{fault}\n")).expect("written");
        assert_eq!(files.new_lines().len(), 2);
        assert!(files.new_lines().is_empty());
    }
}
