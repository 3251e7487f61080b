//! What is played.

use polyloop_session::event::{Agent, Purpose, RunOptions};
use polyloop_session::strategy::bounds::{Judge, Search, Wanted};

use super::{Asked, Reply, Story};

pub fn all() -> Vec<Story> {
    let got = |name, model| story(name, Agent::Got, Wanted::default(), model);
    let tot = |name, wanted, model| story(name, Agent::Tot, wanted, model);
    let narrow = Wanted {
        tot_proposals: Some(2),
        tot_beam: Some(1),
        tot_depth: Some(2),
        ..Wanted::default()
    };
    let beam = Wanted { tot_beam: Some(2), ..narrow };
    let depth = Wanted { tot_search: Some(Search::Depth), ..narrow };
    let vote = Wanted { tot_judge: Some(Judge::Vote), tot_samples: Some(2), ..narrow };
    let mut adaptive = got("agent-got-adaptive", nested);
    adaptive.run.adaptive = true;
    vec![
        story("agent-dup", Agent::Dup, Wanted::default(), understands),
        tot("agent-tot-backtrack", narrow, goes_back),
        tot("agent-tot-beam", beam, side_by_side),
        tot("agent-tot-depth", depth, goes_back),
        tot("agent-tot-vote", vote, votes),
        got("agent-got", several),
        got("agent-got-fails", fails),
        got("agent-got-one-sink", diamond),
        got("agent-got-tries", tries),
        got("agent-got-approvals", approvals),
        adaptive,
        Story { interrupted: Some(1), ..got("agent-got-resumed", diamond) },
        Story { interrupted: Some(3), ..tot("agent-tot-resumed", beam, side_by_side) },
    ]
}

fn story(name: &'static str, agent: Agent, wanted: Wanted, model: fn(&Asked) -> Reply) -> Story {
    let bounds = (wanted != Wanted::default()).then(|| Box::new(wanted));
    let run = RunOptions { agent: Some(agent), bounds, ..RunOptions::default() };
    Story { name, message: "Compare a.txt and b.txt", run, model, interrupted: None }
}

fn understands(asked: &Asked) -> Reply {
    match asked.purpose {
        Purpose::Question => Reply::Muse("A comparison.", "How do a.txt and b.txt differ?"),
        // At first it is not what was asked for.
        Purpose::Information if !asked.about("again") && !asked.about("could not be read") => {
            Reply::Say("")
        }
        Purpose::Information => Reply::Say(
            "```json\n{\"constraints\": [\"both files are texts\"], \"context\": \"a.txt and b.txt \
             are in the working folder\"}\n```",
        ),
        Purpose::Think if asked.results == 0 => Reply::Look("ls"),
        _ => Reply::Say("There is no b.txt."),
    }
}

/// The way that looks best leads nowhere.
fn goes_back(asked: &Asked) -> Reply {
    match asked.purpose {
        Purpose::Expand { thought: None } => {
            Reply::Say("{\"thoughts\": [{\"thought\": \"Guess\"}, {\"thought\": \"Look\"}]}")
        }
        Purpose::Expand { .. } if asked.about("1. Guess") && asked.results == 0 => {
            Reply::Look("ls")
        }
        Purpose::Expand { .. } if asked.about("1. Guess") => Reply::Say("1. They are equal"),
        Purpose::Expand { .. } => {
            Reply::Say("{\"thoughts\": [{\"thought\": \"Run diff\", \"final\": true}]}")
        }
        Purpose::Value { .. } if asked.about("equal") => Reply::Say("Nothing says so.\nimpossible"),
        Purpose::Value { .. } if asked.about("Guess") => Reply::Say("9/10"),
        Purpose::Value { .. } => Reply::Muse("Slow and sure.", "likely"),
        Purpose::Think if asked.results == 0 => Reply::Look("diff a.txt b.txt"),
        _ => Reply::Say("They are equal."),
    }
}

/// Two branches look at the same time.
fn side_by_side(asked: &Asked) -> Reply {
    match asked.purpose {
        Purpose::Expand { thought: None } => Reply::Say("1. Read a\n2. Read b"),
        Purpose::Expand { .. } if asked.results == 0 && asked.about("1. Read a") => {
            Reply::Look("cat a.txt")
        }
        Purpose::Expand { .. } if asked.results == 0 => Reply::Look("cat b.txt"),
        Purpose::Expand { .. } => {
            Reply::Say("{\"thoughts\": [{\"thought\": \"Answer\", \"final\": true}]}")
        }
        Purpose::Value { .. } if asked.about("1. Read b") => Reply::Say("7"),
        Purpose::Value { .. } => Reply::Say("sure"),
        _ => Reply::Say("They differ."),
    }
}

fn votes(asked: &Asked) -> Reply {
    match asked.purpose {
        Purpose::Expand { thought: None } => Reply::Say("1. Read both\n2. Run diff"),
        Purpose::Expand { .. } if asked.results == 0 => Reply::Look("ls"),
        Purpose::Expand { .. } => Reply::Say("1. Answer (final)"),
        Purpose::Vote { .. } => Reply::Say("The second is shorter.\n2"),
        _ => Reply::Say("They differ."),
    }
}

/// A plan with a cycle, a sub-task that fails, and two results.
fn several(asked: &Asked) -> Reply {
    match asked.purpose {
        Purpose::Plan { .. } if asked.about("has a cycle") => Reply::Say(
            "{\"nodes\": [{\"id\": \"read_a\", \"task\": \"Read a.txt\"}, {\"id\": \"read_b\", \
             \"task\": \"Read b.txt\"}, {\"id\": \"diff\", \"task\": \"Compare them\", \"needs\": \
             [\"read_a\", \"read_b\"]}, {\"id\": \"count\", \"task\": \"Count lines\"}]}",
        ),
        Purpose::Think if asked.about("Your sub-task: Count") => Reply::Say("One line."),
        _ => fails(asked),
    }
}

/// All that the answer needs fails.
fn fails(asked: &Asked) -> Reply {
    match asked.purpose {
        Purpose::Plan { .. } if asked.about("has a cycle") => diamond(asked),
        Purpose::Plan { .. } => Reply::Say(
            "{\"nodes\": [{\"id\": \"read_a\", \"task\": \"Read a.txt\", \"needs\": [\"read_b\"]}, \
             {\"id\": \"read_b\", \"task\": \"Read b.txt\", \"needs\": [\"read_a\"]}]}",
        ),
        Purpose::Think if asked.about("Your sub-task: Read b.txt") => Reply::Fail,
        Purpose::Think if asked.about("Your sub-task: Read a.txt") && asked.results == 0 => {
            Reply::Look("cat a.txt")
        }
        Purpose::Think if asked.about("Your sub-task: Read a.txt") => Reply::Say("One line."),
        _ => Reply::Say("Only a.txt could be read; it has one line."),
    }
}

fn diamond(asked: &Asked) -> Reply {
    match asked.purpose {
        Purpose::Plan { .. } => Reply::Say(
            "{\"nodes\": [{\"id\": \"read_a\", \"task\": \"Read a.txt\"}, {\"id\": \"read_b\", \
             \"task\": \"Read b.txt\"}, {\"id\": \"diff\", \"task\": \"Compare them\", \"needs\": \
             [\"read_a\", \"read_b\"]}]}",
        ),
        Purpose::Think if asked.about("Your sub-task: Compare") => Reply::Say("They are equal."),
        Purpose::Think if asked.results == 0 => Reply::Look("ls"),
        Purpose::Think if asked.about("Read a.txt") => Reply::Muse("Short.", "One line."),
        _ => Reply::Say("One line too."),
    }
}

/// Several answers to one sub-task at the same time, of which the best is improved.
fn tries(asked: &Asked) -> Reply {
    match asked.purpose {
        Purpose::Plan { .. } => Reply::Say(
            "{\"nodes\": [{\"id\": \"compare\", \"task\": \"Compare them\", \"attempts\": 2, \
             \"refine\": 1}, {\"id\": \"count\", \"task\": \"Count lines\"}]}",
        ),
        Purpose::Think if asked.about("Your sub-task: Compare") && asked.results == 0 => {
            Reply::Look("diff a.txt b.txt")
        }
        Purpose::Think if asked.about("Your sub-task: Compare") => Reply::Say("They are equal"),
        Purpose::Think if asked.about("Your sub-task: Count") => Reply::Say("Two."),
        Purpose::Score { attempt, .. } => {
            Reply::Say(if attempt == 1 { "Fine.\n9/10" } else { "Short.\n4/10" })
        }
        Purpose::Refine { .. } => Reply::Say("They are equal, line by line."),
        _ => Reply::Say("They are equal, and have two lines."),
    }
}

/// Two sub-tasks ask a person at the same time.
fn approvals(asked: &Asked) -> Reply {
    match asked.purpose {
        Purpose::Plan { .. } => Reply::Say(
            "{\"nodes\": [{\"id\": \"one\", \"task\": \"Make c.txt\"}, {\"id\": \"two\", \
             \"task\": \"Make d.txt\"}]}",
        ),
        Purpose::Think if asked.about("Your sub-task: Make c") && asked.results == 0 => {
            Reply::Change("touch c.txt")
        }
        Purpose::Think if asked.about("Your sub-task: Make d") && asked.results == 0 => {
            Reply::Change("touch d.txt")
        }
        Purpose::Think if asked.about("Your sub-task") => Reply::Say("Made."),
        _ => Reply::Say("Both are made."),
    }
}

/// A sub-task that is too much for one.
fn nested(asked: &Asked) -> Reply {
    match asked.purpose {
        Purpose::Judge { .. } if asked.about("Compare them") => Reply::Say("complex"),
        Purpose::Judge { .. } => Reply::Say("simple"),
        Purpose::Plan { node: None } => Reply::Say(
            "{\"nodes\": [{\"id\": \"read\", \"task\": \"Read both\"}, {\"id\": \"compare\", \
             \"task\": \"Compare them\", \"needs\": [\"read\"]}]}",
        ),
        Purpose::Plan { .. } => Reply::Say(
            "{\"nodes\": [{\"id\": \"size\", \"task\": \"By size\"}, {\"id\": \"text\", \"task\": \
             \"By text\"}]}",
        ),
        Purpose::Think if asked.about("Your sub-task: Read") && asked.results == 0 => {
            Reply::Look("cat a.txt b.txt")
        }
        Purpose::Think if asked.about("Your sub-task: Read") => Reply::Say("Both are read."),
        Purpose::Think if asked.about("Put the results together") => {
            Reply::Say("Equal in size and text.")
        }
        Purpose::Think if asked.about("Your sub-task: By size") => Reply::Say("Equal in size."),
        _ => Reply::Say("Equal in text."),
    }
}
