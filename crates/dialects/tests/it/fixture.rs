//! Reads the folders under `golden/`, whose README says what stands in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polyloop_session::{Growth, LogEntry, Seq, State, Update};
use serde_json::Value;

pub const SEEDS: [&str; 5] = ["seed-000", "seed-001", "seed-002", "seed-003", "seed-004"];

pub struct Scenario {
    pub name: String,
    pub steps: Vec<Step>,
    folder: PathBuf,
}

/// One line of a log.
#[derive(Clone, Debug)]
pub enum Step {
    Logged(Arc<LogEntry>),
    Grew(Growth),
    Crash,
    Unreachable,
}

pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// All scenarios by name. A test that finds none would hold nothing.
pub fn scenarios() -> Vec<Scenario> {
    let folders = fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    folders.retain(|path| !SEEDS.iter().any(|other| path.ends_with(other)));
    folders.sort();
    assert!(folders.len() >= 30, "only {} scenarios were found", folders.len());
    folders.into_iter().map(Scenario::read).collect()
}

impl Scenario {
    fn read(folder: PathBuf) -> Scenario {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let lines = lines(&folder.join("log.jsonl"));
        let lines = lines.unwrap_or_else(|| panic!("{name} has no log.jsonl"));
        let steps: Vec<Step> = lines.into_iter().map(|line| step(&name, line)).collect();
        let scenario = Scenario { name, steps, folder };
        scenario.is_numbered();
        scenario
    }

    /// `None` when the scenario has no such file.
    pub fn lines(&self, file: &str) -> Option<Vec<Value>> {
        lines(&self.folder.join(file))
    }

    pub fn entries(&self) -> Vec<Arc<LogEntry>> {
        let logged = self.steps.iter().filter_map(|step| match step {
            Step::Logged(entry) => Some(entry.clone()),
            _ => None,
        });
        logged.collect()
    }

    /// What subscribers are sent of the first `lines` lines of the log.
    pub fn updates(&self, lines: usize) -> Vec<Update> {
        let updates = self.steps[..lines].iter().filter_map(|step| match step {
            Step::Logged(entry) => Some(Update::Logged(entry.clone())),
            Step::Grew(growth) => Some(Update::Grew(growth.clone())),
            Step::Crash | Step::Unreachable => None,
        });
        updates.collect()
    }

    fn is_numbered(&self) {
        let (name, entries) = (&self.name, self.entries());
        assert!(!entries.is_empty(), "{name} is empty");
        for (at, entry) in (1..).zip(&entries) {
            assert_eq!(entry.seq, Seq(at), "{name}: {entry:?}");
        }
        let mut state = State::default();
        entries.iter().for_each(|entry| state.apply(entry));
        assert!(state.turn().is_none(), "{name} ends inside a turn");
    }
}

fn lines(path: &Path) -> Option<Vec<Value>> {
    let text = fs::read_to_string(path).ok()?;
    let parsed = text.lines().enumerate().map(|(at, line)| {
        let place = || format!("{}:{}", path.display(), at + 1);
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}", place()))
    });
    Some(parsed.collect())
}

fn step(name: &str, line: Value) -> Step {
    if let Some(growth) = line.get("grew") {
        return Step::Grew(serde_json::from_value(growth.clone()).unwrap());
    }
    if line.get("crash").is_some() {
        return Step::Crash;
    }
    if line.get("unreachable").is_some() {
        return Step::Unreachable;
    }
    let entry: LogEntry = serde_json::from_value(line.clone())
        .unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
    // A misspelt optional field would be passed over in silence.
    assert_eq!(serde_json::to_value(&entry).unwrap(), line, "{name}: not what was read");
    Step::Logged(Arc::new(entry))
}
