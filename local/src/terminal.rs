//! The output of `make run` while the service is running: a short line for each request, each attempt, and each fault
//! that a function logs. Queries, headers and bodies are not shown, since they contain authorization codes, states and
//! tokens.
//!
//! A separate thread writes the lines, and nothing waits for it. If lines arrive faster than the thread can write them,
//! it drops and counts them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use base::Time;
use http::{Method, StatusCode};

/// The maximum number of lines waiting to be written.
const WAITING: usize = 1000;
/// The maximum length of a path segment that is shown in full. Identifiers are shorter; a secret put in the path by
/// mistake is longer.
const SEGMENT: usize = 40;
/// How many characters of a longer segment are shown.
const BEGINNING: usize = 8;
/// The maximum number of characters of a path that are shown.
const PATH: usize = 160;

/// The style of less important parts.
pub const DIM: Style = Style::new().dimmed();

/// The terminal, or the file that its output is redirected to. If the output is a file, or `NO_COLOR` is set, there are
/// no colours.
#[derive(Clone)]
pub struct Terminal {
    /// `None` with `QUIET=1`.
    lines: Option<SyncSender<String>>,
    is_open: Arc<AtomicBool>,
    left_out: Arc<AtomicU64>,
}

/// A request with its response.
pub struct Answered<'a> {
    pub method: &'a Method,
    /// The path, without the query.
    pub path: &'a str,
    pub status: StatusCode,
    /// The kind of Problem, if the response is one.
    pub problem: Option<&'a str>,
    pub took: Duration,
}

impl Terminal {
    /// A terminal that shows nothing before [`Self::open`], so that requests during startup are not shown. With
    /// `quiet`, it never shows anything.
    pub fn new(quiet: bool) -> Self {
        let left_out = Arc::new(AtomicU64::new(0));
        let lines = (!quiet).then(|| {
            let (lines, waiting) = sync_channel(WAITING);
            let left_out = Arc::clone(&left_out);
            // If no thread can be started, nothing is shown, but the service keeps running.
            drop(thread::Builder::new().name("terminal".to_owned()).spawn(move || write(&waiting, &left_out)));
            lines
        });
        Self { lines, is_open: Arc::default(), left_out }
    }

    /// Shows lines from now on.
    pub fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Whether this terminal never shows anything.
    pub fn is_quiet(&self) -> bool {
        self.lines.is_none()
    }

    /// Shows a request.
    pub fn answered(&self, at: Time, answered: &Answered<'_>) {
        if self.is_open.load(Ordering::Relaxed) && !self.is_quiet() {
            self.show(request_line(at, answered));
        }
    }

    /// Shows a line unchanged.
    pub fn show(&self, line: String) {
        if let Some(lines) = &self.lines
            && lines.try_send(line).is_err()
        {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write(lines: &Receiver<String>, left_out: &AtomicU64) {
    for line in lines {
        anstream::eprintln!("{line}");
        match left_out.swap(0, Ordering::Relaxed) {
            0 => {}
            left_out => anstream::eprintln!("{DIM}… {left_out} more lines were dropped{DIM:#}"),
        }
    }
}

fn request_line(at: Time, answered: &Answered<'_>) -> String {
    let Answered { method, path, status, problem, took } = answered;
    let clock = clock(&at.to_string());
    let path = shown_path(path);
    let took = took.as_millis();
    let colour = colour_of(Some(status.as_u16()));
    let problem = problem.map(|kind| format!(" {colour}{kind}{colour:#}")).unwrap_or_default();
    let status = status.as_u16();
    format!(
        "{DIM}{clock}{DIM:#} {:<6} {colour}{status}{colour:#} {path}{problem} {DIM}{took} ms{DIM:#}",
        method.as_str()
    )
}

/// The time of day from a date, in UTC as in the logs.
pub fn clock(date: &str) -> String {
    date.get(11..19).map(|time| format!("{time}Z")).unwrap_or_default()
}

/// The style of a status, or of a missing response.
pub fn colour_of(status: Option<u16>) -> Style {
    let colour = match status {
        Some(200..=299) => AnsiColor::Green,
        Some(300..=399) => AnsiColor::Cyan,
        Some(400..=499) => AnsiColor::Yellow,
        _ => AnsiColor::Red,
    };
    colour.on_default()
}

/// A client's path as the terminal shows it: shortened, and without control characters.
fn shown_path(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment.chars().count() {
        ..=SEGMENT => segment.to_owned(),
        _ => segment.chars().take(BEGINNING).chain(['…']).collect(),
    });
    let path = segments.collect::<Vec<_>>().join("/");
    let mut shown = plain(&path, PATH);
    if path.chars().count() > PATH {
        shown.push('…');
    }
    shown
}

/// The first characters of a string, without control characters.
pub fn plain(text: &str, most: usize) -> String {
    text.chars().take(most).map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    const AT: Time = Time::from_millis(1_795_167_900_123);

    fn line(method: &str, path: &str, status: u16, problem: Option<&str>) -> String {
        let method: Method = method.parse().expect("a verb");
        let status = StatusCode::from_u16(status).expect("a status");
        let took = Duration::from_micros(12_900);
        request_line(AT, &Answered { method: &method, path, status, problem, took })
    }

    #[test]
    fn a_request_is_one_short_line() {
        let shown = |method, path, status, problem| strip_str(&line(method, path, status, problem)).to_string();
        assert_eq!(shown("GET", "/openapi.json", 200, None), "09:45:00Z GET    200 /openapi.json 12 ms");
        assert_eq!(
            shown("DELETE", "/api/managing-entity/a/webhook/whk_1", 404, Some("webhook-not-found")),
            "09:45:00Z DELETE 404 /api/managing-entity/a/webhook/whk_1 webhook-not-found 12 ms"
        );
    }

    #[test]
    fn a_status_has_a_colour() {
        let codes = |status| line("GET", "/", status, None).matches("\u{1b}[").count();
        assert!(codes(200) > 2 && line("GET", "/", 200, None) != line("GET", "/", 500, None).replace("500", "200"));
    }

    #[test]
    fn a_shown_path_has_no_secret_and_no_control_characters() {
        let secret = "s".repeat(43);
        assert_eq!(shown_path(&format!("/oauth2/{secret}/end")), "/oauth2/ssssssss…/end");
        assert_eq!(shown_path("/api/managing-entity/demo-hotel/webhook"), "/api/managing-entity/demo-hotel/webhook");
        assert_eq!(shown_path("/a\u{1b}[2J\u{9b}\r\n"), "/a?[2J???");
        let long = "/segment".repeat(1000);
        assert_eq!(shown_path(&long).chars().count(), PATH + 1);
    }

    #[test]
    fn a_quiet_terminal_has_no_lines_and_a_slow_one_delays_nothing() {
        assert!(Terminal::new(true).is_quiet());
        let (lines, waiting) = sync_channel(1);
        let slow = Terminal { lines: Some(lines), is_open: Arc::default(), left_out: Arc::default() };
        (0..3).for_each(|number| slow.show(number.to_string()));
        assert_eq!(
            (waiting.try_iter().collect::<Vec<_>>(), slow.left_out.load(Ordering::Relaxed)),
            (vec!["0".into()], 2)
        );
    }
}
