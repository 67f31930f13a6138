//! Checksums in lower-case hexadecimal: SHA-256 for the names of releases, and MD5 to compare with MaxMind's.

use std::fmt::Write;

use aws_lc_rs::digest::{self, SHA256};
use md5::{Digest, Md5};

/// The SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&SHA256, bytes).as_ref())
}

/// The SHA-256 of content in chunks.
pub struct Sha256(digest::Context);

impl Sha256 {
    pub fn new() -> Self {
        Self(digest::Context::new(&SHA256))
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> String {
        hex(self.0.finish().as_ref())
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

/// Both checksums of content in chunks.
#[derive(Default)]
pub struct Both {
    sha256: Sha256,
    md5: Md5,
}

impl Both {
    pub fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.md5.update(bytes);
    }

    pub fn finish(self) -> (String, String) {
        (self.sha256.finish(), hex(&self.md5.finalize()))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_agree_with_published_examples() {
        let mut both = Both::default();
        both.update(b"a");
        both.update(b"bc");
        let (sha256, md5) = both.finish();
        assert_eq!(sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sha256, super::sha256(b"abc"));
        assert_eq!(md5, "900150983cd24fb0d6963f7d28e17f72");
    }
}
