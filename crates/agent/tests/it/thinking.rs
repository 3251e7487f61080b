//! The benchmark of the ways to think, in small: its puzzles are right, and what the agents solve
//! with its model is what its theory expects.

#[path = "../../benches/thinking/dice.rs"]
mod dice;
#[path = "../../benches/thinking/mind.rs"]
mod mind;
#[path = "../../benches/thinking/play.rs"]
mod play;
#[path = "../../benches/thinking/puzzle.rs"]
mod puzzle;
#[path = "../../benches/thinking/theory.rs"]
mod theory;

use std::sync::Arc;

use dice::Dice;
use puzzle::{Fraction, Left, Solver, solves};
use theory::{Game, Paper, Real, Tree, formula};

use super::{client, make, rig, view};

const PUZZLES: usize = 15;
const SEEDS: u64 = 2;
const TRIALS: u32 = 2_000;
/// Standard deviations between what is measured and what is expected.
const FAR: f64 = 4.5;

const TREE: Tree =
    Tree { proposals: 3, beam: 2, samples: 1, vote: false, deep: false, prunes: true };
const GAMES: [Game; 8] = [
    Game::Chain,
    Game::Tree(TREE),
    Game::Tree(Tree { samples: 3, ..TREE }),
    Game::Tree(Tree { samples: 3, prunes: false, ..TREE }),
    Game::Tree(Tree { samples: 3, vote: true, ..TREE }),
    Game::Tree(Tree { deep: true, ..TREE }),
    Game::Chains { attempts: 3 },
    Game::Links { attempts: 3 },
];

fn numbers(of: [i64; 4]) -> Left {
    of.map(Fraction::whole).to_vec()
}

#[test]
fn an_expression_solves_only_with_each_number_once() {
    let puzzle = numbers([4, 9, 10, 13]);
    for (expression, right) in [
        ("(13 - 9) * (10 - 4)", true),
        ("((10 - 4) * (13 - 9))", true),
        ("13 - 9 * (10 - 4)", false),
        ("(13 - 9) * 6", false),
        ("(13 - 9) * (10 - 4) * 1", false),
        ("4 * 9 - 10 - 13", false),
        ("(13 - 9) * (10 - 4", false),
        ("24", false),
        ("", false),
    ] {
        assert_eq!(solves(&puzzle, expression), right, "{expression}");
    }
    assert!(solves(&numbers([3, 3, 8, 8]), "8 / (3 - 8 / 3)"), "fractions are exact");
}

#[test]
fn the_solver_knows_what_can_be_reached() {
    let solver = Solver::default();
    for (puzzle, reaches) in [
        ([3, 3, 8, 8], true),
        ([1, 5, 5, 5], true),
        ([4, 9, 10, 13], true),
        ([1, 1, 1, 1], false),
        ([1, 1, 1, 2], false),
        ([13, 13, 13, 13], false),
    ] {
        assert_eq!(solver.reaches(&numbers(puzzle)), reaches, "{puzzle:?}");
    }
}

#[test]
fn formulas_say_what_playing_on_paper_does() {
    for game in GAMES {
        for (p, e) in [(0.3, 0.0), (0.6, 0.0), (0.6, 0.2), (0.9, 0.4)] {
            let Some(expected) = formula(game, p, e) else { continue };
            let (paper, mut dice) = (Paper { accuracy: p }, Dice::new(3));
            let count = 20_000_u32;
            let solved = (0..count).filter(|_| theory::play(&paper, game, e, &mut dice).0).count();
            let (found, count) = (solved as f64 / f64::from(count), f64::from(count));
            let off = (found - expected).abs() / (expected * (1.0 - expected) / count).sqrt();
            assert!(off < FAR, "{game:?} p {p} e {e}: {found} where {expected} is expected");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_solve_what_theory_expects_with_the_calls_it_expects() {
    let solver = Arc::new(Solver::default());
    let puzzles = solver.puzzles(PUZZLES, &mut Dice::new(11));
    let skills = [(0.5, 0.0), (0.6, 0.2)];
    for (game, (p, e)) in GAMES.iter().flat_map(|game| skills.map(|skill| (*game, skill))) {
        let mut played = Vec::new();
        for seed in 0..SEEDS {
            played.extend(play::play_all(game, (p, e, seed), &puzzles, &solver).await);
        }
        let mut dice = Dice::new(5);
        let (mut solved, mut calls, mut squares) = (0.0, 0.0, 0.0);
        for trial in 0..TRIALS as usize {
            let numbers = puzzles[trial % puzzles.len()].clone();
            let world = Real { accuracy: p, numbers, solver: &solver };
            let (good, made) = theory::play(&world, game, e, &mut dice);
            solved += f64::from(u8::from(good)) / f64::from(TRIALS);
            calls += f64::from(made) / f64::from(TRIALS);
            squares += f64::from(made).powi(2) / f64::from(TRIALS);
        }
        let count = played.len() as f64;
        let found = played.iter().filter(|one| one.solved).count() as f64 / count;
        let made = played.iter().map(|one| f64::from(one.calls)).sum::<f64>() / count;
        let spread = (solved * (1.0 - solved)).max(1.0 / count);
        let off = (found - solved).abs() / (spread / count).sqrt();
        assert!(off < FAR, "{game:?} p {p} e {e}: {found} solved where {solved} is expected");
        let spread = (squares - calls * calls).max(0.0);
        let off = (made - calls).abs();
        let most = FAR * (spread / count).sqrt() + 1e-6;
        assert!(off < most, "{game:?} p {p} e {e}: {made} calls where {calls} are expected");
    }
}
