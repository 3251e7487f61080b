//! A tree of thoughts: a few ways on are proposed from each state, the model weighs them, the
//! search goes on from the best, and back to earlier ones when a branch leads nowhere. What it
//! finds is told to the session's own loop, which does the work and answers.
//!
//! Inside a branch only tools that read are run. Choices go by score and then by place, never by
//! what arrived first.

use std::cmp::Reverse;

use crate::event::{Event, LineId, Purpose, Weighed};
use crate::id::{Text, ThoughtId};
use crate::state::{Branch, Tree, estimate_tokens};
use crate::strategy::Desk;
use crate::strategy::bounds::{Bounds, Judge, Search};
use crate::strategy::engine::{Came, Engine, ends_all};
use crate::strategy::read;

/// What the note of a search begins with.
pub const TAKEN_BEGINNING: &str = "Several ways were weighed";
pub const NOTHING_PROMISING: &str = "no thought that follows is promising";

pub(crate) fn next(desk: &Desk<'_>, tree: &Tree) -> Vec<Event> {
    let mut engine = Engine::new(desk);
    if let Some(events) = engine.room() {
        return events;
    }
    let open = expand(&mut engine, tree);
    if open || engine.fault.is_some() || !engine.events.is_empty() {
        return settled(engine, tree);
    }
    let candidates = tree.candidates();
    let open = weigh(&mut engine, tree, &candidates);
    if open || engine.fault.is_some() || !engine.events.is_empty() {
        return settled(engine, tree);
    }
    let weighed = weighed(&engine, tree, &candidates);
    engine.events.push(choice(&engine, tree, weighed));
    engine.events
}

/// Wants what follows from each state of the beam. Whether something is under way.
fn expand(engine: &mut Engine<'_>, tree: &Tree) -> bool {
    let mut open = false;
    for from in &tree.beam {
        let branch = from.and_then(|id| tree.thoughts.get(&id));
        if branch.is_some_and(|branch| ends(&engine.bounds, branch))
            || tree.children.contains_key(from)
        {
            continue;
        }
        let (on, purpose) = (LineId::Branch { thought: *from }, Purpose::Expand { thought: *from });
        match engine.aside(on, purpose) {
            Came::Nothing => open = true,
            Came::Answer { call, text, misread } => {
                let read = read::thoughts(&text, engine.bounds.tot_proposals);
                let whole = || read::whole_thought(&text).into_iter().collect();
                let told = "the whole answer, if there is one, is taken for one thought";
                if let Some(thoughts) = engine.read((call, misread), read, told, whole) {
                    engine.events.push(Event::Expanded { call, from: *from, thoughts });
                }
            }
            Came::Failed { call: Some(call), fault } => {
                // A branch that cannot go on is given up; the first one is all there is.
                if from.is_none() || ends_all(&fault) {
                    engine.fault = Some(fault);
                } else {
                    let text = format!("A branch was given up: {}", fault.message);
                    engine.notice("branch_failed", text);
                    let thoughts = Vec::new();
                    engine.events.push(Event::Expanded { call, from: *from, thoughts });
                }
            }
            Came::Failed { call: None, fault } => engine.fault = Some(fault),
        }
    }
    open
}

/// Nothing follows from it any more.
fn ends(bounds: &Bounds, branch: &Branch) -> bool {
    branch.last || branch.depth >= bounds.tot_depth
}

/// What is worth less is not followed. Votes only say which is better than another, so that none
/// goes for want of them.
fn least(bounds: &Bounds) -> u32 {
    match bounds.tot_judge {
        Judge::Value => bounds.tot_prune,
        Judge::Vote => 0,
    }
}

/// Wants opinions of all candidates. Whether something is under way.
fn weigh(engine: &mut Engine<'_>, tree: &Tree, candidates: &[ThoughtId]) -> bool {
    let mut open = false;
    let samples = engine.bounds.tot_samples;
    match engine.bounds.tot_judge {
        Judge::Value => {
            let value = |engine: &mut Engine<'_>, purpose| {
                opinion(engine, purpose, |text| read::value(text).map(Opinion::Value))
            };
            // First what was asked for: of the others there may be very many.
            let asked = &engine.desk.turn.errands;
            for purpose in asked.keys().filter(|purpose| matches!(purpose, Purpose::Value { .. })) {
                open |= value(engine, *purpose);
            }
            for thought in candidates {
                let Some(branch) = tree.thoughts.get(thought) else { continue };
                if branch.values.len() >= samples as usize {
                    continue;
                }
                let missing = (0..samples).filter(|sample| !branch.values.contains_key(sample));
                for sample in missing {
                    let purpose = Purpose::Value { thought: *thought, sample };
                    if asked.contains_key(&purpose) {
                        continue;
                    }
                    open |= value(engine, purpose);
                    if engine.is_full() {
                        return true;
                    }
                }
            }
        }
        Judge::Vote if candidates.len() > 1 => {
            for sample in (0..samples).filter(|sample| !tree.votes.contains_key(sample)) {
                let purpose = Purpose::Vote { round: tree.round, sample };
                open |= opinion(engine, purpose, |text| {
                    read::vote(text, candidates.len()).map(|at| Opinion::For(candidates[at]))
                });
            }
        }
        // One alone needs no vote.
        Judge::Vote => {}
    }
    open
}

enum Opinion {
    Value(u32),
    For(ThoughtId),
    None,
}

fn opinion(
    engine: &mut Engine<'_>,
    purpose: Purpose,
    read: impl FnOnce(&str) -> Result<Opinion, Text>,
) -> bool {
    match engine.errand(purpose) {
        Came::Nothing => return true,
        Came::Answer { call, text, misread } => {
            let told = "this opinion does not count";
            let opinion = engine.read((call, misread), read(&text), told, || Opinion::None);
            let (score, thought) = match opinion {
                Some(Opinion::Value(score)) => (Some(score), None),
                Some(Opinion::For(thought)) => (None, Some(thought)),
                Some(Opinion::None) => (None, None),
                None => return false,
            };
            engine.events.push(Event::Scored { call, score, thought });
        }
        Came::Failed { call: Some(call), fault } if !ends_all(&fault) => {
            engine.notice("opinion_failed", format!("An opinion is missing: {}", fault.message));
            engine.events.push(Event::Scored { call, score: None, thought: None });
        }
        Came::Failed { call: _, fault } => engine.fault = Some(fault),
    }
    false
}

/// What each candidate is worth: the mean of the opinions that were had.
fn weighed(engine: &Engine<'_>, tree: &Tree, candidates: &[ThoughtId]) -> Vec<Weighed> {
    let votes = tree.votes.values().flatten().count() as u64;
    let score = |thought: &ThoughtId| match engine.bounds.tot_judge {
        Judge::Value => tree.thoughts.get(thought).map_or(0, mean),
        Judge::Vote if votes == 0 => 1_000,
        Judge::Vote => {
            let own = tree.votes.values().flatten().filter(|voted| *voted == thought).count();
            own as u64 * 1_000 / votes
        }
    };
    let score = |thought: &ThoughtId| u32::try_from(score(thought)).unwrap_or(u32::MAX);
    candidates.iter().map(|id| Weighed { thought: *id, score: score(id) }).collect()
}

fn mean(branch: &Branch) -> u64 {
    let opinions: Vec<u64> = branch.values.values().flatten().map(|v| u64::from(*v)).collect();
    match opinions.len() as u64 {
        // Nobody could say: neither good nor bad.
        0 => 500,
        count => opinions.iter().sum::<u64>() / count,
    }
}

/// Where the search goes on, or that it is over.
fn choice(engine: &Engine<'_>, tree: &Tree, weighed: Vec<Weighed>) -> Event {
    let bounds = &engine.bounds;
    let width = match bounds.tot_search {
        Search::Breadth => bounds.tot_beam as usize,
        Search::Depth => 1,
    };
    let ends = |id: &ThoughtId| tree.thoughts.get(id).is_some_and(|branch| ends(bounds, branch));
    // A path that ended in an earlier round is still one to take.
    let ended = tree.thoughts.iter().filter(|(id, _)| ends(id));
    let ended = ended.filter_map(|(id, b)| Some(Weighed { thought: *id, score: b.score? }));
    let mut ended: Vec<Weighed> = ended.collect();
    ended.sort_by_key(|one| place(tree, one.thought));
    let mut ranked: Vec<Weighed> = ended.into_iter().chain(weighed.iter().copied()).collect();
    ranked.sort_by_key(|one| Reverse(one.score));
    ranked.retain(|one| one.score >= least(bounds));
    let depth = tree.depth.saturating_add(1);
    let enough = match (bounds.tot_search, bounds.tot_judge) {
        (Search::Depth, Judge::Value) => bounds.tot_accept,
        (Search::Breadth, _) | (_, Judge::Vote) => 0,
    };
    let best = ranked.first().filter(|best| ends(&best.thought) && best.score >= enough);
    if let Some(best) = best {
        // That it was weighed is recorded before it is taken.
        return match tree.thoughts.get(&best.thought).and_then(|branch| branch.score) {
            Some(_) => taken(tree, Some(best.thought)),
            None => Event::Chosen { depth, beam: vec![best.thought], weighed },
        };
    }
    ranked.retain(|one| !ends(&one.thought));
    ranked.truncate(width);
    if !ranked.is_empty() {
        let beam = ranked.iter().map(|one| one.thought).collect();
        return Event::Chosen { depth, beam, weighed };
    }
    match earlier(tree, bounds, width) {
        Some((to_depth, beam)) => {
            let reason = NOTHING_PROMISING.into();
            Event::Backtracked { to_depth, beam, reason, weighed }
        }
        // That none is good enough is recorded before the search ends with what there is.
        None if !weighed.is_empty() => Event::Chosen { depth, beam: Vec::new(), weighed },
        None => taken(tree, best_of_all(tree, bounds)),
    }
}

/// The best thoughts that were weighed and never followed, at the greatest depth that has any.
fn earlier(tree: &Tree, bounds: &Bounds, width: usize) -> Option<(u32, Vec<ThoughtId>)> {
    let open = |branch: &Branch| {
        !branch.tried && !ends(bounds, branch) && branch.score >= Some(least(bounds))
    };
    let open = tree.thoughts.iter().filter(|(_, branch)| open(branch));
    let depth = open.clone().map(|(_, branch)| branch.depth).max()?;
    let mut open: Vec<_> = open.filter(|(_, branch)| branch.depth == depth).collect();
    // By score, then by the place of the whole path, which does not depend on what came first.
    open.sort_by_key(|(id, branch)| (Reverse(branch.score), place(tree, **id)));
    Some((depth, open.into_iter().take(width).map(|(id, _)| *id).collect()))
}

/// The path of a thought as places, from the first.
fn place(tree: &Tree, id: ThoughtId) -> Vec<u32> {
    tree.path(Some(id)).into_iter().map(|id| id.index).collect()
}

/// A path that came to its end before one that did not, and that before one that led nowhere; of
/// equals the one that is worth most, then the longest.
fn best_of_all(tree: &Tree, bounds: &Bounds) -> Option<ThoughtId> {
    let score = |id: &ThoughtId| tree.thoughts.get(id)?.score;
    let all = tree.thoughts.iter().filter_map(|(id, branch)| {
        let worth = score(id)?;
        let whole = ends(bounds, branch) && worth >= least(bounds);
        let follows = tree.children.get(&Some(*id));
        let poor = |child: &ThoughtId| score(child).is_some_and(|score| score < least(bounds));
        let dead = follows.is_some_and(|children| children.iter().all(poor));
        Some((whole, !dead, worth, branch.depth, Reverse(place(tree, *id)), *id))
    });
    all.max().map(|(.., id)| id)
}

/// The end of the search: what it found, told to the model before it answers.
fn taken(tree: &Tree, thought: Option<ThoughtId>) -> Event {
    let mut note = String::from(TAKEN_BEGINNING);
    let path = tree.path(thought);
    match path.is_empty() {
        true => note.push_str(", and none was found worth following."),
        false => {
            note.push_str(". The best that was found, step by step:");
            for (number, id) in (1..).zip(&path) {
                if let Some(branch) = tree.thoughts.get(id) {
                    note.push_str(&format!("\n{number}. {}", branch.text));
                }
            }
        }
    }
    let score = thought.and_then(|id| tree.thoughts.get(&id)?.score);
    if score.is_some_and(|score| score < 500) {
        note.push_str("\nIt was not thought to be sure, so check it.");
    }
    note.push_str("\n\nNow do what is left to do, with tools where they help, and answer.");
    let tokens = estimate_tokens(note.len());
    Event::PathTaken { thought, note: note.into(), tokens }
}

/// What is recorded where the search waits, or its end.
fn settled(engine: Engine<'_>, tree: &Tree) -> Vec<Event> {
    let bounds = engine.bounds;
    let told = "The search made as many calls as it may, and ends with what it has";
    engine.settled(told, || vec![taken(tree, best_of_all(tree, &bounds))])
}

/// The question that is asked of a branch.
pub(crate) fn expand_text(tree: &Tree, from: Option<ThoughtId>, most: u32) -> String {
    let path = tree.path(from);
    let mut text = String::from(
        "Do not answer my message yet: we weigh several ways first. Tools that read may be used \
         to look things up.\n",
    );
    text.push_str(&steps_so_far(tree, &path));
    text.push_str(&format!(
        "\nPropose up to {most} different next steps, the most promising first; each one small \
         enough to be judged by itself. Reply with JSON alone: {{\"thoughts\": [{{\"thought\": \
         \"the step\", \"final\": false}}, …]}}, where \"final\" is true for a step after which \
         nothing is left but to answer."
    ));
    text
}

pub(crate) fn value_text(tree: &Tree, thought: ThoughtId) -> String {
    let mut text = String::from("Do not answer my message yet. How promising is this way?\n");
    text.push_str(&steps_so_far(tree, &tree.path(Some(thought))));
    text.push_str(
        "\nJudge whether what I asked for can be reached from here, and whether the steps are \
         right. Think briefly, then reply on the last line with one word: sure, likely, unlikely \
         or impossible; or with a number from 0 to 10.",
    );
    text
}

pub(crate) fn vote_text(tree: &Tree) -> String {
    let mut text = String::from("Do not answer my message yet. Which of these ways is the best?\n");
    for (number, id) in (1..).zip(tree.candidates()) {
        let path = tree.path(Some(id));
        let steps = path.iter().filter_map(|id| tree.thoughts.get(id));
        let steps: Vec<&str> = steps.map(|branch| &*branch.text).collect();
        text.push_str(&format!("\nChoice {number}: {}", steps.join("; then ")));
    }
    text.push_str("\n\nThink briefly, then reply on the last line with the number of the best.");
    text
}

fn steps_so_far(tree: &Tree, path: &[ThoughtId]) -> String {
    if path.is_empty() {
        return "No step was taken yet.".to_owned();
    }
    let mut text = String::from("The steps so far:");
    for (number, id) in (1..).zip(path) {
        if let Some(branch) = tree.thoughts.get(id) {
            text.push_str(&format!("\n{number}. {}", branch.text));
        }
    }
    text
}
