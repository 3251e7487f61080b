//! Game of 24: four numbers, each used once, with + - * / to make 24. Exact: numbers are fractions.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

use super::dice::Dice;

const GOAL: Fraction = Fraction { over: 24, under: 1 };
const NUMBER_MAX: u64 = 13;
pub const NUMBERS: usize = 4;
/// From four numbers to one.
pub const STEPS: usize = NUMBERS - 1;

/// In lowest terms, with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fraction {
    over: i64,
    under: i64,
}

impl Fraction {
    pub fn whole(number: i64) -> Fraction {
        Fraction { over: number, under: 1 }
    }

    fn new(over: i64, under: i64) -> Fraction {
        let divisor = gcd(over.unsigned_abs(), under.unsigned_abs()).max(1) as i64;
        let sign = if under < 0 { -1 } else { 1 };
        Fraction { over: sign * over / divisor, under: sign * under / divisor }
    }

    pub fn parse(text: &str) -> Option<Fraction> {
        match text.split_once('/') {
            None => Some(Fraction::whole(text.parse().ok()?)),
            Some((over, under)) => Some(Fraction::new(over.parse().ok()?, under.parse().ok()?)),
        }
    }

    fn apply(self, op: char, other: Fraction) -> Option<Fraction> {
        let (a, b) = (self, other);
        match op {
            '+' => Some(Fraction::new(a.over * b.under + b.over * a.under, a.under * b.under)),
            '-' => Some(Fraction::new(a.over * b.under - b.over * a.under, a.under * b.under)),
            '*' => Some(Fraction::new(a.over * b.over, a.under * b.under)),
            '/' if b.over != 0 => Some(Fraction::new(a.over * b.under, a.under * b.over)),
            _ => None,
        }
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> std::cmp::Ordering {
        (self.over * other.under).cmp(&(other.over * self.under))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.under {
            1 => write!(f, "{}", self.over),
            under => write!(f, "{}/{under}", self.over),
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The numbers that are left, in order.
pub type Left = Vec<Fraction>;

/// One step from a state: what is done, and what is left then.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    pub text: String,
    pub left: Left,
}

/// The steps from a state, by whether 24 can still be reached behind them.
#[derive(Debug, Default)]
pub struct Ways {
    pub good: Vec<Move>,
    pub bad: Vec<Move>,
}

/// Knows of every state it was asked about what can follow.
#[derive(Default)]
pub struct Solver {
    ways: Mutex<HashMap<Left, Arc<Ways>>>,
    reach: Mutex<HashMap<Left, bool>>,
}

impl Solver {
    pub fn reaches(&self, left: &Left) -> bool {
        if let [one] = left[..] {
            return one == GOAL;
        }
        if let Some(known) = self.reach.lock().unwrap().get(left) {
            return *known;
        }
        let reaches = moves(left).iter().any(|step| self.reaches(&step.left));
        self.reach.lock().unwrap().insert(left.clone(), reaches);
        reaches
    }

    pub fn ways(&self, left: &Left) -> Arc<Ways> {
        if let Some(known) = self.ways.lock().unwrap().get(left) {
            return known.clone();
        }
        let (good, bad) = moves(left).into_iter().partition(|step| self.reaches(&step.left));
        let ways = Arc::new(Ways { good, bad });
        self.ways.lock().unwrap().insert(left.clone(), ways.clone());
        ways
    }

    /// Puzzles that have a solution, none twice.
    pub fn puzzles(&self, count: usize, dice: &mut Dice) -> Vec<Left> {
        let mut found: Vec<Left> = Vec::new();
        while found.len() < count {
            let number = |dice: &mut Dice| Fraction::whole(1 + dice.below(NUMBER_MAX) as i64);
            let mut left: Left = (0..NUMBERS).map(|_| number(dice)).collect();
            left.sort();
            if self.reaches(&left) && !found.contains(&left) {
                found.push(left);
            }
        }
        found
    }
}

/// All steps from a state, none twice.
fn moves(left: &Left) -> Vec<Move> {
    let mut known = BTreeSet::new();
    let mut moves = Vec::new();
    for i in 0..left.len() {
        for j in 0..left.len() {
            for op in ['+', '-', '*', '/'] {
                // What is the same both ways is written once, the larger number first.
                let twin = matches!(op, '+' | '*') && i < j;
                let Some(got) = left[i].apply(op, left[j]).filter(|_| i != j && !twin) else {
                    continue;
                };
                let others = (0..left.len()).filter(|at| *at != i && *at != j).map(|at| left[at]);
                let mut then: Left = others.chain([got]).collect();
                then.sort();
                let shown: Vec<String> = then.iter().map(Fraction::to_string).collect();
                let (a, b) = (left[i], left[j]);
                let text = format!("{a} {op} {b} = {got} (left: {})", shown.join(" "));
                if known.insert(text.clone()) {
                    moves.push(Move { text, left: then });
                }
            }
        }
    }
    moves
}

/// The numbers that a step says are left.
pub fn left_after(step: &str) -> Option<Left> {
    let (_, left) = step.rsplit_once("(left: ")?;
    left.trim_end().trim_end_matches(')').split(' ').map(Fraction::parse).collect()
}

/// The steps as one expression; nothing where they do not follow from one another.
pub fn expression(numbers: &Left, steps: &[String]) -> Option<String> {
    let mut parts: Vec<(Fraction, String)> = numbers.iter().map(|n| (*n, n.to_string())).collect();
    for step in steps {
        let words: Vec<&str> = step.split(' ').collect();
        let [a, op, b, "=", ..] = words[..] else { return None };
        let (a, b) = (Fraction::parse(a)?, Fraction::parse(b)?);
        let mut take = |number: Fraction| {
            let at = parts.iter().position(|(value, _)| *value == number)?;
            Some(parts.remove(at).1)
        };
        let (left, right) = (take(a)?, take(b)?);
        let got = a.apply(op.chars().next()?, b)?;
        parts.push((got, format!("({left} {op} {right})")));
    }
    let all: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
    Some(all.join(" and "))
}

/// Whether an expression uses each number once and comes to 24.
pub fn solves(numbers: &Left, expression: &str) -> bool {
    let mut reader = Reader { rest: expression.trim(), used: Vec::new() };
    let value = reader.sum();
    reader.used.sort();
    reader.rest.is_empty() && value == Some(GOAL) && reader.used == *numbers
}

/// Reads what people write: products before sums, brackets first.
struct Reader<'a> {
    rest: &'a str,
    used: Left,
}

impl Reader<'_> {
    fn sum(&mut self) -> Option<Fraction> {
        let mut value = self.product()?;
        while let Some(op) = self.take(&['+', '-']) {
            value = value.apply(op, self.product()?)?;
        }
        Some(value)
    }

    fn product(&mut self) -> Option<Fraction> {
        let mut value = self.one()?;
        while let Some(op) = self.take(&['*', '/']) {
            value = value.apply(op, self.one()?)?;
        }
        Some(value)
    }

    fn one(&mut self) -> Option<Fraction> {
        if self.take(&['(']).is_some() {
            let value = self.sum()?;
            return self.take(&[')']).map(|_| value);
        }
        let digits = self.rest.len() - self.rest.trim_start_matches(char::is_numeric).len();
        let number = Fraction::whole(self.rest[..digits].parse().ok()?);
        self.rest = self.rest[digits..].trim_start();
        self.used.push(number);
        Some(number)
    }

    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let first = self.rest.chars().next().filter(|c| wanted.contains(c))?;
        self.rest = self.rest[first.len_utf8()..].trim_start();
        Some(first)
    }
}
