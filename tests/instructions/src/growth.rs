//! What a turn costs in a session that has a long past, beside one that has none.
//!
//! The store is made beforehand, by `prepare`, and the turns are counted by `count`: of a real
//! actor on real files, with a client attached and the messages' database behind it, but a scripted
//! model. All sessions begin with the same conversation, a summary; only their pasts differ.

use std::path::Path;
use std::sync::Arc;

use polyloop_agent::log::files::Files;
use polyloop_agent::log::{Flush, Log, Occasion, OpenMode};
use polyloop_agent::messages::Messages;
use polyloop_agent::sessions::{Handle, Sessions};
use polyloop_agent::subscriber::{Power, Presence, Subscription};
use polyloop_dialects::unified::Unified;
use polyloop_session::command::Send;
use polyloop_session::event::Origin;
use polyloop_session::item::Part;
use polyloop_session::wait::Who;
use polyloop_session::{Command, Delivery, SessionId};
use tokio::runtime::Runtime;

use crate::kit;
use crate::meter::Meter;
use crate::story::{Story, TURN_ENTRIES_MAX};
use crate::view::{Bundle, DialectKind, DialectView, FileCodec};

/// How many entries each session has when its turns are counted.
pub const PASTS: [u64; 4] = [50, 1_000, 10_000, 100_000];
/// Enough for the index of the shorter ones to be written again now and then.
const ROUNDS: u64 = 10;
const DATABASE: &str = "messages.db";
const TURN_END: &[u8] = b"\"turn_completed\"";

fn id(past: u64) -> SessionId {
    SessionId::parse(&format!("past-{past}")).unwrap()
}

/// Makes the sessions, as a server would have written them.
pub async fn prepare(dir: &Path) {
    let log = Files::open(dir, FileCodec::shared()).unwrap();
    for past in PASTS {
        let opened = log.open(&id(past), OpenMode::OrCreate).await.unwrap().unwrap();
        let (mut writer, mut state, mut story) =
            (opened.writer, opened.folded.state, Story::default());
        let mut batches = story.begin();
        loop {
            for batch in &batches {
                writer.append(state.last_seq(), batch, Flush::Process).await.unwrap();
                batch.iter().for_each(|entry| state.apply(entry));
            }
            writer.keep(&state, Occasion::TurnEnded).await;
            let left = past.saturating_sub(story.last());
            batches = match left {
                0 => break,
                left if left <= 2 * TURN_ENTRIES_MAX => {
                    // The last thing that happened to each is the same.
                    [story.turn(), story.shorten()].concat()
                }
                _ => story.turn(),
            };
        }
        writer.keep(&state, Occasion::Leaving).await;
    }
    let messages = Messages::open(&dir.join(DATABASE), Arc::new(log)).await.unwrap();
    for past in PASTS {
        messages.catch_up(&id(past)).await.unwrap();
    }
    messages.close().await;
}

pub fn count(meter: &Meter, runtime: &Runtime, dir: &Path) {
    let log: Arc<dyn Log> = Arc::new(Files::open(dir, FileCodec::shared()).unwrap());
    let work = tempfile::tempdir().unwrap();
    std::fs::write(work.path().join("notes.txt"), "nothing of interest\n".repeat(20)).unwrap();
    let database = dir.join(DATABASE);
    let messages = runtime.block_on(Messages::open(&database, log.clone())).unwrap();
    let kit = kit::make(log, messages.clone(), work.path());
    let sessions: Sessions<DialectView> = Sessions::new(kit, None);
    for past in PASTS {
        let handle = sessions.handle(id(past), Who::via("count"));
        let kind = DialectKind(&Unified);
        let attaching = handle.attach(kind, None, Power::Approve, Presence::Client);
        let mut subscription = runtime.block_on(attaching).unwrap().subscription;
        runtime.block_on(messages.catch_up(handle.id())).unwrap();
        meter.count(&past.to_string(), ROUNDS, |_| {
            runtime.block_on(async {
                turn(&handle, &mut subscription).await;
                // Else a part of its work would be counted with the next.
                messages.catch_up(handle.id()).await.unwrap();
            });
        });
    }
    runtime.block_on(sessions.close());
}

async fn turn(handle: &Handle<DialectView>, subscription: &mut Subscription<Arc<Bundle>>) {
    let text = "What do the notes say?".into();
    let origin = Origin { who: Who::via("count"), can_approve: true, can_answer: true };
    let send = Send {
        content: vec![Part::Text { text }],
        origin,
        client_ref: None,
        delivery: Delivery::Queue,
        tokens: 0,
        run: None,
    };
    handle.command(Command::Send(Box::new(send))).await.unwrap();
    loop {
        let bundle = subscription.next().await.unwrap();
        let ends = |text: &[u8]| text.windows(TURN_END.len()).any(|part| part == TURN_END);
        if bundle.frames.iter().any(|frame| ends(&frame.text)) {
            return;
        }
    }
}
