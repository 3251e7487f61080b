//! Finds memories by words: any of them, and those that are rare count most.
//!
//! Whatever a query holds is looked for as it stands; none of it is an operator. A word is found
//! inside others and in any case. Words of less than three characters (in Chinese or Japanese a
//! word rarely has more) are not in the index: for them the user's memories are read.
//!
//! The index is everybody's, so it only tells which memories have a word. How good they are is
//! reckoned here, from the user's own memories alone: SQLite's `bm25` weighs a word by all rows
//! that have it, and would tell one user what others keep.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, params};

use super::database::{spoken, user};
use super::{Found, Hit, QUERY_WORDS_MAX};

/// How much more a word counts in a key than in a value; the same again where it is the key.
const KEY_WEIGHT: f64 = 4.0;
/// Shorter words are not in the index.
const INDEXED_CHARS_MIN: usize = 3;
/// BM25's `k1`: how soon more of the same word stops to count.
const SATURATION: f64 = 1.2;
/// BM25's `b`: how much less a word counts in a memory that is longer than others.
const LENGTH_WEIGHT: f64 = 0.75;

/// The words of a query, each once.
#[derive(Debug, PartialEq, Eq)]
struct Words {
    all: Vec<String>,
    cut: bool,
}

impl Words {
    fn of(query: &str) -> Words {
        let mut words = Words { all: Vec::new(), cut: false };
        let mut seen = HashSet::new();
        for word in plain(query).split_whitespace() {
            if !seen.insert(folded(word)) {
                continue;
            }
            if words.all.len() == QUERY_WORDS_MAX {
                words.cut = true;
                break;
            }
            words.all.push(word.to_owned());
        }
        words
    }
}

/// The text as it is indexed: the index reads up to the first NUL only.
pub(super) fn plain(text: &str) -> String {
    text.replace('\0', " ")
}

/// Without case. Character by character, so that a part of a text folds as it does in the whole.
fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars().flat_map(char::to_lowercase).collect()
}

/// As the index is asked: in quotes, so that nothing in it is an operator.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

pub(super) fn search(
    connection: &mut Connection,
    name: &str,
    query: &str,
    limit: usize,
) -> rusqlite::Result<Found> {
    // What is found is still there when it is read.
    let at = connection.transaction()?;
    let Some(user) = user(&at, name)? else { return Ok(Found::default()) };
    let words = Words::of(query);
    let mut shelf = Shelf::of(&at, user)?;
    let mut scores: HashMap<i64, f64> = HashMap::new();
    if words.all.is_empty() {
        scores.extend(shelf.ids()?.into_iter().map(|id| (id, 0.0)));
    }
    for word in &words.all {
        for (id, score) in shelf.weigh(word)? {
            *scores.entry(id).or_default() += score;
        }
    }
    let mut best: Vec<(i64, f64)> = scores.into_iter().collect();
    // Of equals the newest.
    best.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    let total = best.len();
    let hit = |(id, score)| shelf.hit(id, score);
    let hits = best.into_iter().take(limit).map(hit).collect::<rusqlite::Result<_>>()?;
    Ok(Found { hits, total, words_cut: words.cut })
}

/// One user's memories while a search looks at them.
struct Shelf<'a> {
    at: &'a Connection,
    user: i64,
    count: f64,
    /// Bytes of a value, on average.
    length: f64,
    /// Folded keys and values of those that were read.
    read: HashMap<i64, (String, String)>,
}

impl<'a> Shelf<'a> {
    fn of(at: &'a Connection, user: i64) -> rusqlite::Result<Shelf<'a>> {
        let sql = "SELECT count(*), avg(octet_length(value)) FROM memories WHERE user = ?1";
        let (count, length) = at.query_row(sql, [user], |row| {
            Ok((row.get::<_, u32>(0)?, row.get::<_, Option<f64>>(1)?))
        })?;
        let (count, length) = (f64::from(count), length.unwrap_or_default().max(1.0));
        Ok(Shelf { at, user, count, length, read: HashMap::new() })
    }

    fn ids(&self) -> rusqlite::Result<Vec<i64>> {
        let mut all = self.at.prepare("SELECT id FROM memories WHERE user = ?1")?;
        all.query_map([self.user], |row| row.get(0))?.collect()
    }

    fn hit(&self, id: i64, score: f64) -> rusqlite::Result<Hit> {
        let sql = "SELECT key, value FROM memories WHERE id = ?1 AND user = ?2";
        let mut memory = self.at.prepare(sql)?;
        let hit = |row: &rusqlite::Row<'_>| Ok(Hit { key: row.get(0)?, value: row.get(1)?, score });
        memory.query_row(params![id, self.user], hit)
    }

    fn read(&mut self, id: i64) -> rusqlite::Result<&(String, String)> {
        if !self.read.contains_key(&id) {
            let Hit { key, value, .. } = self.hit(id, 0.0)?;
            self.read.insert(id, (folded(&key), folded(&spoken(&value))));
        }
        // It is there.
        Ok(self.read.entry(id).or_default())
    }

    /// The memories that have a word, each with what that counts.
    fn weigh(&mut self, word: &str) -> rusqlite::Result<Vec<(i64, f64)>> {
        let is_indexed = word.chars().count() >= INDEXED_CHARS_MIN;
        let candidates = if is_indexed { self.having(word)? } else { self.ids()? };
        let word = folded(word);
        let (average, mut having) = (self.length, Vec::new());
        for id in candidates {
            let (key, value) = self.read(id)?;
            let often = |text: &str| {
                f64::from(u32::try_from(text.matches(&word).count()).unwrap_or(u32::MAX))
            };
            let exact = if *key == word { KEY_WEIGHT } else { 0.0 };
            let frequency = exact + KEY_WEIGHT * often(key) + often(value);
            // The index folds some letters that we do not.
            let frequency = if is_indexed { frequency.max(1.0) } else { frequency };
            let length = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX)) / average;
            if frequency > 0.0 {
                having.push((id, frequency, length));
            }
        }
        let count = f64::from(u32::try_from(having.len()).unwrap_or(u32::MAX));
        let rarity = f64::ln_1p((self.count - count + 0.5) / (count + 0.5));
        let weighed = having.into_iter().map(|(id, frequency, length)| {
            let slack = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
            (id, rarity * frequency * (SATURATION + 1.0) / (frequency + slack))
        });
        Ok(weighed.collect())
    }

    /// The memories in which the index knows a word.
    fn having(&self, word: &str) -> rusqlite::Result<Vec<i64>> {
        let sql = "SELECT memories.id FROM words JOIN memories ON memories.id = words.rowid
                   WHERE words MATCH ?1 AND user = ?2";
        let mut matching = self.at.prepare(sql)?;
        matching.query_map(params![quoted(word), self.user], |row| row.get(0))?.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_words_and_nothing_else() {
        let words = Words::of(" Deploy\0KEY* NEAR(a \"b\" c) AND deploy 东京 ^x -y ");
        let want = ["Deploy", "KEY*", "NEAR(a", "\"b\"", "c)", "AND", "东京", "^x", "-y"];
        assert_eq!(words, Words { all: want.map(str::to_owned).into(), cut: false });
        assert_eq!(quoted("\"b\" OR *"), "\"\"\"b\"\" OR *\"");
        let many: Vec<String> = (0..40).map(|n| format!("word{n}")).collect();
        let words = Words::of(&many.join(" "));
        assert!(words.cut && words.all.len() == QUERY_WORDS_MAX);
    }
}
