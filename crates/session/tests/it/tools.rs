//! Tools of a simulated session: how they end, and how the sandbox stops them.

use polyloop_session::item::{End, FileChange, Operation, ToolResult};
use polyloop_session::policy::{Effect, Mode};
use polyloop_session::{Command, ItemId, Report, Stream};

use super::action::{Halted, Judged, Kind, There};
use super::make::who;
use super::play::{answerable, calls, say, tools};
use super::sim::{Run, Sim};

/// As sandboxes mostly do.
pub const HALTED: Halted = Halted {
    printed: "",
    mode: None,
    seen: false,
    exit_code: Some(1),
    there: There::All,
    fuse: None,
};

pub fn end_tool(sim: &mut Sim, item: ItemId, end: End, seen: bool) -> Run {
    let seen = seen.then(|| format!("seen of {item}").into());
    let files = if end == End::Whole { vec![changed("outside")] } else { Vec::new() };
    let result = Box::new(ToolResult {
        seen,
        exit_code: Some(0),
        duration_ms: 1,
        files,
        ..ToolResult::default()
    });
    sim.report(Report::ToolEnded { item, end, result })
}

pub fn stop_tool(sim: &mut Sim, item: ItemId, halt: Halted) -> Run {
    let Halted { printed, mode, seen, exit_code, there, fuse } = halt;
    sim.grow(item, Stream::Output, printed, 0);
    if let Some(mode) = mode {
        sim.command(Command::SetMode { mode, by: who() })?;
    }
    if let Some(entries) = fuse {
        sim.fuse = Some(u32::from(entries));
    }
    let seen = seen.then(|| format!("seen of {item}, stopped").into());
    let (duration_ms, files) = (item.0.0, vec![changed(&format!("inside {item}"))]);
    let result =
        Box::new(ToolResult { seen, exit_code, duration_ms, files, ..ToolResult::default() });
    let (reason, answerable) = (format!("no network for {item}").into(), answerable(there));
    sim.report(Report::ToolStopped { item, reason, result, answerable })
}

pub fn touch(sim: &mut Sim, item: ItemId) -> Run {
    let file = FileChange { after: Some("hash".into()), ..changed("touched") };
    let (files, made, removed) = (vec![file], vec!["new".into()], Vec::new());
    sim.report(Report::ToolTouches { item, files, made, removed })
}

fn changed(path: &str) -> FileChange {
    FileChange { path: path.into(), operation: Operation::Create, ..FileChange::default() }
}

pub fn escape(sim: &mut Sim, halt: Halted) -> Run {
    let Some(call) = calls(sim).first().copied() else { return Ok(()) };
    sim.command(Command::SetMode { mode: Mode::FullAuto, by: who() })?;
    // Some of them can be granted, and then run outside at once.
    let keys = if halt.seen { vec!["cargo"] } else { Vec::new() };
    let judged = Judged { effect: Effect::Execute, safe: false, keys, ..harmless() };
    say(sim, call, &[(Kind::Tool, "{}")], &[judged], There::All)?;
    match tools(sim).first().copied() {
        Some(item) => stop_tool(sim, item, halt),
        None => Ok(()),
    }
}

/// A call that nothing stands against.
pub fn harmless() -> Judged {
    let (safe, confined, sandbox, refused, risky) = (true, true, true, false, false);
    let (effect, keys, rule) = (Effect::Read, Vec::new(), None);
    Judged { effect, safe, confined, sandbox, refused, risky, keys, rule }
}
