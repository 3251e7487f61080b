//! Names the fold by its source: a state that another version has kept is not taken for this one's.

use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    let mut files = Vec::new();
    sources(Path::new("src"), &mut files)?;
    files.sort();
    let mut hash = FNV_BASIS;
    for file in files {
        let name = file.to_string_lossy().into_owned();
        hash = hashed(hash, name.as_bytes());
        hash = hashed(hash, &std::fs::read(&file)?);
    }
    println!("cargo::rustc-env=POLYLOOP_FOLD_ID={hash:016x}");
    Ok(())
}

fn sources(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for file in std::fs::read_dir(dir)? {
        let path = file?.path();
        match path.is_dir() {
            true => sources(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// FNV-1a: it guards against mistakes, not against people.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn hashed(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}
