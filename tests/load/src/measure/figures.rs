//! What was measured: every value of every run, then medians and how far they spread.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    /// The bare relay; for fan-out, the bare write.
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
    /// The floor itself must keep it, or the whole run says nothing.
    FloorAtMost(f64),
}

impl Bound {
    /// By the middle of what each run found, in which the machine was of one mood for both.
    fn holds(self, floor: &[f64], ours: &[f64]) -> Option<bool> {
        match self {
            Bound::None | Bound::FloorAtMost(_) => None,
            Bound::TimesAtMost(times) => Some(ratio(floor, ours) <= times),
            Bound::TimesAtLeast(times) => Some(ratio(floor, ours) >= times),
            Bound::AboveAtMost(more) => Some(each_run(floor, ours, |low, high| high - low) <= more),
            Bound::AtMost(most) => Some(median(ours) <= most),
        }
    }

    fn text(self) -> String {
        match self {
            Bound::None => String::new(),
            Bound::TimesAtMost(times) => format!("≤ {times}×"),
            Bound::TimesAtLeast(times) => format!("≥ {times}×"),
            Bound::AboveAtMost(more) => format!("≤ floor + {more}"),
            Bound::AtMost(most) => format!("≤ {most}"),
            Bound::FloorAtMost(most) => format!("floor ≤ {most}"),
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

/// One figure of one scenario, as it is kept: all that a table or a plot needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    pub scenario: String,
    pub what: String,
    pub unit: String,
    pub floor: Vec<f64>,
    pub polyloop: Vec<f64>,
    pub floor_median: Option<f64>,
    pub polyloop_median: Option<f64>,
    pub ratio: Option<f64>,
    pub bound: String,
    pub holds: Option<bool>,
    /// Whether the floor's own figure was compared with what a floor may take.
    pub checks_floor: bool,
}

/// NaN of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (length, middle) if length % 2 == 1 => sorted[middle],
        (_, middle) => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// Of one side to the other in each run, the middle one.
fn ratio(floor: &[f64], ours: &[f64]) -> f64 {
    each_run(floor, ours, |low, high| high / low)
}

fn each_run(floor: &[f64], ours: &[f64], compared: fn(f64, f64) -> f64) -> f64 {
    let runs = floor.iter().zip(ours).map(|(low, high)| compared(*low, *high));
    median(&runs.collect::<Vec<_>>())
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

    pub fn rows(&self) -> Vec<Row> {
        let number = |value: f64| value.is_finite().then_some(value);
        let row = |(scenario, what, figure): (&str, &str, &Figure)| {
            let of = |side: Side| figure.values.get(&side).cloned().unwrap_or_default();
            let (floor, polyloop) = (of(Side::Floor), of(Side::Polyloop));
            Row {
                scenario: scenario.to_owned(),
                what: what.to_owned(),
                unit: figure.unit.to_owned(),
                floor_median: number(median(&floor)),
                polyloop_median: number(median(&polyloop)),
                ratio: number(ratio(&floor, &polyloop)),
                bound: figure.bound.text(),
                holds: figure.bound.holds(&floor, &polyloop),
                checks_floor: matches!(figure.bound, Bound::FloorAtMost(_)) && !floor.is_empty(),
                floor,
                polyloop,
            }
        };
        self.each().map(row).collect()
    }

    /// Why the run says nothing: a floor that is slow makes everything beside it look fast.
    pub fn void(&self) -> Vec<String> {
        let why = |(scenario, what, figure): (&str, &str, &Figure)| {
            let Bound::FloorAtMost(most) = figure.bound else { return None };
            let found = median(figure.values.get(&Side::Floor)?);
            let unit = figure.unit;
            (found > most).then(|| {
                let found = short(found);
                format!("{scenario}: the floor's {what} is {found} {unit}, above {most} {unit}")
            })
        };
        self.each().filter_map(why).collect()
    }
}

/// Three figures that mean something.
pub fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(bound: Bound, runs: &[(f64, f64)]) -> (Option<f64>, Option<bool>) {
        let mut figures = Figures::default();
        for (floor, ours) in runs {
            figures.put(Side::Floor, "first", ("p50", "ms"), bound, *floor);
            figures.put(Side::Polyloop, "first", ("p50", "ms"), bound, *ours);
        }
        assert!(!figures.rows()[0].checks_floor);
        (figures.rows()[0].ratio, figures.rows()[0].holds)
    }

    #[test]
    fn a_bound_is_on_the_middle_of_what_each_run_found() {
        let runs = [(1.0, 1.9), (1.1, 9.0), (4.0, 8.0)];
        assert_eq!(held(Bound::TimesAtMost(2.0), &runs), (Some(2.0), Some(true)));
        assert_eq!(held(Bound::TimesAtMost(1.9), &runs), (Some(2.0), Some(false)));
        assert_eq!(held(Bound::TimesAtLeast(2.0), &runs), (Some(2.0), Some(true)));
        assert_eq!(held(Bound::AboveAtMost(4.0), &runs), (Some(2.0), Some(true)));
        assert_eq!(held(Bound::AboveAtMost(3.9), &runs), (Some(2.0), Some(false)));
        assert_eq!(held(Bound::AtMost(8.0), &runs), (Some(2.0), Some(true)));
        assert_eq!(held(Bound::AtMost(7.9), &runs), (Some(2.0), Some(false)));
    }

    #[test]
    fn a_slow_floor_makes_a_run_void() {
        let mut figures = Figures::default();
        let bound = Bound::FloorAtMost(0.5);
        for value in [0.4, 0.6, 0.45] {
            figures.put(Side::Floor, "first", ("added", "ms"), bound, value);
            figures.put(Side::Polyloop, "first", ("added", "ms"), bound, 9.0);
        }
        assert_eq!(figures.void(), [""; 0]);
        assert!(figures.rows()[0].checks_floor);
        figures.put(Side::Floor, "first", ("added", "ms"), bound, 1.5);
        figures.put(Side::Floor, "first", ("added", "ms"), bound, 1.5);
        assert_eq!(figures.void(), ["first: the floor's added is 0.600 ms, above 0.5 ms"]);
    }

    #[test]
    fn the_middle_of_an_even_count_is_between() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
