//! Counts lines of code: no blank lines, no comments, tests apart.

use std::path::{Path, PathBuf};

use crate::place::Place;

#[derive(Default)]
struct Count {
    files: usize,
    code: usize,
    tests: usize,
}

pub fn run(place: &Place) -> bool {
    match count_all(&place.root) {
        Ok(()) => true,
        Err(problem) => {
            eprintln!("error: {problem}");
            false
        }
    }
}

fn count_all(root: &Path) -> Result<(), String> {
    let crates = ["session", "dialects", "sandbox", "agent", "terminal", "server"];
    let folders = crates.map(|name| format!("crates/{name}"));
    let folders = folders.iter().map(String::as_str).chain(["xtask", "tests"]);
    println!("{:<20} {:>6} {:>8} {:>8}", "", "files", "code", "tests");
    let mut sum = Count::default();
    for folder in folders {
        let mut count = Count::default();
        for file in files(&root.join(folder), &["rs", "py", "js", "mjs"])? {
            let text = std::fs::read_to_string(&file)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            let inner = file.strip_prefix(root).unwrap_or(&file);
            let (code, tests) = split(inner, &text);
            count.files += 1;
            count.code += code;
            count.tests += tests;
        }
        print_row(folder, &count);
        sum.files += count.files;
        sum.code += count.code;
        sum.tests += count.tests;
    }
    print_row("all", &sum);
    Ok(())
}

fn print_row(name: &str, Count { files, code, tests }: &Count) {
    println!("{name:<20} {files:>6} {code:>8} {tests:>8}");
}

/// Lines of code and lines of tests. In a source file the tests come last, behind `cfg(test)`.
fn split(path: &Path, text: &str) -> (usize, usize) {
    let is_code = |line: &&str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("//") && !line.starts_with('#') || is_attribute(line)
    };
    let count = |text: &str| text.lines().filter(is_code).count();
    let in_tests = path.iter().any(|part| part == "tests" || part == "tests.rs");
    if in_tests {
        return (0, count(text));
    }
    match text.find("#[cfg(test)]\nmod tests {") {
        Some(at) => (count(&text[..at]), count(&text[at..])),
        None => (count(text), 0),
    }
}

/// A Rust line that begins like a Python comment.
fn is_attribute(line: &str) -> bool {
    line.starts_with("#[") || line.starts_with("#![")
}

pub fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    files(folder, &["rs"])
}

/// All files below a folder with one of these endings, in order.
fn files(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, String> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = open.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => return Err(format!("{}: {error}", folder.display())),
        };
        for entry in entries {
            let entry = entry.map_err(|error| format!("{}: {error}", folder.display()))?;
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder {
                open.push(path);
            } else if path.extension().is_some_and(|end| endings.iter().any(|e| end == *e)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_do_not_count() {
        let text = "//! A room.\n\n#[derive(Debug)]\nstruct A; // why\n    // why\n";
        assert_eq!(split(Path::new("crates/a/src/a.rs"), text), (2, 0));
        assert_eq!(split(Path::new("tests/a.py"), "# why\nimport a\n\n"), (0, 1));
    }

    #[test]
    fn tests_are_counted_apart() {
        let text = "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        assert_eq!(split(Path::new("crates/a/src/a.rs"), text), (1, 4));
        assert_eq!(split(Path::new("crates/a/src/a/tests.rs"), text), (0, 5));
        assert_eq!(split(Path::new("crates/a/tests/it/b.rs"), "fn f() {}\n"), (0, 1));
    }
}
