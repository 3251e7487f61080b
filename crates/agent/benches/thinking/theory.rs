//! What the searches are expected to come to, worked out without any of their code: by formula
//! where there is one, else by playing the search on paper many times.
//!
//! On paper a state is only good or bad, and a good one has as many good and bad steps as anyone
//! wants (`Paper`); or it is the puzzle's own, with the steps it really has (`Real`).

use super::dice::Dice;
use super::puzzle::{Left, STEPS, Solver};

/// What is played, and by what rules.
pub trait World {
    type State: Clone;

    fn start(&self) -> Self::State;

    fn good(&self, state: &Self::State) -> bool;

    /// What different proposals lead to.
    fn draw(&self, from: &Self::State, count: usize, dice: &mut Dice) -> Vec<Self::State>;
}

/// States are good or bad, and that is all.
pub struct Paper {
    pub accuracy: f64,
}

impl World for Paper {
    type State = bool;

    fn start(&self) -> bool {
        true
    }

    fn good(&self, state: &bool) -> bool {
        *state
    }

    fn draw(&self, from: &bool, count: usize, dice: &mut Dice) -> Vec<bool> {
        (0..count).map(|_| *from && dice.chance(self.accuracy)).collect()
    }
}

/// A puzzle with the steps it has: where good ones are few, proposals run out of them.
pub struct Real<'a> {
    pub accuracy: f64,
    pub numbers: Left,
    pub solver: &'a Solver,
}

impl World for Real<'_> {
    type State = Left;

    fn start(&self) -> Left {
        self.numbers.clone()
    }

    fn good(&self, state: &Left) -> bool {
        self.solver.reaches(state)
    }

    fn draw(&self, from: &Left, count: usize, dice: &mut Dice) -> Vec<Left> {
        let ways = self.solver.ways(from);
        let (mut good, mut bad) = (ways.good.len(), ways.bad.len());
        let mut order: Vec<usize> = Vec::new();
        let mut drawn = Vec::new();
        while drawn.len() < count && good + bad > 0 {
            let right = if dice.chance(self.accuracy) { good > 0 } else { bad == 0 };
            let (steps, left) = if right { (&ways.good, &mut good) } else { (&ways.bad, &mut bad) };
            // Any that was not drawn yet.
            let base = if right { 0 } else { ways.good.len() };
            let free: Vec<usize> =
                (0..steps.len()).filter(|at| !order.contains(&(base + at))).collect();
            let at = free[dice.below(free.len() as u64) as usize];
            order.push(base + at);
            drawn.push(steps[at].left.clone());
            *left -= 1;
        }
        drawn
    }
}

/// How a puzzle is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Game {
    /// One chain of steps.
    Chain,
    Tree(Tree),
    /// Several chains, and the best is kept.
    Chains {
        attempts: usize,
    },
    /// Step by step, the best of several each time.
    Links {
        attempts: usize,
    },
}

/// How a tree is searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tree {
    pub proposals: usize,
    pub beam: usize,
    /// Opinions of each thought, or votes.
    pub samples: usize,
    pub vote: bool,
    /// Depth-first.
    pub deep: bool,
    /// What looks hopeless is not followed, and the search goes back to what it left.
    pub prunes: bool,
}

/// Below this a thought is not followed; at least this ends a depth-first search.
const PRUNE: f64 = 0.2;
const ACCEPT: f64 = 0.7;

/// Whether it was solved, and with how many calls.
pub fn play<W: World>(world: &W, game: Game, error: f64, dice: &mut Dice) -> (bool, u32) {
    let start = world.start();
    match game {
        Game::Chain => (chain(world, &start, STEPS, dice), 1),
        Game::Chains { attempts } => {
            let tries: Vec<bool> =
                (0..attempts).map(|_| chain(world, &start, STEPS, dice)).collect();
            let seen: Vec<bool> = tries.iter().map(|good| *good != dice.chance(error)).collect();
            let kept = seen.iter().position(|good| *good).unwrap_or(0);
            let scores = if attempts > 1 { attempts } else { 0 };
            (tries[kept], (1 + attempts + scores) as u32)
        }
        Game::Links { attempts } => {
            let mut at = start;
            for _ in 0..STEPS {
                let tries: Vec<W::State> =
                    (0..attempts).filter_map(|_| world.draw(&at, 1, dice).pop()).collect();
                let seen = tries.iter().map(|one| world.good(one) != dice.chance(error));
                let seen: Vec<bool> = seen.collect();
                at = tries[seen.iter().position(|good| *good).unwrap_or(0)].clone();
            }
            let scores = if attempts > 1 { attempts } else { 0 };
            (world.good(&at), (1 + STEPS * (attempts + scores)) as u32)
        }
        Game::Tree(how) => tree(world, how, error, dice),
    }
}

fn chain<W: World>(world: &W, from: &W::State, steps: usize, dice: &mut Dice) -> bool {
    let mut at = from.clone();
    for _ in 0..steps {
        match world.draw(&at, 1, dice).pop() {
            Some(next) => at = next,
            None => return false,
        }
    }
    world.good(&at)
}

struct Leaf<S> {
    state: S,
    place: Vec<usize>,
    score: f64,
    followed: bool,
}

fn tree<W: World>(world: &W, how: Tree, error: f64, dice: &mut Dice) -> (bool, u32) {
    let Tree { proposals, beam, samples, vote, deep, prunes } = how;
    // Votes only rank.
    let prune = if prunes && !vote { PRUNE } else { 0.0 };
    let width = if deep { 1 } else { beam };
    let mut calls = 0;
    let mut leaves: Vec<Leaf<W::State>> = Vec::new();
    // Where to go on from: the beginning, or leaves.
    let mut from: Vec<Option<usize>> = vec![None];
    let end = loop {
        let first = leaves.len();
        for at in &from {
            let (state, place) = match at {
                None => (world.start(), Vec::new()),
                Some(at) => (leaves[*at].state.clone(), leaves[*at].place.clone()),
            };
            calls += 1;
            for (index, state) in world.draw(&state, proposals, dice).into_iter().enumerate() {
                let place = [&place[..], &[index]].concat();
                leaves.push(Leaf { state, place, score: 0.0, followed: false });
            }
        }
        let new: Vec<usize> = (first..leaves.len()).collect();
        let good: Vec<bool> = new.iter().map(|at| world.good(&leaves[*at].state)).collect();
        calls += weigh(&mut leaves, &new, &good, (samples, vote, error), dice);
        let depth = leaves[first].place.len();
        let enough = if deep { ACCEPT } else { prune };
        let mut ranked = new.clone();
        ranked.sort_by(|a, b| leaves[*b].score.total_cmp(&leaves[*a].score));
        ranked.retain(|at| leaves[*at].score >= prune);
        if depth == STEPS {
            if let Some(best) = ranked.first().filter(|best| leaves[**best].score >= enough) {
                break *best;
            }
            ranked.clear();
        }
        if ranked.is_empty() {
            ranked = unfollowed(&leaves, prune);
        }
        ranked.truncate(width);
        if ranked.is_empty() {
            break best_of_all(&leaves);
        }
        ranked.iter().for_each(|at| leaves[*at].followed = true);
        from = ranked.into_iter().map(Some).collect();
    };
    let end = &leaves[end];
    (chain(world, &end.state, STEPS - end.place.len(), dice), calls + 1)
}

/// Gives the new ones a score; how many calls that takes.
fn weigh<S>(
    leaves: &mut [Leaf<S>],
    new: &[usize],
    good: &[bool],
    (samples, vote, error): (usize, bool, f64),
    dice: &mut Dice,
) -> u32 {
    if !vote {
        for (at, good) in new.iter().zip(good) {
            let yes = (0..samples).filter(|_| *good != dice.chance(error)).count();
            leaves[*at].score = yes as f64 / samples as f64;
        }
        return (new.len() * samples) as u32;
    }
    if let [only] = new {
        leaves[*only].score = 1.0;
        return 0;
    }
    for _ in 0..samples {
        let seen: Vec<bool> = good.iter().map(|good| *good != dice.chance(error)).collect();
        let mut liked: Vec<usize> = (0..new.len()).filter(|at| seen[*at]).collect();
        let mut all: Vec<usize> = (0..new.len()).collect();
        if let Some(at) = dice.pick(&mut liked).or_else(|| dice.pick(&mut all)) {
            leaves[new[at]].score += 1.0 / samples as f64;
        }
    }
    samples as u32
}

/// The best that nothing was tried from, among the deepest.
fn unfollowed<S>(leaves: &[Leaf<S>], prune: f64) -> Vec<usize> {
    let open = |leaf: &&Leaf<S>| !leaf.followed && leaf.place.len() < STEPS && leaf.score >= prune;
    let deepest = leaves.iter().filter(open).map(|leaf| leaf.place.len()).max();
    let mut open: Vec<usize> = (0..leaves.len())
        .filter(|at| open(&&leaves[*at]) && Some(leaves[*at].place.len()) == deepest)
        .collect();
    open.sort_by(|a, b| {
        let (a, b) = (&leaves[*a], &leaves[*b]);
        b.score.total_cmp(&a.score).then_with(|| a.place.cmp(&b.place))
    });
    open
}

fn best_of_all<S>(leaves: &[Leaf<S>]) -> usize {
    let order = |a: &usize, b: &usize| {
        let (a, b) = (&leaves[*a], &leaves[*b]);
        let depth = a.place.len().cmp(&b.place.len());
        a.score.total_cmp(&b.score).then(depth).then_with(|| b.place.cmp(&a.place))
    };
    (0..leaves.len()).max_by(order).unwrap_or(0)
}

/// What a formula says, on paper, where there is one.
pub fn formula(game: Game, p: f64, e: f64) -> Option<f64> {
    // The best of several, of which each is good with `s`: one that is seen as good is kept, the
    // first of all where none is.
    let kept = |s: f64, n: usize| {
        let seen = s * (1.0 - e) + (1.0 - s) * e;
        let none = (1.0 - seen).powi(n as i32);
        let first_is_good = if none > 0.0 { none * s * e / (1.0 - seen) } else { 0.0 };
        let right = if seen > 0.0 { s * (1.0 - e) / seen } else { 0.0 };
        (1.0 - none) * right + first_is_good
    };
    match game {
        Game::Chain => Some(p.powi(STEPS as i32)),
        Game::Chains { attempts } => Some(kept(p.powi(STEPS as i32), attempts)),
        Game::Links { attempts } => Some(kept(p, attempts).powi(STEPS as i32)),
        // With a judge that is always right everything good is followed before the search gives
        // up, whatever the beam; where it gives up, what is left is a chain from the best.
        Game::Tree(Tree { vote: false, prunes: true, proposals, .. }) if e == 0.0 => {
            Some(tree_formula(p, proposals))
        }
        Game::Tree(_) => None,
    }
}

fn tree_formula(p: f64, proposals: usize) -> f64 {
    let k = proposals as i32;
    // Chances that the end is found below a good state with one, two or three steps to go.
    let one = 1.0 - (1.0 - p).powi(k);
    let two = 1.0 - (1.0 - p * one).powi(k);
    let three = 1.0 - (1.0 - p * two).powi(k);
    // It is not found: there was no good first step; there were, but no good second below them;
    // or there was one, from which the last is then taken blindly.
    let no_first = (1.0 - p).powi(k);
    let no_second = (1.0 - p * one).powi(k) - no_first;
    let no_third = 1.0 - three - no_first - no_second;
    three + no_second * p * p + no_third * p
}
