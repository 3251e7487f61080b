//! What the strategies' own code costs: a model that answers at once and always wants more, turns
//! of more and more calls, and the processor time of each call.

use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use polyloop_agent::model::{Chunk, Request, Stop};
use polyloop_agent::sessions::Sessions;
use polyloop_session::command::Send;
use polyloop_session::event::{Agent, RunOptions};
use polyloop_session::history::Message;
use polyloop_session::item::{ItemKind, Part};
use polyloop_session::strategy::bounds::{BOUND_MAX, Wanted};
use polyloop_session::{Command, Event, Update};
use serde_json::json;

use super::client::{APPROVE, CLIENT};
use super::make::{message, who};
use super::model::Puppet;
use super::rig::{Setup, in_time, memory, temp_dir};
use super::view::{Frame, Kind, Seeing};

/// Turns of so many calls.
pub const CALLS: [u32; 4] = [250, 500, 1_000, 2_000];
/// Of the clock that processes are charged by.
const TICKS_PER_SEC: f64 = 100.0;

/// What one turn came to.
pub struct Cost {
    pub calls: u32,
    pub events: u32,
    pub cpu_ms: f64,
    pub wall_ms: f64,
}

/// Every agent with bounds as large as they may be.
pub fn kinds() -> Vec<(&'static str, RunOptions)> {
    let most = Some(BOUND_MAX);
    let wanted = Wanted {
        tot_proposals: most,
        tot_beam: most,
        tot_depth: most,
        got_nodes: most,
        got_nodes_total: most,
        got_layers: most,
        got_attempts: most,
        got_refine: most,
        got_steps: most,
        ..Wanted::default()
    };
    let run = |agent| RunOptions {
        agent: Some(agent),
        bounds: Some(Box::new(wanted)),
        ..RunOptions::default()
    };
    vec![
        ("react", run(Agent::React)),
        ("tot, widest", run(Agent::Tot)),
        ("got, widest", run(Agent::Got)),
    ]
}

pub async fn turn(mut run: RunOptions, calls_max: u32) -> Cost {
    run.calls_max = Some(calls_max);
    let (dir, log) = (temp_dir(), memory());
    let kit = Setup::new(log).model(Arc::new(Puppet(greedy))).kit(dir.path());
    let (sessions, kind): (Sessions<Seeing>, _) = (Sessions::new(kit, None), Kind::new());
    let handle = sessions.passing(who());
    let mut subscription = handle.attach(kind, None, APPROVE, CLIENT).await.unwrap().subscription;
    let (began, cpu) = (Instant::now(), cpu_ms());
    let said = Send { run: Some(Box::new(run)), ..message("Do more.") };
    handle.command(Command::Send(Box::new(said))).await.unwrap();
    let (mut calls, mut events) = (0, 0);
    let mut coming = Vec::new().into_iter();
    loop {
        let Some(Frame(update)) = coming.next() else {
            let bundle = in_time("the end of a turn", subscription.next()).await.unwrap();
            coming = bundle.into_iter();
            continue;
        };
        let Update::Logged(entry) = update else { continue };
        events += 1;
        match &entry.event {
            Event::CallStarted { .. } => calls += 1,
            Event::TurnEnded { .. } => break,
            _ => {}
        }
    }
    let cost = Cost {
        calls,
        events,
        cpu_ms: cpu_ms() - cpu,
        wall_ms: began.elapsed().as_secs_f64() * 1_000.0,
    };
    in_time("the sessions' end", sessions.close()).await;
    cost
}

/// Processor time of this whole program so far.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("what the system charged");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number of ticks");
    // In user mode and in the system, the 14th and 15th of all fields.
    (ticks(11) + ticks(12)) * 1_000.0 / TICKS_PER_SEC
}

fn greedy(request: Request) -> BoxStream<'static, Chunk> {
    let asked = match request.prompt.messages.last() {
        Some(Message::User(parts)) => parts.iter().map(Part::shown).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    let has = |words: &str| asked.contains(words);
    let text = if has("different next steps") {
        let all: Vec<String> = (0..BOUND_MAX).map(|n| format!("way {n}")).collect();
        json!({ "thoughts": all }).to_string()
    } else if has("How promising is this way?") {
        "likely".to_owned()
    } else if has("split it into sub-tasks first") {
        let nodes: Vec<_> = (0..BOUND_MAX)
            .map(|n| json!({ "id": format!("n{n}"), "task": "more", "attempts": BOUND_MAX }))
            .collect();
        json!({ "nodes": nodes }).to_string()
    } else if has("How good is this result") {
        "5/10".to_owned()
    } else if has("Your sub-task: ") || has("Several ways were weighed") || has("What they came to")
    {
        "That is it.".to_owned()
    } else {
        return calling();
    };
    let chunks = [
        Chunk::Started { block: 0, kind: ItemKind::Text },
        Chunk::Text { block: 0, text: text.into() },
        Chunk::Ended { block: 0, opaque: None },
        Chunk::Done(Stop::End),
    ];
    stream::iter(chunks).boxed()
}

/// One more step of a conversation: a call of a tool that is not there.
fn calling() -> BoxStream<'static, Chunk> {
    let kind = ItemKind::ToolCall { name: "nothing".into(), call_ref: "c".into(), native: false };
    let chunks = [
        Chunk::Started { block: 0, kind },
        Chunk::Args { block: 0, text: "{}".into() },
        Chunk::Ended { block: 0, opaque: None },
        Chunk::Done(Stop::End),
    ];
    stream::iter(chunks).boxed()
}
