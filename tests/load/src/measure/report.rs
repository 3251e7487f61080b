//! Rows as people read them, and as they are kept: a table, JSON, and the part of
//! docs/PERFORMANCE.md that is not written by hand.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::figures::{Figures, Row, median, short};
use super::origin::Origin;
use super::store::STORES;

const BEGIN: &str = "<!-- figures: begin -->";
const END: &str = "<!-- figures: end -->";
const STORES_BEGIN: &str = "<!-- stores: begin -->";
const STORES_END: &str = "<!-- stores: end -->";
/// Scenarios of these names stand beside one another, not beside the floor.
pub const HISTORIES: [&str; 3] = ["history 1×", "history 10×", "history 100×"];

#[derive(Serialize, Deserialize)]
pub struct Kept {
    pub origin: Origin,
    /// The days on which the oldest and the newest of its rows were measured.
    pub first_date: String,
    pub last_date: String,
    pub rows: Vec<Row>,
}

/// A part of a document that is not written by hand, and the rows that stand there.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    Beside,
    Stores,
}

impl Part {
    fn has(self, row: &Row) -> bool {
        match self {
            Part::Beside => !is_of_a_store(row),
            Part::Stores => is_of_a_store(row),
        }
    }
}

impl Kept {
    pub fn of(figures: &Figures, origin: Origin, date: String) -> Kept {
        Kept { origin, first_date: date.clone(), last_date: date, rows: figures.rows() }
    }

    /// With the rows of scenarios that an earlier run had and this one has not, if it was one of
    /// the same programs on the same processor.
    pub fn with_earlier(mut self, path: &Path) -> Kept {
        let Ok(earlier) = std::fs::read(path) else { return self };
        let earlier = serde_json::from_slice::<Kept>(&earlier).ok();
        let Some(earlier) = earlier.filter(|earlier| earlier.origin == self.origin) else {
            println!("-- earlier figures are of other programs or another machine: left out\n");
            return self;
        };
        let was_all = earlier.rows.iter().all(|old| self.rows.iter().any(|new| is_same(new, old)));
        if !was_all {
            self.first_date = earlier.first_date;
        }
        let mut rows = earlier.rows;
        for row in &mut rows {
            if let Some(at) = self.rows.iter().position(|new| is_same(new, row)) {
                *row = self.rows.remove(at);
            }
        }
        rows.append(&mut self.rows);
        Kept { rows, ..self }
    }

    /// Whether one of the rows of a part says that the floor beside which they stand was one.
    pub fn checks_floor(&self, part: Part) -> bool {
        self.rows.iter().any(|row| part.has(row) && row.checks_floor)
    }

    /// What does not keep its bound.
    pub fn broken(&self) -> Vec<String> {
        let broken = self.rows.iter().filter(|row| row.holds == Some(false));
        broken.map(|row| format!("{}: {}", row.scenario, row.what)).collect()
    }

    pub fn text(&self) -> String {
        let rows = self.rows.iter().filter(|row| Part::Beside.has(row));
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
        let rows: Vec<&Row> = self.rows.iter().filter(|row| Part::Stores.has(row)).collect();
        match rows.is_empty() {
            true => String::new(),
            false => self.said(rows.iter().copied()) + "\n" + &stores(&rows),
        }
    }

    fn said<'a>(&self, rows: impl Iterator<Item = &'a Row>) -> String {
        let fewest = rows.map(|row| row.polyloop.len().max(row.floor.len())).min();
        let Some(fewest) = fewest else { return String::new() };
        let Kept { origin, first_date, last_date, .. } = self;
        let when = match first_date == last_date {
            true => format!("on {last_date}"),
            false => format!("from {first_date} to {last_date}"),
        };
        format!(
            "Measured {when}: {origin}. Medians of {fewest} or more runs, the least and the most \
             in brackets.\n"
        )
    }

    /// Puts the table into a document, between its marks; not if nobody looked at the floor.
    pub fn write_into(&self, path: &Path, part: Part) -> io::Result<()> {
        if !self.checks_floor(part) {
            return Err(io::Error::other(format!(
                "{}: not written, because no figure says that the floor was one; let `first` or \
                 `crowd` run too (for stores: `store`)",
                path.display()
            )));
        }
        match part {
            Part::Beside => put_between(path, (BEGIN, END), &self.text()),
            Part::Stores => put_between(path, (STORES_BEGIN, STORES_END), &self.stores()),
        }
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
        Kept::of(&figures, origin(), "2026-11-18".to_owned())
    }

    fn origin() -> Origin {
        let (server, processor) = ("polyloop 0.1.0".to_owned(), "AMD EPYC".to_owned());
        let (server_hash, load_hash) = ("5e".to_owned(), "10ad".to_owned());
        Origin { cores: 2, processor, server, server_hash, load_hash }
    }

    /// A folder of a test's own, without anything in it.
    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("load-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_row_says_it_all() {
        let text = kept("first", "p50", 2.0).text();
        let row = "| first | p50, ms | 1.10 (1.00–1.20) | 2.00 (1.90–9.00) | 1.90 | ≤ 2× ok |";
        assert!(text.contains(row), "{text}");
        let broken = kept("first", "p50", 3.0);
        assert!(broken.text().contains("**no**") && broken.broken() == ["first: p50"]);
    }

    #[test]
    fn what_was_measured_again_takes_its_old_place() {
        let folder = folder("again");
        let path = folder.join("figures.json");
        let mut earlier = kept("first", "p50", 3.0);
        earlier.rows.extend(kept("burst", "rate", 2.0).rows);
        std::fs::write(&path, serde_json::to_vec(&earlier).unwrap()).unwrap();
        let both = kept("first", "p50", 2.0).with_earlier(&path);
        let names: Vec<_> = both.rows.iter().map(|row| (&*row.scenario, row.holds)).collect();
        assert_eq!(names, [("first", Some(true)), ("burst", Some(true))]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_table_says_what_was_measured_and_when() {
        let folder = folder("origin");
        let path = folder.join("figures.json");
        let mut earlier = kept("burst", "rate", 2.0);
        (earlier.first_date, earlier.last_date) = ("2026-11-16".into(), "2026-11-17".into());
        std::fs::write(&path, serde_json::to_vec(&earlier).unwrap()).unwrap();
        let said = "polyloop 0.1.0 (hash 5e, load 10ad) on a machine with 2 cores (AMD EPYC). Med";
        let both = kept("first", "p50", 2.0).with_earlier(&path).text();
        let wanted = format!("Measured from 2026-11-16 to 2026-11-18: {said}");
        assert!(both.starts_with(&wanted), "{both}");
        // Nothing of what was old is left.
        let again = kept("burst", "rate", 2.0).with_earlier(&path).text();
        assert!(again.starts_with(&format!("Measured on 2026-11-18: {said}")), "{again}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn figures_of_another_program_are_not_kept() {
        let folder = folder("other");
        let path = folder.join("figures.json");
        let changes: [fn(&mut Origin); 3] = [
            |origin| origin.server_hash = "other".into(),
            |origin| origin.load_hash = "other".into(),
            |origin| origin.processor = "other".into(),
        ];
        for change in changes {
            let mut earlier = kept("burst", "rate", 2.0);
            change(&mut earlier.origin);
            std::fs::write(&path, serde_json::to_vec(&earlier).unwrap()).unwrap();
            let new = kept("first", "p50", 2.0).with_earlier(&path);
            let names: Vec<_> = new.rows.iter().map(|row| &*row.scenario).collect();
            assert_eq!((names, &*new.first_date), (vec!["first"], "2026-11-18"));
        }
        // As they were kept before they said what they are of.
        std::fs::write(&path, r#"{"cores": 2, "rows": []}"#).unwrap();
        assert_eq!(kept("first", "p50", 2.0).with_earlier(&path).rows.len(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_document_gets_no_figures_without_a_look_at_the_floor() {
        let folder = folder("document");
        let document = folder.join("document.md");
        let before = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        std::fs::write(&document, &before).unwrap();
        let mut all = kept("burst", "rate", 2.0);
        let mut figures = Figures::default();
        figures.put(Side::Floor, STORES[0], ("added", "ms"), Bound::FloorAtMost(0.5), 0.4);
        // That of another table says nothing of this one.
        all.rows.extend(figures.rows());
        assert!(all.write_into(&document, Part::Beside).is_err());
        assert_eq!(std::fs::read_to_string(&document).unwrap(), before);
        let mut figures = Figures::default();
        figures.put(Side::Floor, "first", ("added", "ms"), Bound::FloorAtMost(0.5), 0.4);
        all.rows.extend(figures.rows());
        all.write_into(&document, Part::Beside).unwrap();
        let text = std::fs::read_to_string(&document).unwrap();
        assert!(text.starts_with("a\n<!--") && text.ends_with("-->\nb\n"), "{text}");
        assert!(text.contains("| burst |") && !text.contains("old"), "{text}");
        std::fs::write(&document, "no marks").unwrap();
        assert!(all.write_into(&document, Part::Beside).is_err());
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
