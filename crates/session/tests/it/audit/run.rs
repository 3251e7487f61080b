//! Tools that run: by whose leave, how often, and what is kept of a run that the sandbox stopped.

use polyloop_session::event::{CallOutcome, Event};
use polyloop_session::item::{End, ItemKind, ToolResult};
use polyloop_session::next::OUTSIDE_TEXT;
use polyloop_session::policy::{Effect, Judgement, Key, Leave, Mode, Says};
use polyloop_session::{ItemId, Live, Stream, Text};

use super::{Audit, Checked, Item};

/// What must become of a call, worked out once more from the facts of its judgement.
#[derive(Debug, PartialEq)]
pub enum Fate {
    Runs { leave: Leave, sandboxed: bool },
    Asked,
    Denied,
}

impl Fate {
    /// `answerable`: somebody is there to be asked.
    pub fn of(call: &Judgement, mode: Mode, grants: &[Key], answerable: bool) -> Fate {
        let says = call.rule.as_ref().map(|rule| rule.says);
        let asked = if answerable { Fate::Asked } else { Fate::Denied };
        let runs = |leave| Fate::Runs { leave, sandboxed: false };
        // What leaves the machine is never harmless.
        let safe = call.safe && call.effect != Effect::Network;
        let harmless = safe || call.effect == Effect::Read;
        let held = |key: &Key| grants.iter().any(|g| g.what == key.what && g.risk >= key.risk);
        let granted = !call.keys.is_empty() && call.keys.iter().all(held);
        match (mode, call.effect, says) {
            _ if call.refusal.is_some() => Fate::Denied,
            (_, _, Some(Says::Deny)) => Fate::Denied,
            (_, Effect::Question | Effect::Plan, _) => asked,
            (Mode::Plan, ..) if !harmless => Fate::Denied,
            (Mode::DontAsk, _, Some(Says::Ask)) => Fate::Denied,
            (_, _, Some(Says::Ask)) => asked,
            (_, Effect::Read, _) => runs(Leave::Reads),
            _ if safe => runs(Leave::Safe),
            _ if granted => runs(Leave::Granted),
            (_, _, Some(Says::Allow)) => {
                let line = call.rule.as_ref().map(|rule| rule.line.clone()).unwrap_or_default();
                runs(Leave::Rule { line })
            }
            (Mode::Bypass, ..) => runs(Leave::Mode { mode }),
            (Mode::AutoEdit | Mode::FullAuto, Effect::Edit, _) if call.confined => {
                runs(Leave::Mode { mode })
            }
            (Mode::FullAuto, Effect::Execute, _) if call.sandbox => {
                Fate::Runs { leave: Leave::Mode { mode }, sandboxed: true }
            }
            (Mode::DontAsk, ..) => Fate::Denied,
            _ => asked,
        }
    }
}

/// A run that the sandbox stopped.
pub struct Stopped {
    pub reason: Text,
    text: Text,
    result: ToolResult,
    answerable: bool,
}

/// What was done with a call so far.
#[derive(Default)]
pub struct Runs {
    /// It runs now, in the sandbox or not.
    pub now: Option<bool>,
    pub stopped: Option<Stopped>,
}

/// What a completion says.
pub struct Told<'a> {
    pub end: End,
    pub text: &'a str,
    pub result: Option<&'a ToolResult>,
}

impl Item {
    /// What is weighed: after the sandbox stopped it, the call as one for which there is none.
    pub fn weighed(&self) -> Result<(Judgement, bool), String> {
        let proposed = self.proposed.as_ref().ok_or("[4] weighed before it was proposed")?;
        let (mut judgement, mut answerable) = (proposed.judgement.clone(), proposed.answerable);
        if let Some(stopped) = &self.runs.stopped {
            (judgement.sandbox, answerable) = (false, stopped.answerable);
        }
        Ok((judgement, answerable))
    }
}

impl Audit {
    pub(super) fn fate(&self, row: &Item) -> Result<Fate, String> {
        let (judgement, answerable) = row.weighed()?;
        Ok(Fate::of(&judgement, self.session.mode, &self.grants, answerable))
    }

    pub(super) fn run_event(&mut self, event: &Event, live: Option<&Live>) -> Checked {
        match event {
            Event::ToolStarted { item, sandboxed, leave } => {
                self.tool_started(*item, *sandboxed, leave.as_ref())
            }
            Event::SandboxRefused { item, reason, text, result, answerable } => {
                let (reason, text, result) = (reason.clone(), text.clone(), (**result).clone());
                let stopped = Stopped { reason, text, result, answerable: *answerable };
                self.sandbox_refused(*item, stopped, live)
            }
            Event::ItemCompleted { item, end, text, result, .. } => {
                let told = Told { end: *end, text, result: result.as_deref() };
                self.item_completed(*item, told, live)
            }
            other => Err(format!("no event of a run: {other:?}")),
        }
    }

    fn tool_started(&mut self, id: ItemId, sandboxed: bool, leave: Option<&Leave>) -> Checked {
        self.running_turn()?;
        let row = self.items.get(&id).ok_or("an unknown item")?;
        ensure!(row.runs.now.is_none(), "[4] a tool runs twice at once");
        let again = row.runs.stopped.is_some();
        ensure!(!(again && sandboxed), "[16] runs in the sandbox that stopped it");
        let (call, reads) = (row.call, row.reads());
        let (judgement, _) = row.weighed()?;
        let effect = judgement.effect;
        ensure!(!effect.asks(), "[11] runs what only asks, a {effect:?}");
        let never = judgement.rule.as_ref().is_some_and(|rule| rule.says == Says::Deny);
        ensure!(!never, "[17] runs what a rule denies");
        let fate = self.fate(row)?;
        let want = match row.wait.and_then(|wait| self.waits.get(&wait)) {
            Some(wait) => {
                ensure!(wait.gave_leave() && !sandboxed, "[4] nobody gave leave");
                ensure!(wait.is_outside() == again, "[16] leave for another run than this");
                Leave::Person
            }
            None => match fate {
                Fate::Runs { leave, sandboxed: inside } if inside == sandboxed => leave,
                other => return Err(format!("[4] a tool runs without leave; it is {other:?}")),
            },
        };
        ensure!(leave == Some(&want), "[17] runs by {leave:?}, in truth by {want:?}");
        let asks = judgement.rule.as_ref().is_some_and(|rule| rule.says == Says::Ask);
        ensure!(!asks || want == Leave::Person, "[17] a rule asks, and nobody was asked");
        let ended = self.calls.get(&call).and_then(|call| call.end.as_ref());
        ensure!(ended == Some(&CallOutcome::Answered), "[4] its call has not ended well");
        let before = self.items.range(ItemId(call.0)..id).filter(|(_, row)| row.call == call);
        for (other, row) in before.filter(|(_, row)| row.proposed.is_some() && row.end.is_none()) {
            let beside = reads && row.runs.now.is_some() && row.reads();
            ensure!(beside, "[4] runs beside {other}, which is open before it");
        }
        self.open_item(id)?.runs.now = Some(sandboxed);
        Ok(())
    }

    fn sandbox_refused(&mut self, id: ItemId, stopped: Stopped, live: Option<&Live>) -> Checked {
        ensure!(self.turn.is_some(), "[5] stopped outside a turn");
        let row = self.open_item(id)?;
        ensure!(row.runs.now == Some(true), "[16] the sandbox stopped what does not run in it");
        ensure!(row.runs.stopped.is_none(), "[16] the sandbox stopped it twice");
        if let Some(live) = live {
            let shown = live.text(id, Stream::Output);
            ensure!(*stopped.text == *shown, "[8] shown was {shown:?}, kept {:?}", stopped.text);
        }
        (row.runs.now, row.runs.stopped) = (None, Some(stopped));
        Ok(())
    }

    fn item_completed(&mut self, id: ItemId, told: Told<'_>, live: Option<&Live>) -> Checked {
        self.open_item(id)?.end = Some(told.end);
        let row = self.items.get(&id).ok_or("an unknown item")?;
        match (&row.proposed, row.runs.now, &row.runs.stopped) {
            (Some(proposed), None, None) => self.unrun(row, proposed, told.end, told.text)?,
            (_, None, Some(stopped)) => self.left_inside(row, stopped, &told)?,
            (_, Some(_), Some(stopped)) => kept(stopped, &told)?,
            (_, Some(_), None) | (None, None, None) => {}
        }
        let Some(live) = live else { return Ok(()) };
        let shown = |stream| live.text(id, stream);
        let stream = match (&row.kind, &row.proposed) {
            (ItemKind::Text | ItemKind::Reasoning, _) => Stream::Text,
            (ItemKind::ToolCall { .. }, None) => Stream::Args,
            (ItemKind::ToolCall { .. }, Some(proposed)) => {
                let args = shown(Stream::Args);
                let kept = args.is_empty() || &*proposed.args == args;
                ensure!(kept, "[8] lost the arguments {args:?}");
                Stream::Output
            }
        };
        for other in [Stream::Text, Stream::Args, Stream::Output] {
            let kept = match other {
                other if other == stream => shown(stream).is_empty() || told.text == shown(stream),
                Stream::Args => row.proposed.is_some() || shown(other).is_empty(),
                Stream::Text | Stream::Output => shown(other).is_empty(),
            };
            ensure!(kept, "[8] lost of {other:?} {:?}", shown(other));
        }
        Ok(())
    }

    /// A call that the sandbox stopped and that did not run again: the model gets what the run
    /// gave, and where somebody was asked, what became of that.
    fn left_inside(&self, row: &Item, stopped: &Stopped, told: &Told<'_>) -> Checked {
        kept(stopped, told)?;
        let Stopped { text, result, .. } = stopped;
        ensure!(*told.text == **text, "[8] what it gave is {text:?}, told {:?}", told.text);
        let last = told.result.ok_or("[16] no word of what the run came to")?;
        let same = (last.exit_code, last.duration_ms) == (result.exit_code, result.duration_ms);
        ensure!(same && last.files == result.files, "[16] another result than {result:?}");
        if row.wait.is_none() && matches!(told.end, End::Whole | End::Failed) {
            let fate = self.fate(row)?;
            ensure!(fate == Fate::Denied, "[16] ends without being asked about; it is {fate:?}");
            ensure!(last == result, "[16] what it gave was changed to {last:?}");
            let whole = result.exit_code.is_some();
            ensure!(whole == (told.end == End::Whole), "[16] ends as {:?}", told.end);
            return Ok(());
        }
        let had = result.seen.as_ref().unwrap_or(text);
        let why = last.seen.as_deref().unwrap_or_default().strip_prefix(&**had);
        let why = why.and_then(|why| why.strip_prefix(&format!("\n{OUTSIDE_TEXT} ")));
        let why = why.ok_or_else(|| format!("[16] the model is told {:?}", last.seen))?;
        let proposed = row.proposed.as_ref().ok_or("[4] stopped before it was proposed")?;
        // What never ran is said to be not run; here the sentence begins so already.
        let whole = format!("Not run: {why}");
        let one = self.unrun(row, proposed, told.end, why);
        one.or_else(|_| self.unrun(row, proposed, told.end, &whole))
    }
}

/// Nothing of a run that the sandbox stopped is lost, whatever came after it.
fn kept(stopped: &Stopped, told: &Told<'_>) -> Checked {
    let Stopped { text, result, .. } = stopped;
    ensure!(told.text.starts_with(&**text), "[8] of {text:?} is left {:?}", told.text);
    let files = told.result.map(|last| &last.files[..]).unwrap_or_default();
    ensure!(files.starts_with(&result.files), "[16] files {:?} are forgotten", result.files);
    Ok(())
}
