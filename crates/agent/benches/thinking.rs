//! Whether a search earns its calls: Game of 24 with a simulated model of set skill, played by the
//! real agents, beside what theory expects; and what the strategies' own code costs.
//!
//! Asserts nothing about speed. `cargo xtask bench --only thinking` runs it; docs/THINKING.md tells
//! how to read what it prints.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// The stage is the tests', and only a part of it is needed here.
#![allow(dead_code)]

#[path = "../tests/it/client.rs"]
mod client;
#[path = "../tests/it/codec.rs"]
mod codec;
#[path = "../tests/it/faults.rs"]
mod faults;
#[path = "../tests/it/make.rs"]
mod make;
#[path = "../tests/it/model.rs"]
mod model;
#[path = "../tests/it/rig.rs"]
mod rig;
#[path = "../tests/it/view.rs"]
mod view;

#[path = "thinking/compare.rs"]
mod compare;
#[path = "thinking/cost.rs"]
mod cost;
#[path = "thinking/dice.rs"]
mod dice;
#[path = "thinking/mind.rs"]
mod mind;
#[path = "thinking/play.rs"]
mod play;
#[path = "thinking/puzzle.rs"]
mod puzzle;
#[path = "thinking/theory.rs"]
mod theory;

use std::sync::Arc;
use std::time::Instant;

use compare::{Row, expected};
use dice::Dice;
use puzzle::Solver;
use serde_json::json;
use theory::{Game, Tree};

const ACCURACIES: [f64; 5] = [0.2, 0.34, 0.5, 0.7, 0.9];
const ERRORS: [f64; 3] = [0.0, 0.1, 0.3];
const PUZZLE_SEED: u64 = 24;
/// Games on paper for one figure.
const TRIALS: usize = 20_000;

/// What is compared.
fn games() -> Vec<(&'static str, Game)> {
    let ours = Tree { proposals: 5, beam: 1, samples: 1, vote: false, deep: false, prunes: true };
    let papers = Tree { samples: 3, prunes: false, ..ours };
    vec![
        ("react", Game::Chain),
        ("tot beam 1", Game::Tree(ours)),
        ("tot beam 3", Game::Tree(Tree { beam: 3, ..ours })),
        ("tot beam 5", Game::Tree(Tree { beam: 5, ..ours })),
        ("tot beam 5, 3 opinions", Game::Tree(Tree { beam: 5, samples: 3, ..ours })),
        ("tot beam 5, 5 votes", Game::Tree(Tree { beam: 5, samples: 5, vote: true, ..ours })),
        ("tot depth first", Game::Tree(Tree { deep: true, ..ours })),
        ("tot no way back, beam 1", Game::Tree(papers)),
        ("tot no way back, beam 3", Game::Tree(Tree { beam: 3, ..papers })),
        ("tot no way back, beam 5", Game::Tree(Tree { beam: 5, ..papers })),
        ("got whole, 5 tries", Game::Chains { attempts: 5 }),
        ("got steps, 5 tries", Game::Links { attempts: 5 }),
    ]
}

struct Options {
    puzzles: usize,
    seeds: u64,
    json: Option<String>,
    only: Option<String>,
    /// Of the accuracies, this one alone.
    accuracy: Option<f64>,
}

fn options() -> Options {
    let mut options = Options { puzzles: 100, seeds: 3, json: None, only: None, accuracy: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--puzzles" => options.puzzles = value().parse().expect("a number of puzzles"),
            "--seeds" => options.seeds = value().parse().expect("a number of seeds"),
            "--only" => options.only = Some(value()),
            "--accuracy" => options.accuracy = Some(value().parse().expect("a part of 1")),
            "--json" => options.json = Some(value()),
            // What cargo says to every benchmark.
            "--bench" => {}
            other => {
                panic!("{other:?} is not known; use --only, --accuracy, --puzzles, --seeds, --json")
            }
        }
    }
    options
}

#[tokio::main]
async fn main() {
    let options = options();
    let wanted = |part: &str| options.only.as_deref().is_none_or(|only| only == part);
    if wanted("cost") {
        costs().await;
    }
    if wanted("puzzles") {
        puzzles(&options).await;
    }
}

async fn costs() {
    println!("What the strategies' own code costs, with a model that answers at once\n");
    println!(
        "{:14} {:>7} {:>8} {:>10} {:>12}",
        "agent", "calls", "events", "events/s", "ms CPU/call"
    );
    for (name, run) in cost::kinds() {
        for calls_max in cost::CALLS {
            let cost::Cost { calls, events, cpu_ms, wall_ms } =
                cost::turn(run.clone(), calls_max).await;
            let (each, rate) = (cpu_ms / f64::from(calls), f64::from(events) * 1e3 / wall_ms);
            println!("{name:14} {calls:>7} {events:>8} {rate:>10.0} {each:>12.3}");
        }
    }
    println!();
}

async fn puzzles(options: &Options) {
    let began = Instant::now();
    let solver = Arc::new(Solver::default());
    let puzzles = solver.puzzles(options.puzzles, &mut Dice::new(PUZZLE_SEED));
    println!("{} puzzles, {} times each\n", puzzles.len(), options.seeds);
    println!("{}", Row::HEAD);
    let mut rows: Vec<Row> = Vec::new();
    let accuracies = options.accuracy.map_or(ACCURACIES.to_vec(), |one| vec![one]);
    for (p, e) in accuracies.into_iter().flat_map(|p| ERRORS.map(|e| (p, e))) {
        for (name, game) in games() {
            let mut played = Vec::new();
            for seed in 0..options.seeds {
                played.extend(play::play_all(game, (p, e, seed), &puzzles, &solver).await);
            }
            let expected = expected(game, (p, e), &puzzles, &solver, TRIALS);
            let row = Row::new(name, (p, e), &played, expected);
            println!("{row}");
            rows.push(row);
        }
        println!();
    }
    let far: Vec<&Row> = rows.iter().filter(|row| row.is_far()).collect();
    println!(
        "{} of {} figures are further from theory than chance explains",
        far.len(),
        rows.len()
    );
    far.iter().for_each(|row| println!("{row}"));
    println!("{:.0} s", began.elapsed().as_secs_f64());
    if let Some(path) = &options.json {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        let all = json!({ "puzzles": puzzles.len(), "seeds": options.seeds, "rows": rows });
        std::fs::write(path, format!("{all:#}\n")).expect("the JSON file");
    }
}
