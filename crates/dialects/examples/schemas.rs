//! Writes the JSON Schema of every message of every dialect into a folder, one file each, or with
//! `--check` says which files there are not what they should be.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (folder, check) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [folder] => (folder, false),
        [folder, "--check"] => (folder, true),
        _ => {
            eprintln!("usage: schemas FOLDER [--check]");
            return ExitCode::FAILURE;
        }
    };
    let folder = Path::new(folder);
    let wanted: BTreeMap<String, String> = polyloop_dialects::schemas()
        .into_iter()
        .map(|(name, schema)| (format!("{name}.json"), format!("{schema:#}\n")))
        .collect();
    let done = if check { compare(folder, &wanted) } else { write(folder, &wanted) };
    match done {
        Ok(()) => {
            println!("{} schemas", wanted.len());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn found(folder: &Path) -> std::io::Result<Vec<String>> {
    let names = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    let names: std::io::Result<Vec<_>> = names.collect();
    let names = names?.into_iter().map(|name| name.to_string_lossy().into_owned());
    Ok(names.filter(|name| name.ends_with(".json")).collect())
}

fn compare(folder: &Path, wanted: &BTreeMap<String, String>) -> Result<(), String> {
    let found = found(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut wrong: Vec<String> =
        found.iter().filter(|name| !wanted.contains_key(*name)).cloned().collect();
    for (name, text) in wanted {
        if std::fs::read_to_string(folder.join(name)).ok().as_ref() != Some(text) {
            wrong.push(name.clone());
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("not what the wire types say: {}; run `cargo xtask schemas`", wrong.join(", ")))
}

fn write(folder: &Path, wanted: &BTreeMap<String, String>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for name in found(folder).map_err(failed)? {
        if !wanted.contains_key(&name) {
            std::fs::remove_file(folder.join(name)).map_err(failed)?;
        }
    }
    for (name, text) in wanted {
        std::fs::write(folder.join(name), text).map_err(failed)?;
    }
    Ok(())
}
