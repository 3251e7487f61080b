//! Puts what was measured beside what theory expects, and says how far apart the two may be by
//! chance.

use std::fmt;

use serde_json::{Value, json};

use super::dice::Dice;
use super::play::Played;
use super::puzzle::{Left, Solver};
use super::theory::{Game, Paper, Real, formula, play};

/// Two-sided 95 %.
const Z: f64 = 1.96;
/// Of hundreds of figures some are beyond 95 % by chance; none should be beyond this.
const FAR_Z: f64 = 4.0;

/// What theory says of one game.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// By formula, where there is one.
    pub formula: Option<f64>,
    /// On paper: as many good and bad steps as anyone wants.
    pub paper: f64,
    /// With the steps that the puzzles have.
    pub real: f64,
    pub calls: f64,
    pub trials: usize,
}

pub fn expected(
    game: Game,
    (accuracy, error): (f64, f64),
    puzzles: &[Left],
    solver: &Solver,
    trials: usize,
) -> Expected {
    let mut dice = Dice::new(7);
    let paper = Paper { accuracy };
    let solved = (0..trials).filter(|_| play(&paper, game, error, &mut dice).0).count();
    let (mut real, mut calls) = (0, 0);
    for at in 0..trials {
        let numbers = puzzles[at % puzzles.len()].clone();
        let (good, made) = play(&Real { accuracy, numbers, solver }, game, error, &mut dice);
        real += u32::from(good);
        calls += made;
    }
    let part = |count: f64| count / trials as f64;
    Expected {
        formula: formula(game, accuracy, error),
        paper: part(solved as f64),
        real: part(f64::from(real)),
        calls: part(f64::from(calls)),
        trials,
    }
}

/// One line of the table.
pub struct Row {
    name: &'static str,
    accuracy: f64,
    error: f64,
    count: usize,
    pub solved: f64,
    pub calls: f64,
    calls_off: f64,
    expected: Expected,
}

impl Row {
    pub const HEAD: &'static str = "   p    e  agent                     solved   95 %        calls \
        calls/solved | formula  paper  puzzles   gap  (sd)  calls";

    pub fn new(
        name: &'static str,
        (accuracy, error): (f64, f64),
        played: &[Played],
        expected: Expected,
    ) -> Row {
        let count = played.len();
        let mean = |of: &dyn Fn(&Played) -> f64| played.iter().map(of).sum::<f64>() / count as f64;
        let solved = mean(&|one| f64::from(u8::from(one.solved)));
        let calls = mean(&|one| f64::from(one.calls));
        let spread = mean(&|one| (f64::from(one.calls) - calls).powi(2));
        let calls_off = (spread * (1.0 / count as f64 + 1.0 / expected.trials as f64)).sqrt();
        Row { name, accuracy, error, count, solved, calls, calls_off, expected }
    }

    /// The interval that holds the true rate (Wilson).
    fn between(&self) -> (f64, f64) {
        let (n, p) = (self.count as f64, self.solved);
        let middle = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / (1.0 + Z * Z / n);
        (middle - half, middle + half)
    }

    pub fn gap(&self) -> f64 {
        self.solved - self.expected.real
    }

    /// The gap in standard deviations.
    pub fn deviation(&self) -> f64 {
        let real = self.expected.real;
        let (n, trials) = (self.count as f64, self.expected.trials as f64);
        // No more certain than one puzzle in all that were played either way.
        let spread = (real * (1.0 - real)).max(1.0 / n);
        self.gap() / (spread * (1.0 / n + 1.0 / trials)).sqrt()
    }

    /// Chance alone does not explain it.
    pub fn is_far(&self) -> bool {
        let calls = (self.calls - self.expected.calls).abs();
        self.deviation().abs() > FAR_Z || calls > FAR_Z * self.calls_off + 1e-9
    }

    pub fn json(&self) -> Value {
        let (low, high) = self.between();
        let Expected { formula, paper, real, calls, trials: _ } = self.expected;
        json!({
            "agent": self.name, "accuracy": self.accuracy, "error": self.error,
            "runs": self.count, "solved": self.solved, "low": low, "high": high,
            "calls": self.calls,
            "theory": { "formula": formula, "paper": paper, "puzzles": real, "calls": calls },
            "gap": self.gap(), "deviations": self.deviation(),
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.between();
        let percent = |part: f64| format!("{:5.1}", part * 100.0);
        let each = if self.solved > 0.0 { self.calls / self.solved } else { f64::INFINITY };
        let formula = self.expected.formula.map_or("    -".to_owned(), percent);
        write!(
            f,
            "{:4.2} {:4.2}  {:24} {}  {}-{}  {:6.1} {:8.1}    | {}   {}   {}  {:+5.1} ({:+4.1}) {:6.1}",
            self.accuracy,
            self.error,
            self.name,
            percent(self.solved),
            percent(low),
            percent(high),
            self.calls,
            each,
            formula,
            percent(self.expected.paper),
            percent(self.expected.real),
            self.gap() * 100.0,
            self.deviation(),
            self.expected.calls,
        )
    }
}
