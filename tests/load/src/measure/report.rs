//! Rows as people read them, and as they are kept: a table, JSON, and the part of
//! docs/PERFORMANCE.md that is not written by hand.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::figures::{Figures, Row, median, short};
use super::store::STORES;

const BEGIN: &str = "<!-- figures: begin -->";
const END: &str = "<!-- figures: end -->";
const STORES_BEGIN: &str = "<!-- stores: begin -->";
const STORES_END: &str = "<!-- stores: end -->";
/// Scenarios of these names stand beside one another, not beside the floor.
pub const HISTORIES: [&str; 3] = ["history 1×", "history 10×", "history 100×"];

#[derive(Serialize, Deserialize)]
pub struct Kept {
    /// Of the machine.
    pub cores: usize,
    pub rows: Vec<Row>,
}

impl Kept {
    pub fn of(figures: &Figures) -> Kept {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Kept { cores, rows: figures.rows() }
    }

    /// With the rows of scenarios that an earlier run had and this one has not.
    pub fn with_earlier(mut self, path: &Path) -> Kept {
        let earlier = std::fs::read(path).ok();
        let Some(earlier) = earlier.and_then(|text| serde_json::from_slice::<Kept>(&text).ok())
        else {
            return self;
        };
        let mut rows = earlier.rows;
        for row in &mut rows {
            if let Some(at) = self.rows.iter().position(|new| is_same(new, row)) {
                *row = self.rows.remove(at);
            }
        }
        rows.append(&mut self.rows);
        Kept { rows, cores: self.cores }
    }

    /// What does not keep its bound.
    pub fn broken(&self) -> Vec<String> {
        let broken = self.rows.iter().filter(|row| row.holds == Some(false));
        broken.map(|row| format!("{}: {}", row.scenario, row.what)).collect()
    }

    pub fn text(&self) -> String {
        let rows = self.rows.iter().filter(|row| !is_of_a_store(row));
        let (grown, beside): (Vec<&Row>, Vec<&Row>) =
            rows.partition(|row| HISTORIES.contains(&&*row.scenario));
        let said = self.said(grown.iter().chain(&beside).copied());
        let plot = match self.rows.iter().any(|row| row.scenario.ends_with(" sessions")) {
            true => "![Lag over the number of sessions](images/lag.svg)\n",
            false => "",
        };
        let parts = [said, table(&beside), plot.to_owned(), growth(&grown)];
        parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("\n")
    }

    /// The table of stores; nothing if none was measured.
    pub fn stores(&self) -> String {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| is_of_a_store(row)).collect();
        match rows.is_empty() {
            true => String::new(),
            false => self.said(rows.iter().copied()) + "\n" + &stores(&rows),
        }
    }

    fn said<'a>(&self, rows: impl Iterator<Item = &'a Row>) -> String {
        let fewest = rows.map(|row| row.polyloop.len().max(row.floor.len())).min().unwrap_or(0);
        let cores = self.cores;
        format!(
            "Medians of {fewest} or more runs on a machine with {cores} cores, the least and the \
             most in brackets.\n"
        )
    }

    /// Puts the table into a document, between its marks.
    pub fn write_into(&self, path: &Path) -> io::Result<()> {
        put_between(path, (BEGIN, END), &self.text())
    }

    pub fn write_stores_into(&self, path: &Path) -> io::Result<()> {
        put_between(path, (STORES_BEGIN, STORES_END), &self.stores())
    }
}

fn put_between(path: &Path, (begin, end): (&str, &str), text: &str) -> io::Result<()> {
    let document = std::fs::read_to_string(path)?;
    let parts = document.split_once(begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(end)?;
        Some(format!("{before}{begin}\n\n{text}\n{end}{after}"))
    });
    let name = path.display();
    let parts = parts.ok_or_else(|| io::Error::other(format!("{name} has no {begin}, {end}")))?;
    std::fs::write(path, parts)
}

fn is_of_a_store(row: &Row) -> bool {
    STORES.contains(&&*row.scenario)
}

/// The same figure of every store, in a line.
fn stores(rows: &[&Row]) -> String {
    let mut lines = vec![
        format!("| figure | {} |", STORES.join(" | ")),
        format!("|---|{}", "---|".repeat(STORES.len())),
    ];
    let mut met: Vec<&str> = Vec::new();
    for first in rows {
        if met.contains(&&*first.what) {
            continue;
        }
        met.push(&first.what);
        let of = |store: &str| {
            let found = rows.iter().find(|row| row.scenario == store && row.what == first.what);
            found.map_or(String::new(), |row| match row.polyloop.is_empty() {
                true => spread(&row.floor),
                false => spread(&row.polyloop),
            })
        };
        lines.push(format!("| {} | {} |", named(first), STORES.map(of).join(" | ")));
    }
    lines.join("\n") + "\n"
}

fn is_same(one: &Row, other: &Row) -> bool {
    one.scenario == other.scenario && one.what == other.what
}

fn table(rows: &[&Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut lines = vec![
        "| scenario | figure | floor | polyloop | ratio | bound |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for row in rows {
        let Row { scenario, bound, .. } = row;
        let ratio = row.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let held = match row.holds {
            Some(true) => " ok",
            Some(false) => " **no**",
            None => "",
        };
        let (what, floor, ours) = (named(row), spread(&row.floor), spread(&row.polyloop));
        lines.push(format!("| {scenario} | {what} | {floor} | {ours} | {ratio} | {bound}{held} |"));
    }
    lines.join("\n") + "\n"
}

/// The same figure of sessions of different length, in a line.
fn growth(rows: &[&Row]) -> String {
    let mut lines = vec![
        format!("| figure | {} | 100× to 1× |", HISTORIES.join(" | ")),
        "|---|---|---|---|---|".to_owned(),
    ];
    for first in rows.iter().filter(|row| row.scenario == HISTORIES[0]) {
        let of = |history: &str| {
            let found = |row: &&&Row| row.scenario == history && row.what == first.what;
            rows.iter().find(found).map_or(&[][..], |row| &row.polyloop)
        };
        let cells = HISTORIES.map(|history| spread(of(history))).join(" | ");
        let ratio = median(of(HISTORIES[2])) / median(of(HISTORIES[0]));
        lines.push(format!("| {} | {cells} | {ratio:.2} |", named(first)));
    }
    match lines.len() {
        2 => String::new(),
        _ => lines.join("\n") + "\n",
    }
}

fn named(row: &Row) -> String {
    match row.unit.is_empty() {
        true => row.what.clone(),
        false => format!("{}, {}", row.what, row.unit),
    }
}

/// The median, with the least and the most.
fn spread(values: &[f64]) -> String {
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
    match values.len() {
        0 => String::new(),
        _ if low == high => short(low),
        _ => format!("{} ({}–{})", short(median(values)), short(low), short(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::{Bound, Side};
    use super::*;

    fn kept(scenario: &str, what: &'static str, value: f64) -> Kept {
        let mut figures = Figures::default();
        for (floor, ours) in [(1.0, 1.9), (1.1, 9.0), (1.2, value)] {
            let bound = Bound::TimesAtMost(2.0);
            figures.put(Side::Floor, scenario, (what, "ms"), bound, floor);
            figures.put(Side::Polyloop, scenario, (what, "ms"), bound, ours);
        }
        Kept { cores: 2, rows: figures.rows() }
    }

    #[test]
    fn a_row_says_it_all() {
        let text = kept("first", "p50", 2.0).text();
        let row = "| first | p50, ms | 1.10 (1.00–1.20) | 2.00 (1.90–9.00) | 1.82 | ≤ 2× ok |";
        assert!(text.contains(row), "{text}");
        let broken = kept("first", "p50", 3.0);
        assert!(broken.text().contains("**no**") && broken.broken() == ["first: p50"]);
    }

    #[test]
    fn what_was_measured_again_takes_its_old_place() {
        let folder = std::env::temp_dir().join(format!("load-report-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("figures.json");
        let mut earlier = kept("first", "p50", 3.0);
        earlier.rows.extend(kept("burst", "rate", 2.0).rows);
        std::fs::write(&path, serde_json::to_vec(&earlier).unwrap()).unwrap();
        let both = kept("first", "p50", 2.0).with_earlier(&path);
        let names: Vec<_> = both.rows.iter().map(|row| (&*row.scenario, row.holds)).collect();
        assert_eq!(names, [("first", Some(true)), ("burst", Some(true))]);
        let document = folder.join("document.md");
        std::fs::write(&document, format!("a\n{BEGIN}\nold\n{END}\nb\n")).unwrap();
        both.write_into(&document).unwrap();
        let text = std::fs::read_to_string(&document).unwrap();
        assert!(text.starts_with("a\n<!--") && text.ends_with("-->\nb\n"), "{text}");
        assert!(text.contains("| burst |") && !text.contains("old"), "{text}");
        std::fs::write(&document, "no marks").unwrap();
        assert!(both.write_into(&document).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn stores_stand_beside_one_another_and_nowhere_else() {
        let mut all = kept(STORES[1], "a turn", 2.0);
        all.rows.extend(kept(STORES[3], "a turn", 9.0).rows);
        all.rows.extend(kept("first", "p50", 2.0).rows);
        let wanted = "| a turn, ms |  | 2.00 (1.90–9.00) |  | 9.00 (1.90–9.00) |";
        assert!(all.stores().contains(wanted), "{}", all.stores());
        assert!(!all.stores().contains("p50") && !all.text().contains("a turn"));
    }

    #[test]
    fn histories_stand_beside_one_another() {
        let mut all = kept(HISTORIES[0], "a turn", 2.0);
        all.rows.extend(kept(HISTORIES[2], "a turn", 9.0).rows);
        let text = all.text();
        assert!(
            text.contains("| a turn, ms | 2.00 (1.90–9.00) |  | 9.00 (1.90–9.00) | 4.50 |"),
            "{text}"
        );
    }
}
