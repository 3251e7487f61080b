//! Asserts what must not be there: dependencies that would let a crate do what it must never do,
//! and unsafe code outside the one crate that may have it.
//!
//! Judges the dependencies that are built into a crate, not those of its tests.

use std::collections::BTreeSet;
use std::path::Path;

use crate::lines::rust_files;
use crate::place::{Place, read};

struct Absence {
    package: &'static str,
    /// What follows from it.
    so: &'static str,
    reach: Reach,
    never: &'static [&'static str],
}

#[derive(Clone, Copy)]
enum Reach {
    /// Neither it nor anything it depends on.
    Whole,
    /// It does not name them itself; a library below it may.
    Direct,
}

const PURE: &[&str] = &[
    "tokio",
    "reqwest",
    "axum",
    "hyper",
    "rusqlite",
    "rustix",
    "libc",
    "uuid",
    "rand",
    "getrandom",
];

const ABSENCES: &[Absence] = &[
    Absence {
        package: "polyloop-session",
        so: "does no I/O and makes no random ids",
        reach: Reach::Whole,
        never: PURE,
    },
    Absence {
        package: "polyloop-session",
        so: "reads no clock, and knows nobody above it",
        reach: Reach::Whole,
        never: &["jiff", "polyloop-dialects", "polyloop-sandbox", "polyloop-agent", "polyloop"],
    },
    Absence { package: "polyloop-dialects", so: "does no I/O", reach: Reach::Whole, never: PURE },
    Absence {
        package: "polyloop-dialects",
        so: "knows sessions alone",
        reach: Reach::Whole,
        never: &["polyloop-agent", "polyloop-sandbox", "polyloop"],
    },
    Absence {
        package: "polyloop-sandbox",
        so: "knows nothing of sessions",
        reach: Reach::Whole,
        never: &["polyloop-session", "polyloop-dialects", "polyloop-agent", "polyloop", "tokio"],
    },
    Absence {
        package: "polyloop-agent",
        so: "knows neither a wire format nor the web framework",
        reach: Reach::Whole,
        never: &["polyloop-dialects", "polyloop", "axum", "tokio-websockets"],
    },
    Absence {
        package: "polyloop-agent",
        so: "speaks HTTP through its client and its lanes alone",
        reach: Reach::Direct,
        never: &["hyper", "http-body-util", "tower"],
    },
    Absence {
        package: "polyloop-terminal",
        so: "is a client like any other",
        reach: Reach::Whole,
        never: &[
            "polyloop-session",
            "polyloop-dialects",
            "polyloop-sandbox",
            "polyloop-agent",
            "polyloop",
            "axum",
            "rusqlite",
        ],
    },
];

/// What the server has, so that the same question gets the other answer at least here.
const PRESENCES: &[&str] = &[
    "polyloop-session",
    "polyloop-dialects",
    "polyloop-sandbox",
    "polyloop-agent",
    "polyloop-terminal",
    "tokio",
    "axum",
];

const UNSAFE_CRATE: &str = "crates/sandbox";

pub fn run(place: &Place) -> bool {
    match check(place) {
        Ok(()) => true,
        Err(problem) => {
            eprintln!("error: {problem}");
            false
        }
    }
}

pub fn check(place: &Place) -> Result<(), String> {
    let mut problems = Vec::new();
    for Absence { package, so, reach, never } in ABSENCES {
        let tree = tree(place, package, *reach)?;
        let found: Vec<&str> =
            never.iter().copied().filter(|name| tree.names.contains(*name)).collect();
        let verdict = if found.is_empty() { "ok" } else { "FAILED" };
        println!("{verdict}: {package} {so}: no {}", never.join(", "));
        problems.extend(found.iter().map(|name| format!("{package} depends on {name}")));
    }
    let server = tree(place, "polyloop", Reach::Whole)?;
    for name in PRESENCES.iter().filter(|name| !server.names.contains(**name)) {
        problems.push(format!("polyloop should depend on {name}; is the tree read rightly?"));
    }
    println!("polyloop is built from {} crates", server.crates);
    problems.extend(unsafe_code(&place.root)?);
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

/// The crates that are built into a package, itself among them.
struct Tree {
    names: BTreeSet<String>,
    /// Two versions of one name are two crates.
    crates: usize,
}

fn tree(place: &Place, package: &str, reach: Reach) -> Result<Tree, String> {
    let args = ["tree", "--package", package, "--edges", "normal", "--prefix", "none"];
    let mut command = place.cargo(&args);
    match reach {
        Reach::Whole => {}
        Reach::Direct => drop(command.args(["--depth", "1"])),
    }
    let tree = Tree::parse(&read(&mut command)?);
    if tree.names.contains(package) {
        return Ok(tree);
    }
    Err(format!("cargo tree does not show {package} in its own tree"))
}

impl Tree {
    /// A line is `name vX.Y.Z …`; a crate that is needed twice stands there twice.
    fn parse(text: &str) -> Tree {
        let lines = text.lines().map(str::split_whitespace);
        let crates: BTreeSet<_> =
            lines.filter_map(|mut words| Some((words.next()?, words.next()?))).collect();
        let names = crates.iter().map(|(name, _)| name.to_string()).collect();
        Tree { names, crates: crates.len() }
    }
}

/// The compiler forbids it wherever the workspace's lints are taken over; this asserts that they
/// are, and looks for the word itself.
fn unsafe_code(root: &Path) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    if !read(&root.join("Cargo.toml"))?.contains("unsafe_code = \"forbid\"") {
        problems.push("Cargo.toml does not forbid unsafe code in the workspace".to_owned());
    }
    let (mut files, mut uses) = (0, 0);
    for member in members(root)? {
        let name = member.strip_prefix(root).unwrap_or(&member).display().to_string();
        let exempt = name == UNSAFE_CRATE;
        let manifest = read(&member.join("Cargo.toml"))?;
        if !exempt && !manifest.contains("[lints]\nworkspace = true") {
            problems.push(format!("{name}/Cargo.toml does not take over the workspace's lints"));
        }
        for file in rust_files(&member)? {
            files += 1;
            let text = read(&file)?;
            let found = text.lines().filter(|line| uses_unsafe(line)).count();
            if exempt {
                uses += found;
            } else if found > 0 {
                let file = file.strip_prefix(root).unwrap_or(&file).display();
                problems.push(format!("{file} has {found} lines of unsafe code"));
            }
        }
    }
    let verdict = if problems.is_empty() { "ok" } else { "FAILED" };
    println!("{verdict}: unsafe code in {UNSAFE_CRATE} alone ({uses} lines; {files} files read)");
    Ok(problems)
}

fn members(root: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let crates = root.join("crates");
    let entries = std::fs::read_dir(&crates).map_err(|e| format!("{}: {e}", crates.display()))?;
    let mut members: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    members.retain(|member| member.join("Cargo.toml").is_file());
    members.extend(["xtask", "tests/fake-model"].map(|member| root.join(member)));
    members.sort();
    Ok(members)
}

/// Whether a line has the keyword, outside comments and quotes.
fn uses_unsafe(line: &str) -> bool {
    let mut quoted = false;
    let code: String = line
        .chars()
        .filter(|c| {
            quoted ^= *c == '"';
            !quoted
        })
        .collect();
    let code = code.split("//").next().unwrap_or_default();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices("unsafe").any(|(at, word)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_names_each_crate_once() {
        let text = "a v0.1.0 (/somewhere)\nserde v1.0.228\nserde v1.0.228 (*)\n\nserde v2.0.0\n";
        let tree = Tree::parse(text);
        assert_eq!(tree.crates, 3);
        assert_eq!(tree.names.len(), 2);
        assert!(tree.names.contains("serde") && tree.names.contains("a"));
        assert!(!tree.names.contains("serde_json"));
    }

    #[test]
    fn the_keyword_is_found_and_nothing_else() {
        for line in ["unsafe { f() }", "pub unsafe fn f()", "x(unsafe{1})", "#[unsafe(no_mangle)]"]
        {
            assert!(uses_unsafe(line), "{line}");
        }
        let quoted = format!("{0}unsafe {0}", '"');
        let none = ["// unsafe code", "forbid(unsafe_code)", &quoted, "an_unsafe", "unsafely"];
        for line in none {
            assert!(!uses_unsafe(line), "{line}");
        }
    }

    #[test]
    fn no_assertion_asks_for_what_it_forbids() {
        for Absence { package, never, .. } in ABSENCES {
            assert!(!never.is_empty() && !never.contains(package), "{package}");
        }
    }
}
