//! Files that only their owner can read: secrets, and `service.env`.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Writes a private file atomically: after a crash, it has either the old content or the new one.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    // A crash may have left this file with a different mode.
    let _ = fs::remove_file(&unfinished);
    let mut file = File::options().create_new(true).write(true).mode(0o600).open(&unfinished)?;
    file.write_all(content).and_then(|()| file.sync_all())?;
    fs::rename(&unfinished, path)?;
    // The new name is durable only once its folder is synced.
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
