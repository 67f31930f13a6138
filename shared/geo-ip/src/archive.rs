//! Unpacks the database from the served file (`.mmdb`, `.mmdb.gz` or `.tar.gz`, detected by content). The archive is
//! untrusted: the unpacked size is limited, and the names in it are never used as paths.

use std::{
    fs::File,
    io::{self, BufReader, Read, Write},
    path::Path,
};

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType, PaxExtensions};

use super::{
    foreign::{EXAMINED, ForeignFile},
    hash,
};

/// The largest unpacked archive, in bytes.
pub const MAX_EXPANDED: u64 = 1024 * 1024 * 1024;
/// The licence files that providers ship with their databases.
const LICENCES: [&str; 3] = ["COPYRIGHT.txt", "LICENSE.txt", "README.txt"];
/// The largest licence text, and the largest extended header, in bytes.
const MAX_TEXT: u64 = 64 * 1024;
const BUFFER: usize = 64 * 1024;

/// An unpacked database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    pub size: u64,
    pub sha256: String,
    pub md5: String,
    /// The provider's terms, if the archive contains them.
    pub licence: Option<String>,
}

/// The served file could not be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("the downloaded file is damaged and could not be unpacked")]
    Damaged(#[source] io::Error),
    #[error("the downloaded file is larger than {} MB when unpacked", .0 / (1024 * 1024))]
    TooLarge(u64),
    #[error("the downloaded file is empty")]
    Empty,
    #[error("{0}")]
    Foreign(ForeignFile),
    #[error("the archive has {0} databases instead of one")]
    Databases(usize),
    #[error("the archive has {0}")]
    Suspicious(&'static str),
    #[error("{}", super::download::on_disk(.0))]
    Disk(#[source] io::Error),
}

/// Unpacks the database to a file. Blocks for about a second.
pub fn expand(served: &Path, into: &Path, limit: u64) -> Result<Expanded, ArchiveError> {
    let mut served = File::open(served).map_err(ArchiveError::Disk)?;
    let beginning = first_bytes(&mut served).map_err(ArchiveError::Disk)?;
    let mut served = beginning.as_slice().chain(served);
    if !beginning.starts_with(&[0x1f, 0x8b, 8]) {
        if let Some(foreign) = ForeignFile::recognize(&beginning) {
            return Err(ArchiveError::Foreign(foreign));
        }
        return copy(&mut Bounded::new(&mut served, limit), into);
    }
    let unzipped = MultiGzDecoder::new(BufReader::with_capacity(BUFFER, served));
    let mut unzipped = Bounded::new(unzipped, limit);
    let beginning = first_bytes(&mut unzipped).map_err(|error| unzipped.fault(error))?;
    let mut content = (&beginning[..]).chain(unzipped);
    if beginning.get(257..262) == Some(b"ustar") {
        let expanded = untar(&mut content, into);
        // Also read the zeros after the archive's end, so that gzip verifies the checksum after them.
        let rest = io::copy(&mut content, &mut io::sink());
        let (_, unzipped) = content.into_inner();
        let expanded = expanded.map_err(|error| unzipped.found(error))?;
        rest.map_err(|error| unzipped.fault(error))?;
        Ok(expanded)
    } else if let Some(foreign) = ForeignFile::recognize(&beginning) {
        Err(ArchiveError::Foreign(foreign))
    } else {
        let copied = copy(&mut content, into);
        copied.map_err(|error| content.into_inner().1.found(error))
    }
}

/// Finds the single database in an archive, and the licence next to it.
fn untar(archive: impl Read, into: &Path) -> Result<Expanded, ArchiveError> {
    let mut archive = Archive::new(archive);
    // Raw, so that the size of extended headers can be checked before they are read.
    let entries = archive.entries().map_err(ArchiveError::Damaged)?.raw(true);
    let mut expanded = None;
    let mut databases = 0;
    let mut licences = Vec::new();
    let mut described: Option<Vec<u8>> = None;
    for entry in entries {
        let mut entry = entry.map_err(ArchiveError::Damaged)?;
        let kind = entry.header().entry_type();
        match kind {
            EntryType::Regular | EntryType::Continuous | EntryType::Directory => {}
            EntryType::XHeader => {
                described = pax_path(&small(&mut entry)?)?.or(described);
                continue;
            }
            EntryType::GNULongName => {
                let mut name = small(&mut entry)?;
                name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
                described = Some(name);
                continue;
            }
            EntryType::XGlobalHeader => {
                small(&mut entry)?;
                continue;
            }
            EntryType::Link | EntryType::Symlink => return Err(ArchiveError::Suspicious("a link")),
            _ => return Err(ArchiveError::Suspicious("an entry that is neither a file nor a folder")),
        }
        let name = described.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let name = std::str::from_utf8(&name).map_err(|_| ArchiveError::Suspicious("a name that is not UTF-8"))?;
        check_path(name)?;
        let file = name.rsplit('/').next().unwrap_or_default();
        if kind == EntryType::Directory || is_side_file(name) {
            continue;
        } else if file.ends_with(".mmdb") {
            databases += 1;
            if databases == 1 {
                expanded = Some(copy(&mut entry, into)?);
            }
        } else if LICENCES.contains(&file) && entry.size() <= MAX_TEXT {
            let text = small(&mut entry)?;
            licences.push((file.to_owned(), String::from_utf8_lossy(&text).into_owned()));
        }
    }
    licences.sort();
    let texts: Vec<_> =
        licences.into_iter().map(|(name, text)| format!("--- {name}\n\n{}\n", text.trim_end())).collect();
    match expanded {
        Some(expanded) if databases == 1 => {
            Ok(Expanded { licence: (!texts.is_empty()).then(|| texts.join("\n")), ..expanded })
        }
        _ => Err(ArchiveError::Databases(databases)),
    }
}

/// Reads a small member, such as an extended header.
fn small(entry: &mut impl Read) -> Result<Vec<u8>, ArchiveError> {
    let mut bytes = Vec::new();
    entry.take(MAX_TEXT + 1).read_to_end(&mut bytes).map_err(ArchiveError::Damaged)?;
    if bytes.len() as u64 > MAX_TEXT {
        return Err(ArchiveError::Suspicious("a member with an oversized header"));
    }
    Ok(bytes)
}

/// The next member's name in an extended header.
fn pax_path(description: &[u8]) -> Result<Option<Vec<u8>>, ArchiveError> {
    let mut path = None;
    for extension in PaxExtensions::new(description) {
        let extension = extension.map_err(ArchiveError::Damaged)?;
        match extension.key_bytes() {
            b"path" => path = Some(extension.value_bytes().to_vec()),
            // A second size would change how the rest of the archive is read.
            b"size" => return Err(ArchiveError::Suspicious("a member with two sizes")),
            _ => {}
        }
    }
    Ok(path)
}

/// Refuses names that lead out of the archive. They would do no harm, since names are never used as paths, but no
/// genuine provider sends such an archive.
fn check_path(name: &str) -> Result<(), ArchiveError> {
    let outside = name.starts_with('/') || name.split(['/', '\\']).any(|part| part == "..") || name.contains('\0');
    if outside { Err(ArchiveError::Suspicious("a name that leads outside the archive")) } else { Ok(()) }
}

/// Whether a member contains only another member's attributes. These are AppleDouble files, which tar on macOS adds for
/// each file, and extended headers that some tools pack as files. Their names may also end in `.mmdb`.
fn is_side_file(name: &str) -> bool {
    let folder = |part: &str| part == "__MACOSX" || part.starts_with("PaxHeader");
    name.rsplit('/').next().is_some_and(|file| file.starts_with("._")) || name.split('/').any(folder)
}

/// Copies to a file and computes the checksums.
fn copy(from: &mut impl Read, into: &Path) -> Result<Expanded, ArchiveError> {
    let mut file = File::create(into).map_err(ArchiveError::Disk)?;
    let mut size = 0;
    let mut hashes = hash::Both::default();
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(too_large(&error).unwrap_or(ArchiveError::Damaged(error))),
        };
        size += read as u64;
        hashes.update(&buffer[..read]);
        file.write_all(&buffer[..read]).map_err(ArchiveError::Disk)?;
    }
    if size == 0 {
        return Err(ArchiveError::Empty);
    }
    file.sync_all().map_err(ArchiveError::Disk)?;
    let (sha256, md5) = hashes.finish();
    Ok(Expanded { size, sha256, md5, licence: None })
}

fn first_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(EXAMINED as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A reader that fails beyond a limit.
struct Bounded<R> {
    from: R,
    left: u64,
    limit: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("more than {0} bytes")]
struct BeyondLimit(u64);

fn too_large(error: &io::Error) -> Option<ArchiveError> {
    let limit = error.get_ref()?.downcast_ref::<BeyondLimit>()?;
    Some(ArchiveError::TooLarge(limit.0))
}

impl<R> Bounded<R> {
    fn new(from: R, limit: u64) -> Self {
        Self { from, left: limit.saturating_add(1), limit }
    }

    /// Why a read failed. A parser may have replaced the limit's error with a different one.
    fn fault(&self, error: io::Error) -> ArchiveError {
        if self.left == 0 { ArchiveError::TooLarge(self.limit) } else { ArchiveError::Damaged(error) }
    }

    fn found(&self, error: ArchiveError) -> ArchiveError {
        match error {
            ArchiveError::Damaged(error) => self.fault(error),
            other => other,
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.from.read(&mut buffer[..most])?;
        self.left -= read as u64;
        if self.left == 0 { Err(io::Error::other(BeyondLimit(self.limit))) } else { Ok(read) }
    }
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
