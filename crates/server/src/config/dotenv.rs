//! Reads a `.env` file into a list of names and values.
//!
//! Never touches the process environment, where every command that the agent runs could find
//! the values, and never repeats a line in an error, since the line may hold a key.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::rc::Rc;

pub(super) const ENV_FILE_NAME: &str = ".env";
const ENV_FILE_BYTES_MAX: usize = 1024 * 1024;

/// What a `.env` file says.
#[derive(Default)]
pub(super) struct EnvFile {
    /// Whether there is one.
    pub(super) found: bool,
    values: HashMap<String, Value>,
    /// What the user should know, but what does not stop the server.
    pub(super) warnings: Vec<String>,
}

struct Value {
    text: String,
    /// A `$` outside single quotes stands in the file: the text is not what was typed.
    has_dollar: bool,
}

impl EnvFile {
    /// Reads the file in `directory`; one that is not there says nothing.
    pub(super) fn read(directory: &Path) -> Result<Self, Vec<String>> {
        let path = directory.join(ENV_FILE_NAME);
        // A Python environment is often a folder of this name.
        if path.is_dir() {
            let warning = format!("{} is a directory and is not read", path.display());
            return Ok(Self { warnings: vec![warning], ..Self::default() });
        }
        let cannot = |why: &dyn std::fmt::Display| vec![format!("{}: {why}", path.display())];
        let file = match std::fs::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(cannot(&format_args!("cannot be read: {error}"))),
        };
        let mut bytes = Vec::new();
        let mut limited = file.take(ENV_FILE_BYTES_MAX as u64 + 1);
        if let Err(error) = limited.read_to_end(&mut bytes) {
            return Err(cannot(&format_args!("cannot be read: {error}")));
        }
        if bytes.len() > ENV_FILE_BYTES_MAX {
            return Err(cannot(&format_args!(
                "is larger than {ENV_FILE_BYTES_MAX} bytes, which no settings are"
            )));
        }
        Self::parse(&bytes, &path)
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Self, Vec<String>> {
        let text = str::from_utf8(bytes).map_err(|error| {
            let line = 1 + count_newlines(&bytes[..error.valid_up_to()]);
            vec![format!("{} line {line}: is not UTF-8 text", path.display())]
        })?;
        // Without a final newline, spaces at the end of the last line would be an error.
        let text = format!("{}\n", text.strip_prefix('\u{feff}').unwrap_or(text));
        let lines_read = Rc::new(Cell::new(0));
        let lines = text.lines().collect::<Vec<_>>();
        let reader = Lines { rest: text.as_bytes(), read: Rc::clone(&lines_read) };

        let (mut file, mut problems) = (Self::default(), Vec::new());
        let mut items = dotenvy::from_read_iter(reader);
        loop {
            let lines_before = lines_read.get();
            match items.next() {
                Some(Ok((name, text))) => {
                    let lines = &lines[lines_before..lines_read.get()];
                    file.insert(name, Value { text, has_dollar: has_dollar(lines) });
                }
                Some(Err(error)) => problems.push(format!(
                    "{} line {}: is not NAME=value; put quotes around a value with spaces, and \
                     close every quote",
                    path.display(),
                    first_line(&error, lines_read.get())
                )),
                None => break,
            }
        }
        if problems.is_empty() { Ok(Self { found: true, ..file }) } else { Err(problems) }
    }

    fn insert(&mut self, name: String, value: Value) {
        if self.values.contains_key(&name) {
            self.warnings
                .push(format!("{ENV_FILE_NAME} sets {name} more than once; the last value counts"));
        }
        self.values.insert(name, value);
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|value| value.text.as_str())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// Whether the value was written with a `$` that stands for another variable.
    pub(super) fn has_dollar(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|value| value.has_dollar)
    }
}

/// Hands out one line a read and counts them, because the parser does not say where it is.
struct Lines<'a> {
    rest: &'a [u8],
    read: Rc<Cell<usize>>,
}

impl Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let line_bytes = self.rest.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
        let length = line_bytes.unwrap_or(self.rest.len()).min(buffer.len());
        let (piece, rest) = self.rest.split_at(length);
        buffer[..length].copy_from_slice(piece);
        self.rest = rest;
        if piece.ends_with(b"\n") {
            self.read.set(self.read.get() + 1);
        }
        Ok(length)
    }
}

/// Where the broken entry begins: it may go over several lines.
fn first_line(error: &dotenvy::Error, last_line: usize) -> usize {
    match error {
        dotenvy::Error::LineParse(entry, _) => {
            let entry = entry.strip_suffix('\n').unwrap_or(entry);
            last_line.saturating_sub(count_newlines(entry.as_bytes()))
        }
        _ => last_line,
    }
}

fn count_newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

/// `lines` are comments and blanks, then one entry.
fn has_dollar(lines: &[&str]) -> bool {
    let is_entry = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let Some((_, value)) = lines.iter().find(is_entry).and_then(|line| line.split_once('=')) else {
        return false;
    };
    !value.trim_start().starts_with('\'') && value.replace("\\$", "").contains('$')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<EnvFile, Vec<String>> {
        EnvFile::parse(text.as_bytes(), Path::new("/start/.env"))
    }

    #[test]
    fn entries_are_read() {
        let text = "\u{feff}# a comment: don't stop here\n\nA=1\nexport B = two\r\nC='a b'  # c\n\
                    D=\"x\ny\"\nE=\nF=a\\$b\nG='$HOME'\nLAST=1  ";
        let file = parse(text).ok().unwrap();
        let expected = [
            ("A", "1"),
            ("B", "two"),
            ("C", "a b"),
            ("D", "x\ny"),
            ("E", ""),
            ("F", "a$b"),
            ("G", "$HOME"),
            ("LAST", "1"),
        ];
        for (name, value) in expected {
            assert_eq!(file.get(name), Some(value), "{name}");
            assert!(!file.has_dollar(name), "{name}");
        }
        assert_eq!(file.names().count(), expected.len());
        assert_eq!(file.get("Z"), None);
        assert!(file.warnings.is_empty());
    }

    #[test]
    fn a_dollar_that_was_replaced_is_known() {
        let file = parse("# $x\n\nA=pa$$word\nB=\"${A}x\"\nC=x # no\n").ok().unwrap();
        assert!(file.has_dollar("A"));
        assert!(file.has_dollar("B"));
        assert!(!file.has_dollar("C"));
    }

    #[test]
    fn the_last_of_two_values_counts() {
        let file = parse("A=1\nA=2\n").ok().unwrap();
        assert_eq!(file.get("A"), Some("2"));
        assert_eq!(file.warnings, [".env sets A more than once; the last value counts"]);
    }

    /// `text => the lines at which entries are broken`.
    #[test]
    fn broken_lines_are_named_and_not_shown() {
        let cases: &[(&str, &[usize])] = &[
            ("no-name", &[1]),
            ("\n# fine\nA=1\nsecret words here\n", &[4]),
            ("A=secret words\nB=2\n9C=secret\n", &[1, 3]),
            ("A=1\nB=\"secret\n\nand so on\n", &[2]),
            ("A=\"x\ny\"\nB=\"secret\nmore\" words\nC=1\n", &[3]),
            ("A=1\n9B='secret\nmore'\n", &[2]),
            ("A=secret\\x\n", &[1]),
        ];
        for (text, lines) in cases {
            let problems = parse(text).err().unwrap();
            let expected = lines.iter().map(|line| {
                format!(
                    "/start/.env line {line}: is not NAME=value; put quotes around a value with \
                     spaces, and close every quote"
                )
            });
            assert_eq!(problems, expected.collect::<Vec<_>>(), "{text:?}");
        }
    }

    #[test]
    fn a_long_line_is_one_line() {
        let long = "x".repeat(50_000);
        let problems = parse(&format!("A={long}\nB={long} {long}\n")).err().unwrap();
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("/start/.env line 2: "), "{}", problems[0]);
    }

    #[test]
    fn other_encodings_are_refused() {
        let problems = EnvFile::parse(b"A=1\nB=\xff\n", Path::new("/start/.env")).err().unwrap();
        assert_eq!(problems, ["/start/.env line 2: is not UTF-8 text"]);
    }

    #[test]
    fn files_that_are_absent_large_or_folders() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".env");
        assert_eq!(EnvFile::read(folder.path()).ok().unwrap().names().count(), 0);

        std::fs::write(&path, vec![b'#'; ENV_FILE_BYTES_MAX + 1]).unwrap();
        let problems = EnvFile::read(folder.path()).err().unwrap();
        let expected = "is larger than 1048576 bytes, which no settings are";
        assert_eq!(problems, [format!("{}: {expected}", path.display())]);

        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let file = EnvFile::read(folder.path()).ok().unwrap();
        assert_eq!(file.warnings, [format!("{} is a directory and is not read", path.display())]);
    }
}
