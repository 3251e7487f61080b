//! Runs the parts of a batch. What runs unasked is weighed once more, part by part, by what the
//! session lets run: the files may have changed since the whole was judged.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use polyloop_session::Text;
use polyloop_session::item::{End, FileChange, ToolResult};
use polyloop_session::policy::{Effect, Says};
use tokio::sync::{mpsc, oneshot};

use super::told::{self, ERROR, Told, heading};
use super::{Call, parse};
use crate::perform;
use crate::tool::touches::Recorded;
use crate::tool::{Progress, Run, Touches, Unasked, find};

/// Parts that read at the same time.
const READS_MAX: usize = 8;
/// How much of all the parts' output is streamed; the rest is counted.
const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// Between what runs and who looks.
const WAITING_MAX: usize = 16;

const NOT_UNASKED: &str = "not run: when the batch was proposed it needed no approval, but the \
                           files have changed since; call it alone";
const INTERRUPTED: &str = "not run: interrupted";

pub(super) fn run(run: Run) -> BoxStream<'static, Progress> {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let told = stream::unfold((receiver, None), |(mut receiver, recorded)| async move {
        if let Some(recorded) = recorded {
            // Whoever reads has come back for more. The part may have ended meanwhile.
            let _: Result<(), ()> = Recorded::send(recorded, ());
        }
        let (progress, recorded) = receiver.recv().await?;
        Some((progress, (receiver, recorded)))
    });
    // Both on the same task: what is dropped ends.
    let work = stream::once(perform(run, sender)).filter_map(|()| std::future::ready(None));
    stream::select(told, work).boxed()
}

/// What is told, with whom to tell that it is recorded, where that is waited for.
type Sent = (Progress, Option<Recorded>);

async fn perform(run: Run, sender: mpsc::Sender<Sent>) {
    let started = Instant::now();
    let mut batch = Running {
        run,
        screen: Screen { sender, bytes: 0, left_out: 0, told: String::new() },
        parts: Vec::new(),
    };
    let end = match parse(&batch.run.args) {
        Err(why) => ended(End::Failed, Some(why), Vec::new(), started),
        Ok(_) if batch.run.stop.is_cancelled() => {
            ended(End::Interrupted, Some("Interrupted.".into()), Vec::new(), started)
        }
        Ok(calls) => {
            batch.all(&calls).await;
            batch.end(started).await
        }
    };
    // Nobody looks any more if this fails.
    let _ = batch.screen.sender.send((end, None)).await;
}

struct Running {
    run: Run,
    screen: Screen,
    parts: Vec<Told>,
}

/// A part that may run now.
struct Ready {
    tool: &'static str,
    reads: bool,
    run: Run,
}

impl Running {
    async fn all(&mut self, calls: &[Call]) {
        let mut reads: Vec<Result<Ready, Told>> = Vec::new();
        for call in calls {
            match self.prepare(call).await {
                Ok(ready) if !ready.reads => {
                    self.together(std::mem::take(&mut reads)).await;
                    self.alone(ready).await;
                }
                read => reads.push(read),
            }
        }
        self.together(reads).await;
    }

    /// Judges and weighs a part, as if it had been called alone at this moment.
    async fn prepare(&self, call: &Call) -> Result<Ready, Told> {
        let Call { tool, args } = call;
        if self.run.stop.is_cancelled() {
            return Err(not_run(tool));
        }
        let judged = perform::judge(tool, args, &self.run.place).await;
        let failed = |why: &str| Told::failed(tool, why.to_owned());
        if let Some(why) = &judged.refusal {
            return Err(failed(why));
        }
        let reads = judged.effect == Effect::Read;
        let (sandboxed, unasked) = match &self.run.unasked {
            None if judged.rule.as_ref().is_some_and(|rule| rule.says == Says::Deny) => {
                return Err(failed("not run: the rules of this server deny it"));
            }
            None => (false, None),
            Some(unasked) => {
                let (sandboxed, leave) =
                    unasked.lets(&judged).ok_or_else(|| failed(NOT_UNASKED))?;
                (sandboxed, Some(Unasked { leave, ..unasked.clone() }))
            }
        };
        let (place, stop) = (self.run.place.clone(), self.run.stop.clone());
        let run = Run { args: args.clone(), place, sandboxed, unasked, stop };
        Ok(Ready { tool, reads, run })
    }

    /// Runs parts that read, or cannot run at all, side by side.
    async fn together(&mut self, parts: Vec<Result<Ready, Told>>) {
        let running = parts.into_iter().map(|part| async move {
            match part {
                Ok(ready) => one(ready, None).await,
                Err(told) => told,
            }
        });
        let mut done = std::pin::pin!(stream::iter(running).buffered(READS_MAX));
        while let Some(told) = done.next().await {
            let error = if told.is_well() { "" } else { ERROR };
            let heading = heading(self.parts.len() + 1, told.tool);
            self.screen.show(&format!("{heading}{error}")).await;
            self.screen.show_end(&told.text).await;
            self.parts.push(told);
        }
    }

    /// Runs one part, whose output is streamed as it comes.
    async fn alone(&mut self, ready: Ready) {
        self.screen.show(&heading(self.parts.len() + 1, ready.tool)).await;
        let before = self.screen.told.len();
        let told = one(ready, Some(&mut self.screen)).await;
        let streamed = self.screen.told.get(before..).unwrap_or_default();
        // What it says of its end was not streamed.
        let rest = told.text.strip_prefix(streamed).unwrap_or_default().to_owned();
        self.screen.show_end(&rest).await;
        self.parts.push(told);
    }

    async fn end(&mut self, started: Instant) -> Progress {
        let stopped = self.run.stop.is_cancelled();
        let well = self.parts.iter().any(Told::is_well);
        let end = match (stopped, well) {
            (true, _) => End::Interrupted,
            (false, true) => End::Whole,
            (false, false) => End::Failed,
        };
        let seen = told::text(&self.parts);
        if let Some(note) = told::note(&self.parts) {
            self.screen.show(&note).await;
        }
        self.screen.finish().await;
        let files = self.parts.iter_mut().flat_map(|part| std::mem::take(&mut part.files));
        let files: Vec<FileChange> = files.collect();
        let seen = (seen != self.screen.told).then(|| seen.into());
        let mut ended = ended(end, seen, files, started);
        if let Progress::Ended { result, .. } = &mut ended {
            result.todos = self.parts.iter_mut().rev().find_map(|part| part.todos.take());
            let lists = self.parts.iter_mut().rev();
            result.todo_list = lists.into_iter().find_map(|part| part.todo_list.take());
        }
        ended
    }
}

/// Runs a part to its end, with whatever befalls it.
async fn one(ready: Ready, mut screen: Option<&mut Screen>) -> Told {
    let Ready { tool: name, run, .. } = ready;
    if run.stop.is_cancelled() {
        return not_run(name);
    }
    let broke = || Told::failed(name, format!("{name}: broke; this is a fault of the server"));
    let Some(tool) = find(name) else { return broke() };
    let Ok(progress) = std::panic::catch_unwind(AssertUnwindSafe(|| tool.run(run))) else {
        return broke();
    };
    let mut progress = AssertUnwindSafe(progress).catch_unwind();
    let mut output = String::new();
    loop {
        let (end, result) = match progress.next().await {
            Some(Ok(Progress::Output(text))) => {
                if let Some(screen) = &mut screen {
                    screen.show(&text).await;
                }
                output.push_str(&text);
                continue;
            }
            Some(Ok(Progress::Touches(touches))) => {
                // The part goes on when it is asked for more, so it waits here.
                let recorded = match &screen {
                    Some(screen) => screen.record(touches).await,
                    None => false,
                };
                if recorded {
                    continue;
                }
                return Told::failed(name, format!("{name}: not done: it was not recorded"));
            }
            Some(Ok(Progress::Ended { end, result })) => (end, result),
            Some(Ok(Progress::Stopped { reason, mut result })) => {
                // Asking about a part alone would run the others a second time.
                let had = result.seen.take().unwrap_or_else(|| output.as_str().into());
                let why = format!(
                    "The sandbox stopped it: {reason}. In a batch nobody is asked about that; call \
                     {name} by itself, and the user can let it run outside the sandbox."
                );
                result.seen = Some(format!("{}\n{why}", had.trim_end_matches('\n')).into());
                (End::Failed, result)
            }
            Some(Err(_)) | None => return broke(),
        };
        let text = result.seen.map_or(output, |seen| seen.to_string());
        let (files, todos, todo_list) = (result.files, result.todos, result.todo_list);
        return Told { tool: name, end, text, files, todos, todo_list };
    }
}

fn not_run(tool: &'static str) -> Told {
    Told {
        tool,
        end: End::Interrupted,
        text: INTERRUPTED.to_owned(),
        files: Vec::new(),
        todos: None,
        todo_list: None,
    }
}

/// What those who look have been shown.
struct Screen {
    sender: mpsc::Sender<Sent>,
    bytes: usize,
    left_out: usize,
    told: String,
}

impl Screen {
    async fn show(&mut self, text: &str) {
        let room = if self.left_out > 0 { 0 } else { OUTPUT_BYTES_MAX - self.bytes };
        let shown = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        self.left_out += text.len() - shown.len();
        self.put(shown).await;
    }

    /// The end of a part, which is the end of a line.
    async fn show_end(&mut self, text: &str) {
        self.show(text).await;
        if !self.told.ends_with('\n') {
            self.show("\n").await;
        }
    }

    /// Whether it was.
    async fn record(&self, touches: Touches) -> bool {
        let (recorded, waited) = oneshot::channel();
        let sent = self.sender.send((Progress::Touches(touches), Some(recorded))).await;
        sent.is_ok() && waited.await.is_ok()
    }

    async fn put(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.bytes += text.len();
        self.told.push_str(text);
        // Nobody looks any more if this fails.
        let _ = self.sender.send((Progress::Output(text.into()), None)).await;
    }

    async fn finish(&mut self) {
        if self.left_out > 0 {
            let note = format!("\n[{} more bytes of output are not shown]\n", self.left_out);
            self.put(&note).await;
        }
    }
}

fn ended(end: End, seen: Option<Text>, files: Vec<FileChange>, started: Instant) -> Progress {
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let result = ToolResult { seen, duration_ms, files, ..ToolResult::default() };
    Progress::Ended { end, result }
}
