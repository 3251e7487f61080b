//! The cases of the patch engine: each a tree, a patch, and the tree afterwards.
//!
//! A refused patch must leave every byte, mode and name as it was, inside and outside the root.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Change, PatchError, Plan, Root, parse, plan};

mod content;
mod faults;
mod grammar;
mod journal;
mod links;
mod matching;
mod names;
mod protected;
mod races;
mod revert;

/// A root `W` and its neighbour `OUT`.
struct Ground {
    home: tempfile::TempDir,
    root: Root,
}

/// What a case expects.
enum Expect<'a> {
    /// These files, and no others, are in the root.
    Files(&'a [(&'a str, &'a [u8])]),
    /// Nothing changed, and the error says this.
    Refused(&'a str),
}
use Expect::{Files, Refused};

/// One test for each line: its name, the files before, the patch's body, what is expected.
macro_rules! cases {
    ($($name:ident: [$($file:expr => $content:expr),*] $patch:expr, $expect:expr;)*) => {
        $(#[test] fn $name() {
            let files: &[(&str, &[u8])] = &[$(($file, $content)),*];
            $crate::patch::tests::check(files, $patch, $expect);
        })*
    };
}
use cases;

impl Ground {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let inside = home.path().join("W");
        fs::create_dir(&inside).unwrap();
        fs::create_dir(home.path().join("OUT")).unwrap();
        let root = Root::open(&inside).unwrap();
        let ground = Self { home, root };
        for (path, content) in files {
            ground.write(path, content);
        }
        ground
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.home.path().join("W").join(path)
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.home.path().join("OUT").join(path)
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.inside(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, path: &str) -> String {
        String::from_utf8(fs::read(self.inside(path)).unwrap()).unwrap()
    }

    fn plan(&self, body: &str) -> Result<Plan, PatchError> {
        plan(&self.root, &parse(&wrapped(body))?)
    }

    fn apply(&self, body: &str) -> Result<Vec<Change>, PatchError> {
        self.plan(body)?.apply(None)
    }

    /// Applies a patch that must be refused without a trace.
    fn refused(&self, body: &str) -> PatchError {
        let before = self.snapshot();
        let error = self.apply(body).expect_err(body);
        assert_eq!(self.snapshot(), before, "a refused patch left a trace: {error}");
        error
    }

    /// Everything in and beside the root: kind, mode, and content or target.
    fn snapshot(&self) -> BTreeMap<PathBuf, (String, u32, Vec<u8>)> {
        let mut all = BTreeMap::new();
        collect(self.home.path(), &mut all);
        all
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let root = self.inside("");
        let mut all = BTreeMap::new();
        collect(&root, &mut all);
        let files = all.into_iter().filter(|(_, (kind, ..))| kind == "file");
        let relative = |path: &Path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        files.map(|(path, (_, _, content))| (relative(&path), content)).collect()
    }
}

fn collect(directory: &Path, all: &mut BTreeMap<PathBuf, (String, u32, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let (kind, content) = if metadata.is_symlink() {
            ("link", fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes())
        } else if metadata.is_file() {
            ("file", fs::read(&path).unwrap())
        } else if metadata.is_dir() {
            collect(&path, all);
            ("directory", Vec::new())
        } else {
            ("other", Vec::new())
        };
        all.insert(path, (kind.to_owned(), metadata.permissions().mode(), content));
    }
}

fn wrapped(body: &str) -> String {
    format!("*** Begin Patch\n{body}\n*** End Patch")
}

fn check(files: &[(&str, &[u8])], body: &str, expect: Expect<'_>) {
    let ground = Ground::new(files);
    match expect {
        Files(expected) => {
            ground.apply(body).unwrap_or_else(|error| panic!("{error}\n{body}"));
            let expected: BTreeMap<String, Vec<u8>> =
                expected.iter().map(|(path, text)| ((*path).to_owned(), text.to_vec())).collect();
            assert_eq!(ground.files(), expected);
        }
        Refused(part) => {
            let error = ground.refused(body).to_string();
            assert!(error.contains(part), "{part:?} is not in the error: {error}");
        }
    }
}
