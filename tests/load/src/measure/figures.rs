//! What was measured: every value of every run, then medians and how far they spread.

use std::collections::BTreeMap;

use serde_json::{Value, json};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    Floor,
    Polyloop,
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Side::Floor => "floor",
            Side::Polyloop => "polyloop",
        }
    }
}

/// How a figure is to be compared with the floor's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    None,
    /// At most so many times the floor's.
    TimesAtMost(f64),
    TimesAtLeast(f64),
    /// At most so much above the floor's.
    AboveAtMost(f64),
    AtMost(f64),
}

impl Bound {
    fn holds(self, floor: f64, ours: f64) -> Option<bool> {
        match self {
            Bound::None => None,
            Bound::TimesAtMost(times) => Some(ours <= times * floor),
            Bound::TimesAtLeast(times) => Some(ours >= times * floor),
            Bound::AboveAtMost(more) => Some(ours <= floor + more),
            Bound::AtMost(most) => Some(ours <= most),
        }
    }

    fn text(self) -> String {
        match self {
            Bound::None => String::new(),
            Bound::TimesAtMost(times) => format!("≤ {times}×"),
            Bound::TimesAtLeast(times) => format!("≥ {times}×"),
            Bound::AboveAtMost(more) => format!("≤ floor + {more}"),
            Bound::AtMost(most) => format!("≤ {most}"),
        }
    }
}

#[derive(Clone, Debug)]
struct Figure {
    unit: &'static str,
    bound: Bound,
    values: BTreeMap<Side, Vec<f64>>,
}

/// In the order in which they were first met.
#[derive(Default)]
pub struct Figures {
    names: Vec<(String, &'static str)>,
    all: BTreeMap<(String, &'static str), Figure>,
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (length, middle) if length % 2 == 1 => sorted[middle],
        (_, middle) => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

impl Figures {
    pub fn put(
        &mut self,
        side: Side,
        scenario: &str,
        (what, unit): (&'static str, &'static str),
        bound: Bound,
        value: f64,
    ) {
        println!("{:8} {scenario}: {what} {} {unit}", side.name(), short(value));
        let name = (scenario.to_owned(), what);
        if !self.all.contains_key(&name) {
            self.names.push(name.clone());
        }
        let empty = || Figure { unit, bound, values: BTreeMap::new() };
        let figure = self.all.entry(name).or_insert_with(empty);
        figure.values.entry(side).or_default().push(value);
    }

    fn each(&self) -> impl Iterator<Item = (&str, &'static str, &Figure)> {
        self.names
            .iter()
            .filter_map(|name| self.all.get(name).map(|figure| (name.0.as_str(), name.1, figure)))
    }

    pub fn median(&self, side: Side, scenario: &str, what: &'static str) -> Option<f64> {
        let figure = self.all.get(&(scenario.to_owned(), what))?;
        figure.values.get(&side).map(|values| median(values))
    }

    pub fn json(&self) -> Value {
        let row = |(scenario, what, figure): (&str, &str, &Figure)| {
            let of = |side: Side| figure.values.get(&side).cloned().unwrap_or_default();
            let (floor, ours) = (of(Side::Floor), of(Side::Polyloop));
            let (low, high) = (median(&floor), median(&ours));
            let number = |value: f64| value.is_finite().then_some(value);
            json!({
                "scenario": scenario, "what": what, "unit": figure.unit,
                "floor": floor, "polyloop": ours,
                "floor_median": number(low), "polyloop_median": number(high),
                "ratio": number(high / low), "bound": figure.bound.text(),
                "holds": figure.bound.holds(low, high),
            })
        };
        Value::Array(self.each().map(row).collect())
    }

    /// For people, and for docs/PERFORMANCE.md.
    pub fn table(&self) -> String {
        let mut lines = vec![
            "| scenario | figure | floor | polyloop | ratio | bound |".to_owned(),
            "|---|---|---|---|---|---|".to_owned(),
        ];
        for (scenario, what, figure) in self.each() {
            let of = |side: Side| figure.values.get(&side).map_or(&[][..], |values| values);
            let (floor, ours) = (of(Side::Floor), of(Side::Polyloop));
            let (low, high) = (median(floor), median(ours));
            let ratio = match (high / low).is_finite() {
                true => format!("{:.2}", high / low),
                false => String::new(),
            };
            let held = match figure.bound.holds(low, high) {
                Some(true) => " ok",
                Some(false) => " **no**",
                None => "",
            };
            let bound = figure.bound.text();
            let (floor, ours, unit) = (spread(floor), spread(ours), figure.unit);
            lines.push(format!(
                "| {scenario} | {what}, {unit} | {floor} | {ours} | {ratio} | {bound}{held} |"
            ));
        }
        lines.join("\n") + "\n"
    }

    /// Whether every figure that has a bound keeps it.
    pub fn all_hold(&self) -> bool {
        self.each().all(|(_, _, figure)| {
            let of = |side: Side| figure.values.get(&side).map_or(f64::NAN, |v| median(v));
            figure.bound.holds(of(Side::Floor), of(Side::Polyloop)) != Some(false)
        })
    }
}

/// The median, with the least and the most.
fn spread(values: &[f64]) -> String {
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
    match values.len() {
        0 => String::new(),
        1 => short(values[0]),
        _ => format!("{} ({}–{})", short(median(values)), short(low), short(high)),
    }
}

/// Three figures that mean something.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_on_medians() {
        let mut figures = Figures::default();
        for (floor, ours) in [(1.0, 1.9), (1.1, 9.0), (1.2, 2.0)] {
            let bound = Bound::TimesAtMost(2.0);
            figures.put(Side::Floor, "first", ("p50", "ms"), bound, floor);
            figures.put(Side::Polyloop, "first", ("p50", "ms"), bound, ours);
        }
        assert!(figures.all_hold());
        let row = "| first | p50, ms | 1.10 (1.00–1.20) | 2.00 (1.90–9.00) | 1.82 | ≤ 2× ok |";
        assert!(figures.table().contains(row), "{}", figures.table());
        figures.put(Side::Polyloop, "first", ("p50", "ms"), Bound::None, 9.0);
        figures.put(Side::Polyloop, "first", ("p50", "ms"), Bound::None, 9.0);
        assert!(!figures.all_hold());
    }

    #[test]
    fn the_middle_of_an_even_count_is_between() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
