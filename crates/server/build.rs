//! Lists the files of the web page, so that each is served without a line of its own.
//!
//! Never changes what is in them: the browser gets the bytes that stand in the folder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

const FOLDER: &str = "src/page";
/// What a page may load; `index.html` is served at `/`, and not from here.
const KINDS: [&str; 3] = ["js", "css", "svg"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| env::var_os(name).map(PathBuf::from).ok_or(io::ErrorKind::NotFound);
    let folder = variable("CARGO_MANIFEST_DIR")?.join(FOLDER);
    let mut found = Vec::new();
    list(&folder, &mut found)?;
    found.sort();
    let mut table = String::from("&[\n");
    for path in found {
        let name = path.strip_prefix(&folder).unwrap_or(&path).to_string_lossy().into_owned();
        let path = path.to_string_lossy().into_owned();
        let _ = writeln!(table, "    ({name:?}, include_bytes!({path:?})),");
    }
    table.push_str("]\n");
    fs::write(variable("OUT_DIR")?.join("page_files.rs"), table)
}

fn list(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let kind = path.extension().and_then(|kind| kind.to_str());
        if path.is_dir() {
            list(&path, found)?;
        } else if kind.is_some_and(|kind| KINDS.contains(&kind)) {
            found.push(path);
        }
    }
    Ok(())
}
