//! The side file of a long session, `<id>.index`: how long it is, where its entries and turns
//! begin, and what it added up to at one place, so that opening it reads only what came after.
//!
//! Never the truth. It is made from the session's file and can be made again; one that is damaged,
//! foreign, of another version or does not fit the file is not used. It is never flushed: its sums
//! tell what a crash made of it.
//!
//! Four lines: the version and the sum of the second; the head; places and turns; the snapshot.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use polyloop_session::state::FOLD_ID;
use polyloop_session::{Event, LogEntry, Seq, State, Text, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::{DAMAGED_CODE, Damage, Folded, Named, Spent, Standing, Summary};
use super::disk::{Access, Disk};

/// Goes up when the file's form changes, or how lines are read and numbered.
const INDEX_VERSION: u32 = 4;
const TITLE: &str = "polyloop-index";
/// So much of the session's file before the place is compared.
const NEAR_BYTES_MAX: u64 = 4 * 1024;
const HEAD_BYTES_MAX: u64 = 64 * 1024;
const BODY_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// How many entries lie between two places that are remembered, at most,
const PLACE_ENTRIES: u64 = 64;
/// and how many bytes, about.
const PLACE_BYTES: u64 = 256 * 1024;

/// Where an entry begins: its number, the lines before it, and the bytes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Seq, u64, u64)", into = "(Seq, u64, u64)")]
pub(in crate::log) struct Place {
    pub seq: Seq,
    pub line: u64,
    pub byte: u64,
}

impl From<(Seq, u64, u64)> for Place {
    fn from((seq, line, byte): (Seq, u64, u64)) -> Place {
        Place { seq, line, byte }
    }
}

impl From<Place> for (Seq, u64, u64) {
    fn from(Place { seq, line, byte }: Place) -> (Seq, u64, u64) {
        (seq, line, byte)
    }
}

impl Place {
    /// Whether it is far enough from the last one to be remembered.
    pub fn counts_after(&self, last: Option<&Place>) -> bool {
        let Some(last) = last else { return true };
        let far = self.seq.0 >= last.seq.0 + PLACE_ENTRIES || self.byte >= last.byte + PLACE_BYTES;
        far && self.seq > last.seq
    }
}

/// Where the session's file was, and what a list shows of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    /// Bytes of the session's file that this is about; all of them are whole lines.
    pub bytes: u64,
    /// When that file was last written, in nanoseconds; it counts as long as nothing was added.
    mtime_ns: u64,
    /// The sum of the bytes just before the place.
    near: String,
    /// The sum of the two lines after this one.
    body: String,
    pub lines: u64,
    pub start: Timestamp,
    pub last: Timestamp,
    pub named: Named,
    pub spent: Spent,
    pub standing: Standing,
    /// The fold that made the snapshot.
    fold: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Places {
    pub places: Vec<Place>,
    pub turns: Vec<Seq>,
}

#[derive(Serialize, Deserialize)]
struct Snapshot<S> {
    state: S,
    beside: Beside,
}

/// What a fold holds beside the state and the turns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::log) struct Beside {
    damage: Vec<Damage>,
    damage_told: Option<Text>,
    last_at: Timestamp,
}

impl Beside {
    pub fn of(folded: &Folded) -> Beside {
        let Folded { damage, damage_told, last_at, .. } = folded;
        Beside { damage: damage.clone(), damage_told: damage_told.clone(), last_at: *last_at }
    }

    /// The fold again, with the state and the turns.
    pub fn folded(self, state: State, turns: Vec<Seq>) -> Folded {
        let Beside { damage, damage_told, last_at } = self;
        Folded { state, turns, damage, damage_told, last_at }
    }

    pub fn take(&mut self, entry: &LogEntry) {
        self.last_at = self.last_at.max(entry.at);
        if let Event::Noticed { code, text, .. } = &entry.event
            && &**code == DAMAGED_CODE
        {
            self.damage_told = Some(text.clone());
        }
    }
}

/// An index that fits its session's file.
pub(super) struct Index {
    pub head: Head,
    pub places: Places,
    /// What the file added up to at the place, if this version may go on from there.
    pub folded: Option<Folded>,
}

/// What an index is made from; without a state it serves lists and pages alone.
pub(super) struct Source<'a> {
    pub summary: &'a Summary,
    pub bytes: u64,
    pub places: &'a [Place],
    pub turns: &'a [Seq],
    pub state: Option<(&'a State, &'a Beside)>,
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn near(file: &File, place: u64) -> io::Result<String> {
    let from = place.saturating_sub(NEAR_BYTES_MAX);
    let mut bytes = vec![0; (place - from) as usize];
    file.read_exact_at(&mut bytes, from)?;
    Ok(sum(&bytes))
}

fn mtime_ns(file: &File) -> io::Result<u64> {
    let since = file.metadata()?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// The whole text of an index.
pub(super) fn text(session: &File, source: &Source<'_>) -> io::Result<String> {
    let Summary { start, last, lines, named, spent, standing, id: _ } = source.summary;
    let (places, turns) = (source.places.to_vec(), source.turns.to_vec());
    let snapshot = source.state.map(|(state, beside)| Snapshot { state, beside: beside.clone() });
    let mut body = serde_json::to_string(&Places { places, turns })?;
    body.push('\n');
    body.push_str(&serde_json::to_string(&snapshot)?);
    body.push('\n');
    let head = Head {
        bytes: source.bytes,
        mtime_ns: mtime_ns(session)?,
        near: near(session, source.bytes)?,
        body: sum(body.as_bytes()),
        lines: *lines,
        start: *start,
        last: *last,
        named: named.clone(),
        spent: *spent,
        standing: standing.clone(),
        fold: FOLD_ID.to_owned(),
    };
    let head = serde_json::to_string(&head)?;
    let sum = sum(head.as_bytes());
    Ok(format!("{TITLE} {INDEX_VERSION} {sum}\n{head}\n{body}"))
}

/// Takes the old one's place at once, or not at all.
pub(super) fn write(disk: &dyn Disk, path: &Path, text: &str) -> io::Result<()> {
    let fresh = path.with_extension("index-new");
    let written = disk
        .open(&fresh, Access::MakeAnew)
        .and_then(|file| disk.write(&file, text.as_bytes()))
        .and_then(|()| disk.rename(&fresh, path));
    if written.is_err() {
        // Half an index is of no use to anyone.
        let _ = std::fs::remove_file(&fresh);
    }
    written
}

/// The head of an index that fits the session's file as it is.
pub(super) fn head(path: &Path, session: &File) -> Option<Head> {
    open(path, session).map(|(head, _)| head)
}

/// Places and turns; `None` where there is no index that fits.
pub(super) fn places(path: &Path, session: &File) -> Option<(Head, Places)> {
    let index = body(path, session)?;
    let places = serde_json::from_str(index.1.lines().next()?).ok()?;
    Some((index.0, places))
}

pub(super) fn read(path: &Path, session: &File) -> Option<Index> {
    let (head, body) = body(path, session)?;
    let mut lines = body.lines();
    let places: Places = serde_json::from_str(lines.next()?).ok()?;
    let snapshot = lines.next().filter(|_| head.fold == FOLD_ID);
    let snapshot: Option<Snapshot<State>> =
        snapshot.and_then(|line| serde_json::from_str(line).ok().flatten());
    let folded =
        snapshot.map(|Snapshot { state, beside }| beside.folded(state, places.turns.clone()));
    Some(Index { head, places, folded })
}

fn body(path: &Path, session: &File) -> Option<(Head, String)> {
    let (head, rest) = open(path, session)?;
    let mut body = String::new();
    rest.take(BODY_BYTES_MAX).read_to_string(&mut body).ok()?;
    (sum(body.as_bytes()) == head.body).then_some((head, body))
}

fn open(path: &Path, session: &File) -> Option<(Head, BufReader<File>)> {
    let mut reader = BufReader::new(File::open(path).ok()?);
    let mut line = || -> Option<String> {
        let mut line = String::new();
        (&mut reader).take(HEAD_BYTES_MAX).read_line(&mut line).ok()?;
        line.strip_suffix('\n').map(str::to_owned)
    };
    let (title, head) = (line()?, line()?);
    if title != format!("{TITLE} {INDEX_VERSION} {}", sum(head.as_bytes())) {
        return None;
    }
    let head: Head = serde_json::from_str(&head).ok()?;
    fits(&head, session).ok().filter(|fits| *fits)?;
    Some((head, reader))
}

/// Whether the session's file still begins with what the index was made from.
fn fits(head: &Head, session: &File) -> io::Result<bool> {
    let bytes = session.metadata()?.len();
    if bytes < head.bytes || bytes == head.bytes && mtime_ns(session)? != head.mtime_ns {
        return Ok(false);
    }
    Ok(near(session, head.bytes)? == head.near)
}
