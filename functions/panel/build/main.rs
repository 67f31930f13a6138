//! Packs the files of `panel/` into the program, each plain and compressed, in a folder named by a hash of all files.
//! The modules become one script.

mod linker;

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};

const FOLDER: &str = "../../panel";
/// The page, which is not served among the files.
const PAGE: &str = "index.html";
/// The module that the page starts, and the linked script's name.
const SCRIPT: &str = "main.js";
/// The folder of files, as the page's source names it.
const ASSETS: &str = "/panel/assets/";

#[expect(clippy::disallowed_methods, reason = "cargo passes settings to build scripts in the environment")]
fn main() {
    println!("cargo::rerun-if-changed={FOLDER}");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets the output folder"));
    let mut files = BTreeMap::new();
    read(Path::new(FOLDER), "", &mut files);
    let page = files.remove(PAGE).expect("the panel has a page");
    let page = String::from_utf8(page).expect("the page is text");
    let script = linked(&mut files);
    files.insert(SCRIPT.to_owned(), script.into_bytes());
    for (_, style) in files.iter_mut().filter(|(path, _)| path.ends_with(".css")) {
        *style = shortened(std::mem::take(style)).into_bytes();
    }
    let release = &hash(files.iter().flat_map(|(path, content)| [path.as_bytes(), content.as_slice()]))[..16];

    let mut code = format!("/// The folder of this release's files.\npub(crate) const RELEASE: &str = {release:?};\n");
    let page = page.replace(ASSETS, &format!("{ASSETS}{release}/"));
    writeln!(code, "/// The page, without the settings of the deployment.\npub(crate) const PAGE: &str = {page:?};")
        .expect("writing to a String cannot fail");
    code += "const FILES: &[(&str, File)] = &[\n";
    for (position, (path, content)) in files.iter().enumerate() {
        let media_type = media_type(path).expect("other files are not read");
        let packed = packed(&out, &position.to_string(), media_type, content);
        writeln!(code, "    ({path:?}, {packed}),").expect("writing to a String cannot fail");
    }
    code += "];\n";
    fs::write(out.join("files.rs"), code).expect("the output folder is writable");
}

/// Takes the modules and their JSON out of the files and links them.
fn linked(files: &mut BTreeMap<String, Vec<u8>>) -> String {
    let modules = files.extract_if(.., |path, _| path.ends_with(".js") || path.ends_with(".json"));
    let text = |content| String::from_utf8(content).expect("a module is text");
    let sources = modules.map(|(path, content)| (path, text(content))).collect();
    linker::link(&sources, SCRIPT).unwrap_or_else(|error| panic!("panel/{error}"))
}

/// A style sheet without indentation, empty lines and comments, each of which fills a line.
fn shortened(style: Vec<u8>) -> String {
    let style = String::from_utf8(style).expect("a style sheet is text");
    let is_shown = |line: &&str| !(line.is_empty() || line.starts_with("/*") && line.ends_with("*/"));
    style.lines().map(str::trim).filter(is_shown).collect::<Vec<_>>().join("\n")
}

/// Reads the files that browsers load, by their paths below a folder. Other files are for developers.
fn read(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("the panel is part of the project") {
        let entry = entry.expect("the panel can be read");
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read(&entry.path(), &format!("{path}/"), files);
        } else if media_type(&path).is_some() {
            files.insert(path, fs::read(entry.path()).expect("a file of the panel can be read"));
        }
    }
}

fn media_type(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map_or(name, |(_, extension)| extension) {
        "html" if path == PAGE => Some("text/html; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "png" => Some("image/png"),
        "json" => Some("application/json"),
        // The licences of third-party files are served with them.
        "LICENSE" => Some("text/plain; charset=utf-8"),
        _ => None,
    }
}

/// Writes a file and its compressed form, and returns the Rust expression for both.
fn packed(out: &Path, name: &str, media_type: &str, content: &[u8]) -> String {
    let plain = out.join(name);
    let gzip = out.join(format!("{name}.gz"));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).expect("writing to memory cannot fail");
    fs::write(&plain, content).expect("the output folder is writable");
    fs::write(&gzip, encoder.finish().expect("writing to memory cannot fail")).expect("the output folder is writable");
    let hash = &hash([content])[..32];
    format!(
        "File {{ media_type: {media_type:?}, hash: Cow::Borrowed({hash:?}), plain: Cow::Borrowed(include_bytes!({plain:?})), \
         gzip: Cow::Borrowed(include_bytes!({gzip:?})) }}"
    )
}

/// The SHA-256 of these parts and their lengths, in hexadecimal.
fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
