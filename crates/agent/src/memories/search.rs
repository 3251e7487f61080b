//! Finds memories by words: any of them, the rarest and most frequent count most.
//!
//! Whatever a query holds is looked for as it stands; none of it is an operator. A word is found
//! inside others and in any case. Words of less than three characters (in Chinese or Japanese a
//! word rarely has more) are not in the index: for them the user's memories are read.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::database::{spoken, user};
use super::{Found, Hit, QUERY_WORDS_MAX};

/// How much more a word counts in a key than in a value.
const KEY_WEIGHT: f64 = 4.0;
/// Shorter words are not in the index.
const INDEXED_CHARS_MIN: usize = 3;
/// As in BM25: how soon more of the same word stops to count.
const SATURATION: f64 = 1.2;
/// A word that most memories have still counts for something.
const RARITY_MIN: f64 = 1e-6;

/// Words of a query, each once.
#[derive(Debug, PartialEq, Eq)]
struct Words {
    indexed: Vec<String>,
    short: Vec<String>,
    cut: bool,
}

impl Words {
    fn of(query: &str) -> Words {
        let mut words = Words { indexed: Vec::new(), short: Vec::new(), cut: false };
        let mut seen = HashSet::new();
        for word in plain(query).split_whitespace() {
            if !seen.insert(folded(word)) {
                continue;
            }
            if seen.len() > QUERY_WORDS_MAX {
                words.cut = true;
                break;
            }
            match word.chars().count() < INDEXED_CHARS_MIN {
                true => words.short.push(folded(word)),
                // The index has a way of its own to fold.
                false => words.indexed.push(word.to_owned()),
            }
        }
        words
    }

    /// As the index is asked: each in quotes, so that nothing in it is an operator.
    fn expression(&self) -> String {
        let quoted = self.indexed.iter().map(|word| format!("\"{}\"", word.replace('"', "\"\"")));
        quoted.collect::<Vec<_>>().join(" OR ")
    }
}

/// The text as it is indexed: the index reads up to the first NUL only.
pub(super) fn plain(text: &str) -> String {
    text.replace('\0', " ")
}

/// Without case. Character by character, so that a part of a text folds as it does in the whole.
fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
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
    let mut scores = HashMap::new();
    if words.indexed.is_empty() && words.short.is_empty() {
        let mut all = at.prepare("SELECT id FROM memories WHERE user = ?1")?;
        for id in all.query_map([user], |row| row.get::<_, i64>(0))? {
            scores.insert(id?, 0.0);
        }
    }
    if !words.indexed.is_empty() {
        find_indexed(&at, user, &words.expression(), &mut scores)?;
    }
    if !words.short.is_empty() {
        find_short(&at, user, &words.short, &mut scores)?;
    }
    let mut best: Vec<(i64, f64)> = scores.into_iter().collect();
    // Of equals the newest.
    let order = |a: &(i64, f64), b: &(i64, f64)| {
        b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal).then(b.0.cmp(&a.0))
    };
    best.sort_by(order);
    let mut found = Found { hits: Vec::new(), total: best.len(), words_cut: words.cut };
    let sql = "SELECT key, value FROM memories WHERE id = ?1 AND user = ?2";
    let mut memory = at.prepare(sql)?;
    for (id, score) in best.into_iter().take(limit) {
        let hit = memory.query_row(params![id, user], |row| {
            Ok(Hit { key: row.get(0)?, value: row.get(1)?, score })
        });
        found.hits.extend(hit.optional()?);
    }
    Ok(found)
}

fn find_indexed(
    at: &Connection,
    user: i64,
    expression: &str,
    scores: &mut HashMap<i64, f64>,
) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT rowid, bm25(words_{user}, {KEY_WEIGHT:?}, 1.0) FROM words_{user}
         WHERE words_{user} MATCH ?1"
    );
    let mut matching = at.prepare(&sql)?;
    let mut rows = matching.query([expression])?;
    while let Some(row) = rows.next()? {
        // There, less is better.
        *scores.entry(row.get(0)?).or_default() -= row.get::<_, f64>(1)?;
    }
    Ok(())
}

/// The same for words that are not in the index, but for the length of a memory.
fn find_short(
    at: &Connection,
    user: i64,
    words: &[String],
    scores: &mut HashMap<i64, f64>,
) -> rusqlite::Result<()> {
    let mut all = at.prepare("SELECT id, key, value FROM memories WHERE user = ?1")?;
    let mut rows = all.query([user])?;
    let mut frequencies: Vec<Vec<(i64, f64)>> = vec![Vec::new(); words.len()];
    let mut count = 0.0;
    while let Some(row) = rows.next()? {
        let (id, key, value): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (key, value) = (folded(&key), folded(&spoken(&value)));
        count += 1.0;
        for (word, frequencies) in words.iter().zip(&mut frequencies) {
            let often = |text: &str| text.matches(word.as_str()).fold(0.0, |sum, _| sum + 1.0);
            let frequency = KEY_WEIGHT * often(&key) + often(&value);
            if frequency > 0.0 {
                frequencies.push((id, frequency));
            }
        }
    }
    for frequencies in frequencies {
        let having = frequencies.iter().fold(0.0, |sum, _| sum + 1.0);
        let rarity = f64::ln((count - having + 0.5) / (having + 0.5)).max(RARITY_MIN);
        for (id, frequency) in frequencies {
            let share = frequency * (SATURATION + 1.0) / (frequency + SATURATION);
            *scores.entry(id).or_default() += rarity * share;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_words_and_nothing_else() {
        let words = Words::of(" Deploy\0KEY* NEAR(a \"b\" c) AND deploy 东京 ^x -y ");
        assert_eq!(words.indexed, ["Deploy", "KEY*", "NEAR(a", "\"b\"", "AND"]);
        assert_eq!(words.short, ["c)", "东京", "^x", "-y"]);
        let expression = "\"Deploy\" OR \"KEY*\" OR \"NEAR(a\" OR \"\"\"b\"\"\" OR \"AND\"";
        assert_eq!(words.expression(), expression);
        assert!(!words.cut);
        let many: Vec<String> = (0..40).map(|n| format!("word{n}")).collect();
        let words = Words::of(&many.join(" "));
        assert!(words.cut && words.indexed.len() == QUERY_WORDS_MAX);
    }
}
