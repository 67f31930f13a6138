//! The content of a file, or of standard input.

use std::{
    ffi::OsString,
    fmt, fs,
    io::{self, Read},
    path::PathBuf,
};

use crate::{failure::Failure, machine::without_byte_order_mark};

/// Where an argument's content comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    File(PathBuf),
    /// Standard input, which can be read once.
    Stdin,
}

impl Input {
    /// The exact content.
    pub fn bytes(&self) -> Result<Vec<u8>, Failure> {
        let content = match self {
            Self::File(path) => fs::read(path),
            Self::Stdin => {
                let mut content = Vec::new();
                io::stdin().read_to_end(&mut content).map(|_| content)
            }
        };
        content.map_err(|error| Failure::Usage(format!("{self} cannot be read: {error}")))
    }

    /// The content as text, without a byte order mark.
    pub fn text(&self) -> Result<String, Failure> {
        let text = String::from_utf8(self.bytes()?).map_err(|_| Failure::Usage(format!("{self} is not text")))?;
        Ok(without_byte_order_mark(&text).to_owned())
    }
}

/// A file's path; `-` is standard input.
impl From<OsString> for Input {
    fn from(argument: OsString) -> Self {
        if argument == "-" { Self::Stdin } else { Self::File(argument.into()) }
    }
}

impl Input {
    /// The file named by an argument that begins with `@`; `@-` is standard input.
    pub fn of_reference(argument: &str) -> Option<Self> {
        argument.strip_prefix('@').map(|path| Self::from(OsString::from(path)))
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Stdin => f.write_str("standard input"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_by_its_path_and_named_in_errors() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("content");
        fs::write(&path, b"a\xff").expect("it can be written");
        let input = Input::from(path.clone().into_os_string());
        assert_eq!(input.bytes().expect("it exists"), b"a\xff");
        assert_eq!(input.text().expect_err("it is no text").to_string(), format!("{} is not text", path.display()));
        let missing = Input::from(OsString::from("nothing")).bytes().expect_err("there is none").to_string();
        assert!(missing.starts_with("nothing cannot be read: "), "{missing}");
        assert_eq!(Input::from(OsString::from("-")), Input::Stdin);
    }

    #[test]
    fn text_has_no_byte_order_mark_but_bytes_stay_exact() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("content");
        fs::write(&path, b"\xef\xbb\xbfa").expect("it can be written");
        let input = Input::from(path.into_os_string());
        assert_eq!(input.text().expect("it is text"), "a");
        assert_eq!(input.bytes().expect("it exists"), b"\xef\xbb\xbfa");
    }

    #[test]
    fn a_reference_names_a_file_or_standard_input() {
        assert_eq!(Input::of_reference("@token.txt"), Some(Input::File("token.txt".into())));
        assert_eq!(Input::of_reference("@-"), Some(Input::Stdin));
        assert_eq!(Input::of_reference("-"), None);
    }
}
