//! Packs the files of `panel/` into the program: each as it is and compressed, below a folder that is named by a hash of all.

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
/// What the page writes for the folder of its files.
const ASSETS: &str = "/panel/assets/";
/// What the page writes for its ways in, which a deployment decides.
const WAYS_IN: &str = r#"<meta name="sign-in" content="link">"#;
const MORE_WAYS_IN: &str = r#"<meta name="sign-in" content="link credentials">"#;

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]
fn main() {
    println!("cargo::rerun-if-changed={FOLDER}");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo says where generated code goes"));
    let mut files = BTreeMap::new();
    read(Path::new(FOLDER), "", &mut files);
    let page = files.remove(PAGE).expect("the panel has a page");
    let page = String::from_utf8(page).expect("the page is text");
    let release = &hash(files.iter().flat_map(|(path, content)| [path.as_bytes(), content.as_slice()]))[..16];

    let mut code = format!("const RELEASE: &str = {release:?};\n");
    assert!(page.contains(WAYS_IN), "{PAGE} lacks {WAYS_IN}");
    let page = page.replace(ASSETS, &format!("{ASSETS}{release}/"));
    for (name, page) in [("PAGE", page.clone()), ("PAGE_WITH_CREDENTIALS", page.replace(WAYS_IN, MORE_WAYS_IN))] {
        let packed = packed(&out, name, "text/html; charset=utf-8", page.as_bytes());
        writeln!(code, "const {name}: File = {packed};").expect("a String takes all");
    }
    code += "const FILES: &[(&str, File)] = &[\n";
    for (position, (path, content)) in files.iter().enumerate() {
        let media_type = media_type(path).expect("other files are not read");
        let packed = packed(&out, &position.to_string(), media_type, content);
        writeln!(code, "    ({path:?}, {packed}),").expect("a String takes all");
    }
    code += "];\n";
    fs::write(out.join("files.rs"), code).expect("cargo's own folder can be written");
}

/// The files below a folder that browsers load, by their paths; others are for those who work on the panel.
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
        // The licences of what others wrote go where it goes.
        "LICENSE" => Some("text/plain; charset=utf-8"),
        _ => None,
    }
}

/// Writes a file and its compressed form, and gives the Rust expression that is both.
fn packed(out: &Path, name: &str, media_type: &str, content: &[u8]) -> String {
    let (plain, gzip) = (out.join(name), out.join(format!("{name}.gz")));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).expect("memory takes all");
    fs::write(&plain, content).expect("cargo's own folder can be written");
    fs::write(&gzip, encoder.finish().expect("memory takes all")).expect("cargo's own folder can be written");
    let hash = &hash([content])[..32];
    format!(
        "File {{ media_type: {media_type:?}, hash: {hash:?}, plain: include_bytes!({plain:?}), gzip: include_bytes!({gzip:?}) }}"
    )
}

/// SHA-256 of these parts and their lengths, in hexadecimal digits.
fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
