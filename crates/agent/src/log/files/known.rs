//! What is known of sessions without opening them: for lists, and to find places in their files.
//!
//! A summary is kept of every session that was listed or opened; places of all that are open, and
//! of the last few others.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::path::Path;

use polyloop_session::{LogEntry, Seq, SessionId};

use super::super::{Line, LogError, Standing, Summary};
use super::index::{self, Place, Source};
use super::lines::Lines;
use super::load::adopted;
use super::{Store, lock};

/// Sessions that nobody has open and whose places are kept in memory.
const PLACED_SESSIONS_MAX: usize = 64;

/// Newest entries of an open session whose places are all known: most who read on are near its end.
const RECENT_ENTRIES: usize = 64;

#[derive(Default)]
pub(super) struct Known {
    all: HashMap<SessionId, Session>,
    /// Those of them with places that nobody has open, the longest unused first.
    placed: VecDeque<SessionId>,
}

pub(super) struct Session {
    pub summary: Summary,
    /// The file's length when the summary was made; a file of another length is read again.
    pub bytes: u64,
    /// Where some entries begin, in order; nothing where nobody has looked.
    pub places: Option<Vec<Place>>,
    /// Where the newest entries begin, while a writer has the session open.
    pub recent: VecDeque<Place>,
    /// A writer has the session open and keeps this up to date.
    pub leased: bool,
}

impl Session {
    /// An entry was appended.
    pub fn appended(&mut self, place: Place) {
        let places = self.places.get_or_insert_default();
        if place.counts_after(places.last()) {
            places.push(place);
        }
        if self.recent.len() == RECENT_ENTRIES {
            self.recent.pop_front();
        }
        self.recent.push_back(place);
    }
}

impl Known {
    pub fn get(&self, id: &SessionId) -> Option<&Session> {
        self.all.get(id)
    }

    pub fn get_mut(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.all.get_mut(id)
    }

    pub fn insert(&mut self, id: SessionId, session: Session) {
        self.placed.retain(|placed| *placed != id);
        let counts = !session.leased && session.places.is_some();
        self.all.insert(id.clone(), session);
        if counts {
            self.used(id);
        }
    }

    pub fn remove(&mut self, id: &SessionId) {
        self.placed.retain(|placed| placed != id);
        self.all.remove(id);
    }

    /// Forgets those that are gone.
    pub fn keep(&mut self, there: &HashSet<SessionId>) {
        self.all.retain(|id, session| session.leased || there.contains(id));
        self.placed.retain(|id| self.all.contains_key(id));
    }

    /// Its writer is gone.
    pub fn release(&mut self, id: &SessionId) {
        if let Some(session) = self.all.get_mut(id) {
            session.leased = false;
            session.recent = VecDeque::new();
            self.used(id.clone());
        }
    }

    /// Forgets the places that were not used for the longest time.
    pub fn used(&mut self, id: SessionId) {
        self.placed.retain(|placed| *placed != id);
        self.placed.push_back(id);
        while self.placed.len() > PLACED_SESSIONS_MAX {
            let Some(oldest) = self.placed.pop_front() else { return };
            if let Some(session) = self.all.get_mut(&oldest).filter(|session| !session.leased) {
                session.places = None;
            }
        }
    }
}

/// The last place that holds for the wanted one, and how long the file was then.
pub(super) struct Near {
    pub place: Option<Place>,
    pub bytes: u64,
}

impl Store {
    /// What a list shows of a session.
    pub(super) fn summary(&self, id: &SessionId) -> Result<Option<Summary>, LogError> {
        self.with_known(id, |session| session.summary.clone())
    }

    /// Shows a session as it is by now, which is found out if it must be.
    fn with_known<T>(
        &self,
        id: &SessionId,
        show: impl FnOnce(&mut Session) -> T,
    ) -> Result<Option<T>, LogError> {
        let path = self.path(id, "jsonl");
        let bytes = match std::fs::metadata(&path) {
            // Reading from a pipe could wait for ever.
            Ok(meta) if !meta.is_file() => return Ok(None),
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.error(id, &error)),
        };
        if let Some(known) = lock(&self.known).get_mut(id)
            && (known.leased || known.bytes == bytes)
        {
            return Ok(Some(show(known)));
        }
        let looked = self.look(id, &path).map_err(|error| self.error(id, &error))?;
        let mut all = lock(&self.known);
        // Unless it was opened in the meantime.
        if all.get(id).is_none_or(|known| !known.leased) {
            all.insert(id.clone(), looked);
        }
        Ok(all.get_mut(id).map(show))
    }

    /// From the index and what came after it, or from the whole file.
    fn look(&self, id: &SessionId, path: &Path) -> io::Result<Session> {
        let file = File::open(path)?;
        let index_path = self.path(id, "index");
        let head = index::head(&index_path, &file);
        let known = head.as_ref().map(|head| {
            (
                head.bytes,
                Summary {
                    id: id.clone(),
                    start: head.start,
                    last: head.last,
                    lines: head.lines,
                    named: head.named.clone(),
                    spent: head.spent,
                    standing: head.standing.clone(),
                },
            )
        });
        let is_new = known.is_none();
        let (from, before) = known.unwrap_or_else(|| (0, Summary::none(id)));
        let scanned = self.scan(before, Lines::from(file.try_clone()?, from)?)?;
        let Scanned { summary, bytes, ended } = scanned;
        if is_new && ended && self.may_write && bytes >= self.index_bytes_min {
            let (places, turns): (&[Place], &[Seq]) = (&[], &[]);
            let source = Source { summary: &summary, bytes, places, turns, state: None };
            // Whether it can be kept makes no difference but of time.
            let _ = index::text(&file, &source)
                .and_then(|text| index::write(&*self.disk, &index_path, &text));
        }
        Ok(Session { summary, bytes, places: None, recent: VecDeque::new(), leased: false })
    }

    /// The last known place up to the entry or line that `is_before` says.
    pub(super) fn near(
        &self,
        id: &SessionId,
        is_before: impl Fn(&Place) -> bool,
    ) -> Result<Option<Near>, LogError> {
        let find = |session: &mut Session| {
            let places = session.places.as_ref()?;
            let count = places.partition_point(&is_before);
            let place = count.checked_sub(1).and_then(|at| places.get(at)).copied();
            let place =
                session.recent.iter().rev().find(|place| is_before(place)).copied().or(place);
            Some(Near { place, bytes: session.bytes })
        };
        match self.with_known(id, find)? {
            None => return Ok(None),
            Some(Some(near)) => return Ok(Some(near)),
            Some(None) => {}
        }
        let found = File::open(self.path(id, "jsonl"))
            .ok()
            .and_then(|file| index::places(&self.path(id, "index"), &file));
        let places = found.map(|(_, places)| places.places).unwrap_or_default();
        let near = self.with_known(id, |session| {
            session.places.get_or_insert(places);
            find(session)
        })?;
        let mut all = lock(&self.known);
        if all.get(id).is_some_and(|session| !session.leased) {
            all.used(id.clone());
        }
        Ok(near.flatten())
    }

    /// Remembers places in a file that nobody has open, so that the next page begins there.
    pub(super) fn learn(&self, id: &SessionId, bytes: u64, found: Vec<Place>) {
        let mut all = lock(&self.known);
        let unchanged = all.get_mut(id).filter(|known| !known.leased && known.bytes == bytes);
        let Some(known) = unchanged else { return };
        let places = known.places.get_or_insert_default();
        for place in found {
            if places.last().is_none_or(|last| last.seq < place.seq) {
                places.push(place);
            }
        }
        all.used(id.clone());
    }
}

impl Summary {
    pub(in crate::log) fn none(id: &SessionId) -> Summary {
        let (start, last) = Default::default();
        let (named, spent, standing) = Default::default();
        Summary { id: id.clone(), start, last, lines: 0, named, spent, standing }
    }
}

struct Scanned {
    summary: Summary,
    bytes: u64,
    /// The last line has its end.
    ended: bool,
}

impl Store {
    /// How many lines there are, and when the first and the last were written. Reads no event but
    /// those that a list may show something of.
    fn scan(&self, before: Summary, mut lines: Lines) -> io::Result<Scanned> {
        let (mut summary, mut last, mut ended) = (before, String::new(), true);
        let mut is_begun = summary.lines > 0;
        while let Some(line) = lines.next()? {
            summary.lines += 1;
            ended = line.whole;
            let Some(text) = line.text().filter(|text| !text.is_empty()) else { continue };
            if !is_begun && let Some(at) = self.codec.line_time(text) {
                (summary.start, summary.last, is_begun) = (at, at, true);
            }
            if let Some(entry) = self.listed(&summary.id, text) {
                summary.spent.take(&entry.event);
                summary.named.take(&entry.event);
                summary.standing.take(&entry);
            }
            last.clear();
            last.push_str(text);
        }
        summary.last = self.codec.line_time(&last).unwrap_or(summary.last);
        Ok(Scanned { summary, bytes: lines.place, ended })
    }

    /// The entry of a line that a list may show something of.
    fn listed(&self, id: &SessionId, line: &str) -> Option<LogEntry> {
        let counts = ["\"title\"", "\"agent\"", "\"call_ended\""].iter().any(|w| line.contains(w));
        if !counts && !Standing::may_count(line) {
            return None;
        }
        match self.codec.read(line, &|name| self.blob(id, name)) {
            Line::Entry(entry) => Some(entry),
            // Its number is not needed: another program's line opens nothing.
            Line::Foreign { at, piece } => Some(adopted(Seq::NONE, at, piece)),
            Line::More { .. } | Line::Audit | Line::Damaged { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &SessionId, leased: bool) -> Session {
        let places = Some(vec![Place { seq: Seq(1), line: 0, byte: 0 }]);
        let recent = VecDeque::new();
        Session { summary: Summary::none(id), bytes: 1, places, recent, leased }
    }

    fn placed(known: &Known) -> usize {
        known.all.values().filter(|session| session.places.is_some()).count()
    }

    #[test]
    fn places_are_kept_of_what_is_open_and_of_the_last_few() {
        let mut known = Known::default();
        let id = |n: usize| SessionId::parse(&format!("s{n}")).unwrap();
        for n in 0..10 {
            known.insert(id(n), session(&id(n), true));
        }
        for n in 10..500 {
            known.insert(id(n), session(&id(n), false));
            // This one is used all the time.
            known.used(id(10));
        }
        assert_eq!(placed(&known), 10 + PLACED_SESSIONS_MAX);
        assert!(known.get(&id(10)).is_some_and(|used| used.places.is_some()));
        assert!(known.get(&id(11)).is_some_and(|unused| unused.places.is_none()));
        for n in 0..10 {
            known.release(&id(n));
        }
        assert_eq!(placed(&known), PLACED_SESSIONS_MAX);
        known.keep(&HashSet::from([id(499)]));
        assert_eq!((known.all.len(), known.placed.len()), (1, 1));
    }
}
