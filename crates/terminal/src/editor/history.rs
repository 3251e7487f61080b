//! Lines that were sent before: in memory, and in a file that only its owner can read.
//!
//! A line that begins with a blank is not kept. Whatever is wrong with the file, the editor works.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 1000;
const LINE_BYTES_MAX: usize = 64 * 1024;
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Debug, Default)]
pub struct History {
    /// The newest last.
    lines: VecDeque<String>,
    file: Option<PathBuf>,
}

impl History {
    /// Reads the file, and makes it short again if it has grown.
    pub fn load(file: Option<PathBuf>) -> History {
        let mut history = History { lines: VecDeque::new(), file };
        let Some(file) = history.file.clone() else { return history };
        let (text, is_cut) = tail(&file).unwrap_or_default();
        let all: Vec<String> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let grown = is_cut || all.len() > LINES_MAX;
        all.into_iter().for_each(|line| history.keep(line));
        if grown {
            // One that stays long is read again the next time.
            let _ = history.rewrite(&file);
        }
        history
    }

    /// Where the file is: as the XDG directories say.
    pub fn file(state_home: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
        let state = state_home.filter(|dir| dir.is_absolute());
        let state = state.or_else(|| Some(home?.join(".local/state")))?;
        Some(state.join("polyloop/history"))
    }

    /// The line so far back; 0 is the newest.
    pub fn back(&self, at: usize) -> Option<&str> {
        let at = self.lines.len().checked_sub(at + 1)?;
        self.lines.get(at).map(String::as_str)
    }

    pub fn add(&mut self, line: &str) {
        let again = self.back(0) == Some(line);
        if line.starts_with(' ') || line.len() > LINE_BYTES_MAX || again {
            return;
        }
        self.keep(line.to_owned());
        if let Some(file) = self.file.clone()
            && self.append(&file, line).is_err()
        {
            // It cannot be written; memory has to do.
            self.file = None;
        }
    }

    fn keep(&mut self, line: String) {
        self.lines.push_back(line);
        if self.lines.len() > LINES_MAX {
            self.lines.pop_front();
        }
    }

    fn append(&self, file: &Path, line: &str) -> io::Result<()> {
        if let Some(dir) = file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).mode(0o600).open(file)?;
        // It may have been made by another hand.
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(format!("{}\n", serde_json::Value::from(line)).as_bytes())
    }

    fn rewrite(&self, file: &Path) -> io::Result<()> {
        let new = file.with_extension("new");
        let text: String = self
            .lines
            .iter()
            .map(|line| format!("{}\n", serde_json::Value::from(&**line)))
            .collect();
        let mut options = OpenOptions::new();
        let mut to = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        to.write_all(text.as_bytes())?;
        fs::rename(new, file)
    }
}

/// The end of the file, and whether there is more before it. A line that the cut or damage broke
/// is no JSON, and so no line.
fn tail(file: &Path) -> io::Result<(String, bool)> {
    let mut file = fs::File::open(file)?;
    let before = file.metadata()?.len().saturating_sub(FILE_BYTES_MAX);
    file.seek(SeekFrom::Start(before))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), before > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_newest_first() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/polyloop/history");
        let mut history = History::load(Some(file.clone()));
        for line in ["one", "two\nlines", " secret", "two\nlines"] {
            history.add(line);
        }
        let again = History::load(Some(file.clone()));
        for history in [history, again] {
            assert_eq!(history.back(0), Some("two\nlines"));
            assert_eq!(history.back(1), Some("one"));
            assert_eq!(history.back(2), None);
        }
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn it_is_bounded_and_survives_damage() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("history");
        let mut text: String = (0..LINES_MAX + 50).map(|n| format!("\"line {n}\"\n")).collect();
        text.push_str("no json\n");
        fs::write(&file, text).unwrap();
        let history = History::load(Some(file.clone()));
        assert_eq!(history.back(0), Some(format!("line {}", LINES_MAX + 49).as_str()));
        assert_eq!(history.back(LINES_MAX), None);
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), LINES_MAX);
    }

    #[test]
    fn a_huge_file_keeps_its_end_and_is_short_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("history");
        let long = format!("\"{}\"\n", "x".repeat(LINE_BYTES_MAX));
        let lines = FILE_BYTES_MAX as usize / long.len() + 10;
        fs::write(&file, format!("{}\"last\"\n", long.repeat(lines))).unwrap();
        let history = History::load(Some(file.clone()));
        assert_eq!(history.back(0), Some("last"));
        assert_eq!(history.back(1).map(str::len), Some(LINE_BYTES_MAX));
        assert!(fs::metadata(&file).unwrap().len() <= FILE_BYTES_MAX);
        assert_eq!(History::load(Some(file)).back(0), Some("last"));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_no_trouble() {
        let mut history = History::load(Some("/proc/none/history".into()));
        history.add("one");
        assert_eq!(history.back(0), Some("one"));
    }

    #[test]
    fn the_file_is_where_xdg_says() {
        let home = Some(PathBuf::from("/home/u"));
        let at = |state: Option<&str>| History::file(state.map(PathBuf::from), home.clone());
        assert_eq!(at(Some("/s")).unwrap(), Path::new("/s/polyloop/history"));
        let usual = Path::new("/home/u/.local/state/polyloop/history");
        assert_eq!(at(Some("not/absolute")).unwrap(), usual);
        assert_eq!(at(None).unwrap(), usual);
        assert_eq!(History::file(None, None), None);
    }
}
