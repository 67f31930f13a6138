//! The table on disk, created to match the template.

use std::{
    error::Error,
    fs::{File, Permissions},
    io::{self, Read},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use dynoxide::{Database, DynoxideError};
use rusqlite::ErrorCode;
use serde_json::{Value, json};
use template::Table;

use super::calls::Connections;
use crate::{data_folder::clean_command, disk};

/// The table's name, which must have at least eleven characters for the emulator.
pub const TABLE_NAME: &str = "waypost-local";

/// Why the table on disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The file is not a database, or is damaged.
    #[error(
        "the table {file} is damaged, or not this service's table: restore it from a backup, or start over with \
         `{}`, which also removes the secrets", cleaning(.file)
    )]
    Damaged {
        /// The path of the table's file.
        file: String,
    },
    /// The file cannot be opened for another reason.
    #[error("the table {file} cannot be opened")]
    Open {
        /// The path of the table's file.
        file: String,
        /// The error from the file system or the database.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The in-memory database cannot be created.
    #[error("the table cannot be created in memory")]
    Memory(#[source] Box<DynoxideError>),
    /// The database refused to create the template's table.
    #[error("the table cannot be created: {0}")]
    Create(String),
    /// The table in the file was created from a different template.
    #[error("the keys or indexes of the table {file} differ from template.yaml; start over with `{}`", cleaning(.file))]
    Outdated {
        /// The path of the table's file.
        file: String,
    },
}

/// The command that removes the table with all other data in its folder.
fn cleaning(table: &str) -> String {
    clean_command(Path::new(table).parent().unwrap_or(Path::new(".")))
}

/// Creates the file, readable only by its owner, if it is missing.
fn make_private(file: &str) -> io::Result<()> {
    let file = File::options().create(true).append(true).mode(0o600).open(file)?;
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Whether the file is empty, or begins with SQLite's header. dynoxide takes any other file for an encrypted database,
/// and its error message is for programmers. <https://www.sqlite.org/fileformat.html#the_database_header>
fn is_database(file: &str) -> io::Result<bool> {
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    let mut beginning = Vec::with_capacity(MAGIC.len());
    File::open(file)?.take(MAGIC.len() as u64).read_to_end(&mut beginning)?;
    Ok(beginning.is_empty() || beginning == MAGIC)
}

/// The error for a file that could not be opened. This function checks the disk itself, since SQLite reports some
/// writes to a full disk as I/O errors.
fn fault(file: &str, error: DynoxideError) -> SchemaError {
    let code = match &error {
        DynoxideError::SqliteError(error) => error.sqlite_error_code(),
        _ => None,
    };
    let folder = Path::new(file).parent().unwrap_or(Path::new("."));
    let file = file.to_owned();
    match code {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => SchemaError::Damaged { file },
        Some(ErrorCode::DiskFull) => refused(&file, io::ErrorKind::StorageFull.into()),
        _ if disk::has_no_room(folder) => refused(&file, io::ErrorKind::StorageFull.into()),
        _ => SchemaError::Open { file, source: error.into() },
    }
}

fn refused(file: &str, error: io::Error) -> SchemaError {
    SchemaError::Open { file: file.to_owned(), source: error.into() }
}

/// Opens the file and creates the template's table if it is missing. The connection for reads is opened last, so that
/// it knows the table.
pub fn open(file: &str, table: &Table) -> Result<Connections, SchemaError> {
    let writing = open_to_write(file, table)?;
    let reading = Database::new(file).map_err(|error| fault(file, error))?;
    Ok(Connections { writing, reading })
}

fn open_to_write(file: &str, table: &Table) -> Result<Database, SchemaError> {
    let create = |error: &dyn std::fmt::Display| SchemaError::Create(error.to_string());
    // SQLite gives the same permissions to its other files, which contain the latest writes.
    make_private(file).map_err(|error| refused(file, error))?;
    if !is_database(file).map_err(|error| refused(file, error))? {
        return Err(SchemaError::Damaged { file: file.to_owned() });
    }
    let database = Database::new(file).map_err(|error| fault(file, error))?;
    // This call sets SQLite's `synchronous` to NORMAL: SQLite waits for the disk only when it merges the log into the
    // file. Killing the process loses nothing, since the kernel has every commit. A power or kernel failure loses the
    // last commits, but keeps the order and integrity of the others. Waiting for the disk at each commit would cost
    // more than the rest of the write.
    database.disable_bulk_loading().map_err(|error| fault(file, error))?;

    let name = json!({ "TableName": TABLE_NAME });
    let describe = serde_json::from_value(name.clone()).map_err(|error| create(&error))?;
    match database.describe_table(describe) {
        Ok(existing) => {
            let existing = serde_json::to_value(existing).map_err(|error| create(&error))?;
            let is_present = is_declared(&existing["Table"], &table.definition);
            return if is_present { Ok(database) } else { Err(SchemaError::Outdated { file: file.to_owned() }) };
        }
        Err(DynoxideError::ResourceNotFoundException(_)) => {}
        Err(error) => return Err(fault(file, error)),
    }

    let mut definition = table.definition.clone();
    definition["TableName"] = json!(TABLE_NAME);
    let request = serde_json::from_value(definition).map_err(|error| create(&error))?;
    database.create_table(request).map_err(|error| match error {
        error @ (DynoxideError::SqliteError(_) | DynoxideError::InternalServerError(_)) => fault(file, error),
        error => create(&error),
    })?;
    if let Some(attribute) = &table.expiry_attribute {
        let mut request = name;
        request["TimeToLiveSpecification"] = json!({ "AttributeName": attribute, "Enabled": true });
        let request = serde_json::from_value(request).map_err(|error| create(&error))?;
        database.update_time_to_live(request).map_err(|error| create(&error))?;
    }
    Ok(database)
}

/// Whether a table has the keys and indexes that the template declares.
fn is_declared(existing: &Value, declared: &Value) -> bool {
    let indexes = |table: &Value| {
        let form = |index: &Value| ["IndexName", "KeySchema", "Projection"].map(|member| index[member].clone());
        let mut indexes: Vec<_> = table["GlobalSecondaryIndexes"].as_array().into_iter().flatten().map(form).collect();
        indexes.sort_by_key(|[name, ..]| name.to_string());
        indexes
    };
    existing["KeySchema"] == declared["KeySchema"] && indexes(existing) == indexes(declared)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(indexes: &[&str]) -> Value {
        let index = |name: &&str| {
            json!({
                "IndexName": name,
                "KeySchema": [{ "AttributeName": name, "KeyType": "HASH" }],
                "Projection": { "ProjectionType": "KEYS_ONLY" },
            })
        };
        let attribute = |name: &&str| json!({ "AttributeName": name, "AttributeType": "S" });
        let attributes: Vec<Value> = ["pk"].iter().chain(indexes).map(attribute).collect();
        let indexes: Vec<Value> = indexes.iter().map(index).collect();
        json!({
            "AttributeDefinitions": attributes,
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }],
            "BillingMode": "PAY_PER_REQUEST",
            "GlobalSecondaryIndexes": indexes,
        })
    }

    /// The startup error for a table file with this content.
    fn said_of(content: &[u8]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("table.db");
        std::fs::write(&file, content).expect("written");
        let table = Table { logical_id: "Table".to_owned(), definition: definition(&["one"]), expiry_attribute: None };
        open(&file.to_string_lossy(), &table).err().map(|error| base::logging::chain(&error)).unwrap_or_default()
    }

    #[test]
    fn a_damaged_table_is_reported_without_the_advice_of_a_library() {
        assert_eq!(said_of(b""), "", "a start was stopped before it wrote");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("table.db");
        let table = Table { logical_id: "Table".to_owned(), definition: definition(&["one"]), expiry_attribute: None };
        drop(open(&file.to_string_lossy(), &table).expect("a new table"));
        let whole = std::fs::read(&file).expect("readable");
        // The header is intact, but the pages after it are not.
        let mut torn = whole.clone();
        torn[100..].fill(0xa5);
        for content in [b"not a database, but a text of more than a hundred bytes".repeat(3), b"S".to_vec(), torn] {
            let said = said_of(&content);
            assert!(said.contains("is damaged") && said.contains("restore it from a backup"), "{said}");
            assert!(!said.contains("encrypt") && !said.contains("Database::"), "{said}");
        }
    }

    #[test]
    fn a_table_that_finds_no_room_is_not_called_damaged() {
        let full = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL), None);
        let error = fault("data/table.db", DynoxideError::SqliteError(full));
        assert!(disk::is_cause_of(&error) && !error.to_string().contains("clean-data"), "{error}");
        let said = refused("data/table.db", io::ErrorKind::PermissionDenied.into()).to_string();
        assert!(said.contains("cannot be opened") && !said.contains("clean-data"), "{said}");
    }

    #[test]
    fn a_table_with_other_keys_or_indexes_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("table.db").to_string_lossy().into_owned();
        let opened = |definition: Value| {
            let table = Table { logical_id: "Table".to_owned(), definition, expiry_attribute: None };
            open(&file, &table).map(drop).map_err(|error| error.to_string())
        };
        opened(definition(&["one", "two"])).expect("a new table");
        opened(definition(&["two", "one"])).expect("the order of indexes is no matter");
        let mut other_index = definition(&["one", "two"]);
        other_index["GlobalSecondaryIndexes"][0]["Projection"]["ProjectionType"] = json!("ALL");
        let mut other_keys = definition(&["one", "two"]);
        other_keys["KeySchema"][0]["AttributeName"] = json!("two");
        for other in [definition(&["one"]), definition(&["one", "two", "three"]), other_index, other_keys] {
            let outdated = opened(other).expect_err("another table");
            assert!(outdated.contains(&format!("`make clean-data DATA='{}'`", folder.path().display())), "{outdated}");
        }
    }
}
