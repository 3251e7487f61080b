//! How many tokens a text is, by a real tokeniser.
//!
//! Every provider has its own; OpenAI's `o200k` stands for all of them, and where a provider says
//! what a call took, that is what counts. The work is bounded: of a long text samples are counted.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use polyloop_session::context::Overhead;
use polyloop_session::item::Part;
use polyloop_session::state::estimate_tokens;
use polyloop_session::{Event, Text};

use crate::tool::{ToolList, ToolSpec};

mod picture;

/// A longer text is counted by samples.
pub const COUNTED_BYTES_MAX: usize = 64 * 1024;
/// Taken evenly from all of it.
const SAMPLES: usize = 4;
const SAMPLE_BYTES: usize = COUNTED_BYTES_MAX / SAMPLES;
/// Shorter texts are counted where they are met; longer ones beside the session's own work.
const INLINE_BYTES_MAX: usize = 4 * 1024;

/// Instructions whose counts are kept.
const RECENT_MAX: usize = 8;

/// Counts the tokens of a text.
pub trait Tokens: Send + Sync + 'static {
    /// May take its time while it is not ready.
    fn count(&self, text: &str) -> u64;

    /// Something is about to be counted: what that takes may be made ready.
    fn prepare(&self) {}

    fn is_ready(&self) -> bool {
        true
    }
}

/// Four bytes make a token: for tests, and where no tokeniser can be had.
pub struct Rough;

impl Tokens for Rough {
    fn count(&self, text: &str) -> u64 {
        estimate_tokens(text.len())
    }
}

/// A tokeniser, and what the tools of a server take in every prompt.
#[derive(Clone)]
pub struct Counted {
    pub with: Arc<dyn Tokens>,
    tools: Arc<OnceLock<u64>>,
    /// Sessions of one folder have the same instructions; the last ones count first.
    recent: Arc<Mutex<VecDeque<(Text, u64)>>>,
}

impl Counted {
    pub fn by(with: Arc<dyn Tokens>) -> Counted {
        Counted { with, tools: Arc::default(), recent: Arc::default() }
    }

    /// Counts what stands in every prompt, beside the session's own work.
    pub async fn overhead(&self, instructions: Text, tools: ToolList) -> Overhead {
        if let (Some(tools), Some(instructions)) = (self.tools.get(), self.known(&instructions)) {
            return Overhead { instructions, tools: *tools };
        }
        let (this, rough) = (self.clone(), estimate_tokens(instructions.len()));
        let counted = beside(move || Overhead {
            instructions: this.of_instructions(instructions),
            tools: this.of_tools(&tools),
        });
        counted.await.unwrap_or(Overhead { instructions: rough, tools: 0 })
    }

    fn of_instructions(&self, text: Text) -> u64 {
        let counted = self.with.count(&text);
        let mut recent = self.recent();
        recent.truncate(RECENT_MAX - 1);
        recent.push_front((text, counted));
        counted
    }

    fn known(&self, text: &Text) -> Option<u64> {
        self.recent().iter().find(|(known, _)| known == text).map(|(_, counted)| *counted)
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<(Text, u64)>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// They are the same for every session of a server.
    fn of_tools(&self, tools: &[ToolSpec]) -> u64 {
        let schema = |tool: &ToolSpec| {
            let text = format!("{} {} {}", tool.name, &*tool.description, tool.parameters.json());
            self.with.count(&text)
        };
        *self.tools.get_or_init(|| tools.iter().map(schema).sum())
    }
}

/// OpenAI's `o200k`. Its vocabulary is unpacked when the first text is counted, or is about to be:
/// that takes a moment, and far more memory than an idle server has.
pub struct O200k;

/// Whether its vocabulary is there.
static UNPACKED: AtomicBool = AtomicBool::new(false);

impl Tokens for O200k {
    fn count(&self, text: &str) -> u64 {
        let encoding = tiktoken::get_encoding("o200k_base");
        UNPACKED.store(true, Ordering::Release);
        let Some(encoding) = encoding else { return Rough.count(text) };
        if text.len() <= COUNTED_BYTES_MAX {
            return encoding.count(text) as u64;
        }
        let (mut counted, mut bytes) = (0_u64, 0_u64);
        for sample in samples(text) {
            counted += encoding.count(sample) as u64;
            bytes += sample.len() as u64;
        }
        let whole = u128::from(counted) * text.len() as u128 / u128::from(bytes.max(1));
        u64::try_from(whole).unwrap_or(u64::MAX)
    }

    /// Who counts before that is done, waits.
    fn prepare(&self) {
        static BEGUN: Once = Once::new();
        BEGUN.call_once(|| {
            let unpack = std::thread::Builder::new().name("vocabulary".to_owned());
            // If there is no thread for it, the first count does it.
            let _ = unpack.spawn(|| O200k.count("."));
        });
    }

    fn is_ready(&self) -> bool {
        UNPACKED.load(Ordering::Acquire)
    }
}

fn samples(text: &str) -> impl Iterator<Item = &str> {
    let step = (text.len() - SAMPLE_BYTES) / (SAMPLES - 1);
    (0..SAMPLES).map(move |at| {
        let from = text.ceil_char_boundary(at * step);
        let to = text.floor_char_boundary((at * step + SAMPLE_BYTES).min(text.len()));
        &text[from..to.max(from)]
    })
}

type Job = Box<dyn FnOnce() + Send>;

/// Counts on a thread that does nothing else. The tokeniser keeps what it has seen, thread by
/// thread, and much of it: on the threads that wait for disks there would be a hundred of them.
/// `None` when it broke.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    static COUNTER: OnceLock<Option<std::sync::mpsc::Sender<Job>>> = OnceLock::new();
    let counter = COUNTER.get_or_init(|| {
        let (jobs, taken) = std::sync::mpsc::channel::<Job>();
        let thread = std::thread::Builder::new().name("tokens".to_owned());
        let counts = move || {
            for job in taken {
                // One text that breaks it is no reason to count no more.
                let _ = std::panic::catch_unwind(AssertUnwindSafe(job));
            }
        };
        thread.spawn(counts).ok().map(|_| jobs)
    });
    let (done, counted) = tokio::sync::oneshot::channel();
    let job: Job = Box::new(move || drop(done.send(work())));
    counter.as_ref()?.send(job).ok()?;
    counted.await.ok()
}

/// Writes the counts of what enters the prompt into its events. A number that stood there was an
/// estimate.
pub async fn fill(tokens: &Arc<dyn Tokens>, mut events: Vec<Event>) -> Vec<Event> {
    let bytes: usize = events.iter().map(counted_bytes).sum();
    // Nothing else would be done on this thread while it waits for the vocabulary.
    if bytes == 0 || bytes <= INLINE_BYTES_MAX && tokens.is_ready() {
        events.iter_mut().for_each(|event| count(&**tokens, event));
        return events;
    }
    let (tokens, theirs) = (tokens.clone(), events.clone());
    let filled = beside(move || {
        let mut events = theirs;
        events.iter_mut().for_each(|event| count(&*tokens, event));
        events
    });
    // Should the tokeniser break, the estimates stand.
    filled.await.unwrap_or(events)
}

/// What must be read to count an event.
fn counted_bytes(event: &Event) -> usize {
    match event {
        Event::MessageQueued { content, .. } => content
            .iter()
            .map(|part| match part {
                Part::Text { text } => text.len(),
                Part::Image { .. } => 0,
            })
            .sum(),
        Event::ToolProposed { args, .. } => args.len(),
        Event::ItemCompleted { text, result, .. } => {
            result.as_ref().and_then(|result| result.seen.as_ref()).unwrap_or(text).len()
        }
        Event::PathTaken { note, .. }
        | Event::NodeStarted { note, .. }
        | Event::Gathered { note, .. } => note.len(),
        Event::Concluded { text, .. } => text.len(),
        _ => 0,
    }
}

fn count(with: &dyn Tokens, event: &mut Event) {
    match event {
        Event::MessageQueued { content, tokens, .. } => {
            *tokens = content.iter().map(|part| of_part(with, part)).sum();
        }
        // The name of the tool is a word or two.
        Event::ToolProposed { args, tokens, .. } => *tokens = with.count(args) + NAME_TOKENS,
        Event::ItemCompleted { text, result, tokens, .. } => {
            let seen = result.as_ref().and_then(|result| result.seen.as_ref());
            *tokens = with.count(seen.unwrap_or(text));
        }
        Event::PathTaken { note, tokens, .. }
        | Event::NodeStarted { note, tokens, .. }
        | Event::Gathered { note, tokens, .. } => *tokens = with.count(note),
        Event::Concluded { text, tokens } => *tokens = with.count(text),
        _ => {}
    }
}

/// What a call takes beside its arguments.
const NAME_TOKENS: u64 = 4;

fn of_part(with: &dyn Tokens, part: &Part) -> u64 {
    match part {
        Part::Text { text } => with.count(text),
        Part::Image { data, .. } => picture::tokens(data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_vocabulary() {
        let tokens = O200k;
        // As OpenAI's own tool gives them.
        let rows = [("", 0), ("hello world", 2), ("Hello, world!", 4), ("    fn main() {}", 5)];
        for (text, want) in rows {
            assert_eq!(tokens.count(text), want, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_is_counted_by_samples_and_nearly_right() {
        let tokens = O200k;
        let line = "A line of a log: 2026-01-02 é 漢字 🦀 error code 17\n";
        let one = tokens.count(&line.repeat(100));
        for times in [1_000, 5_000, 40_000] {
            let want = one * times / 100;
            let got = tokens.count(&line.repeat(times as usize));
            let off = got.abs_diff(want) * 100 / want;
            assert!(off <= 2, "{got} for {want}");
        }
        // Samples fall inside characters too.
        for pad in 0..4 {
            let text = format!("{}{}", "a".repeat(pad), "🦀".repeat(50_000));
            assert!(tokens.count(&text) > 10_000);
        }
    }

    /// Is unpacked when it is told to, and whoever counts before waits.
    struct Unpacking(std::sync::Mutex<std::sync::mpsc::Receiver<()>>);

    impl Tokens for Unpacking {
        fn count(&self, text: &str) -> u64 {
            self.0.lock().unwrap().recv().unwrap();
            Rough.count(text)
        }

        fn is_ready(&self) -> bool {
            false
        }
    }

    /// On one thread: were it blocked, nobody could end the unpacking.
    #[tokio::test]
    async fn others_go_on_while_a_short_text_waits_for_the_vocabulary() {
        let (unpacked, waits) = std::sync::mpsc::channel();
        let tokens: Arc<dyn Tokens> = Arc::new(Unpacking(std::sync::Mutex::new(waits)));
        let filling = fill(&tokens, vec![completed("hello")]);
        let going_on = async { unpacked.send(()).unwrap() };
        let (filled, ()) = tokio::join!(filling, going_on);
        assert_eq!(filled.len(), 1);
    }

    fn completed(text: &str) -> Event {
        Event::ItemCompleted {
            item: polyloop_session::ItemId(polyloop_session::Seq(1)),
            end: polyloop_session::item::End::Whole,
            text: text.into(),
            opaque: None,
            result: None,
            tokens: 99,
        }
    }

    #[tokio::test]
    async fn what_enters_the_prompt_is_counted_in_its_event() {
        let tokens: Arc<dyn Tokens> = Arc::new(O200k);
        let (short, long) = (completed("hello world"), completed(&"hello world ".repeat(5_000)));
        for (event, want) in [(short, 2..=2), (long, 9_000..=11_000)] {
            let filled = fill(&tokens, vec![event]).await;
            let Event::ItemCompleted { tokens, .. } = &filled[0] else { unreachable!() };
            assert!(want.contains(tokens), "{tokens}");
        }
    }
}
