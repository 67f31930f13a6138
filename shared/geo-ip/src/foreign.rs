//! Recognises files that mirrors serve with status 200 instead of a database. The message can then name the kind of
//! file and say what to do.

/// The number of bytes that are examined.
pub const EXAMINED: usize = 512;

/// A kind of file that is not a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ForeignFile {
    #[error(
        "the server returned a web page (HTML or XML) instead of a database: open the address in a browser; the file \
         may have moved, or require a login"
    )]
    Page,
    #[error("the server returned JSON instead of a database: use the address of the file, not of its description")]
    Json,
    #[error(
        "the server returned a Git LFS pointer instead of a database: use the address of the content; on GitHub, it \
         begins with https://media.githubusercontent.com/media/"
    )]
    LfsPointer,
    #[error("the server returned {0}, which is not supported: use the address of a `.mmdb`, `.mmdb.gz` or `.tar.gz`")]
    Archive(&'static str),
}

/// The first bytes of archives that are not unpacked.
const ARCHIVES: [(&[u8], &str); 5] = [
    (b"PK\x03\x04", "a ZIP archive"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"(\xb5/\xfd", "a zstd file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
];

impl ForeignFile {
    /// Recognises a file by its first bytes. A database begins with node numbers, most of them small: it is not text,
    /// and it does not begin like one of these archives.
    pub fn recognize(beginning: &[u8]) -> Option<Self> {
        if let Some((_, name)) = ARCHIVES.iter().find(|(magic, _)| beginning.starts_with(magic)) {
            return Some(Self::Archive(name));
        }
        if beginning.get(257..262) == Some(b"ustar") {
            return Some(Self::Archive("an uncompressed tar archive"));
        }
        if beginning.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()) {
            return None;
        }
        let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
        match text.first()? {
            b'<' => Some(Self::Page),
            b'{' | b'[' => Some(Self::Json),
            _ if text.starts_with(b"version https://git-lfs") => Some(Self::LfsPointer),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::DatabaseBuilder;
    use serde_json::json;

    #[test]
    fn each_kind_of_file_is_recognized_by_its_beginning() {
        let tar = [&[0; 257][..], b"ustar"].concat();
        for (beginning, foreign) in [
            (&b"<!DOCTYPE html>\n<title>Sign in</title>"[..], Some(ForeignFile::Page)),
            (b"\xef\xbb\xbf\r\n <?xml version=\"1.0\"?><Error>", Some(ForeignFile::Page)),
            ("<html>Anmeldung für Gäste".as_bytes(), Some(ForeignFile::Page)),
            (b"{\"message\": \"rate limit\"}", Some(ForeignFile::Json)),
            (b"\n[1]", Some(ForeignFile::Json)),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", Some(ForeignFile::LfsPointer)),
            (b"PK\x03\x04\x14\0\0\0", Some(ForeignFile::Archive("a ZIP archive"))),
            (b"\xfd7zXZ\0\0", Some(ForeignFile::Archive("an xz file"))),
            (&tar, Some(ForeignFile::Archive("an uncompressed tar archive"))),
            (b"", None),
            (b" ", None),
            (b"<\0\x01", None),
            (b"not found", None),
        ] {
            assert_eq!(ForeignFile::recognize(beginning), foreign, "{}", String::from_utf8_lossy(beginning));
        }
    }

    #[test]
    fn a_database_is_not_taken_for_another_file() {
        for record_size in [24, 28, 32] {
            let mut builder = DatabaseBuilder::new("GeoLite2-City", 5);
            builder.record_size = record_size;
            let database = builder.with_many(200).with("1.1.1.0/24", json!({"a": "b"})).build();
            assert_eq!(ForeignFile::recognize(&database[..EXAMINED]), None, "{record_size}");
        }
    }
}
