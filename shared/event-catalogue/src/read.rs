//! Reads a folder into a catalogue.

use std::path::Path;

use crate::{
    catalogue::{Catalogue, SERVICE, Type},
    list,
    parts::Parts,
    schemas::Files,
    source::Mistake,
};

/// The maximum size of a catalogue, in bytes. The AsyncAPI document contains all of it, and a Lambda response has at
/// most 6 MB.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// Reads a folder's catalogue and adds the types of the service.
///
/// # Errors
/// Every mistake found, in the order of the files.
pub fn read(folder: &Path) -> Result<Catalogue, Vec<Mistake>> {
    let mut own = read_folder(Path::new(SERVICE), None)?;
    own.types.iter_mut().for_each(|kind| kind.is_own = true);
    let mut catalogue = read_folder(folder, Some(&own.types))?;
    catalogue.types.append(&mut own.types);
    let size = catalogue.size();
    if size > MAX_BYTES {
        let message = format!(
            "schemas, samples and descriptions have {size} bytes without white space; at most {MAX_BYTES} \
            are allowed"
        );
        return Err(vec![Mistake { path: folder.to_owned(), line: None, message }]);
    }
    Ok(catalogue)
}

/// Reads a folder. A mistake in the list or in a shared part would cause more in the details, so the details are read
/// afterwards.
fn read_folder(folder: &Path, own: Option<&[Type]>) -> Result<Catalogue, Vec<Mistake>> {
    let source = list::source(folder).map_err(|mistake| vec![mistake])?;
    let mut mistakes = Vec::new();
    let list = list::read(&source, own, &mut mistakes);
    let files = Files::read(folder, &mut mistakes);
    let parts = files.common.as_ref().map(|common| Parts::read(common, &mut mistakes)).unwrap_or_default();
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let details = files.details(&list, &mut mistakes);
    let mut types = Vec::new();
    for entry in &list {
        let Some(details) = details.get(&entry.value) else {
            let area = entry.value.split('.').next().unwrap_or_default();
            let message = format!("{} has no schema: add it to schemas/{area}.json", entry.value);
            mistakes.push(source.mistake(entry.at, "", message));
            continue;
        };
        match details.read(entry, &parts) {
            Ok(kind) => types.push(kind),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if mistakes.is_empty() { Ok(Catalogue { types, parts: parts.0 }) } else { Err(mistakes) }
}
