//! What the sessions of `growth` are run with: a scripted model that reads a file and then talks.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use polyloop_agent::actor::Kit;
use polyloop_agent::audit::Audit;
use polyloop_agent::gate::{Capacity, Gates};
use polyloop_agent::log::Log;
use polyloop_agent::log::memory::Memory;
use polyloop_agent::memories::Memories;
use polyloop_agent::messages::Messages;
use polyloop_agent::model::http::Proxies;
use polyloop_agent::model::table::{Card, Family, Table};
use polyloop_agent::model::{Chunk, Model, Only, Request, Stop};
use polyloop_agent::place::{Instructions, Places, Recent};
use polyloop_agent::tokens::{Counted, Rough};
use polyloop_agent::tool::web_fetcher::{self, PrivateAddresses, Reach};
use polyloop_agent::tool::{self, Place};
use polyloop_sandbox::Helper;
use polyloop_session::event::Settings;
use polyloop_session::history::Message;
use polyloop_session::item::{ItemKind, Usage};

use crate::LIMITS;
use crate::view::FileCodec;

/// Pieces of an answer, each of which clients are sent by itself.
const ANSWER_CHUNKS: usize = 20;
/// Nothing that is counted takes so long.
const LONG: Duration = Duration::from_secs(3_600);

pub fn make(log: Arc<dyn Log>, messages: Messages, work: &Path) -> Kit {
    let cwd = work.canonicalize().unwrap();
    let memories = Memories::unkept().unwrap();
    let common = Place {
        cwd: cwd.clone(),
        root: None,
        plans: None,
        outputs: None,
        todos: None,
        memories: memories.of(None),
        forbidden: Vec::new().into(),
        rules: Default::default(),
        journal: None,
        command_time_max: LONG,
        sandbox: false,
        helper: Helper::at("/nonexistent").into(),
        web: Reach::new(
            &Proxies::default(),
            PrivateAddresses::Refused,
            web_fetcher::Limits::default(),
        )
        .unwrap(),
    };
    let roots = vec![cwd.clone()];
    let (plans, outputs, todos) = (None, None, None);
    Kit {
        log,
        peers: None,
        passing: Arc::new(Memory::new(FileCodec::shared())),
        messages: Some(messages),
        models: Arc::new(Only(Arc::new(Scripted::new()))),
        instructions: Instructions {
            role: "You are a careful agent.".into(),
            rules: "Be brief.".into(),
            own: None,
            kept: Arc::default(),
        },
        tools: tool::ALL.iter().map(|tool| tool.spec()).collect(),
        // The other one unpacks its tables while the first turns run.
        tokens: Counted::by(Arc::new(Rough)),
        places: Places {
            common,
            roots,
            plans,
            outputs,
            todos,
            memories,
            recent: Recent::default(),
        },
        settings: Settings {
            cwd: cwd.display().to_string().into(),
            model: NAME.into(),
            calls_max: 100,
            ..Settings::default()
        },
        limits: LIMITS,
        approval_timeout: None,
        sleep_after: LONG,
        auto_resume: false,
        gates: Gates::new(Capacity::default()),
        awake_sessions_max: 0,
        meter: Arc::default(),
        audit: Audit::default(),
    }
}

const NAME: &str = "scripted";

struct Scripted(Card);

impl Scripted {
    fn new() -> Scripted {
        Scripted(Table::built_in().card(NAME, Family::OpenAi))
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        NAME
    }

    fn card(&self) -> &Card {
        &self.0
    }

    fn ask(&self, request: Request) -> BoxStream<'static, Chunk> {
        let block = 0;
        let mut chunks = match request.prompt.messages.last() {
            Some(Message::ToolResult { .. }) => {
                let mut chunks = vec![Chunk::Started { block, kind: ItemKind::Text }];
                let piece = || Chunk::Text { block, text: "of interest ".into() };
                chunks.extend(std::iter::repeat_with(piece).take(ANSWER_CHUNKS));
                chunks
            }
            _ => {
                let kind =
                    ItemKind::ToolCall { name: "read".into(), call_ref: "".into(), native: false };
                let text = "{\"path\":\"notes.txt\"}".into();
                vec![Chunk::Started { block, kind }, Chunk::Args { block, text }]
            }
        };
        let usage = Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() };
        let end = Chunk::Done(Stop::End);
        chunks.extend([Chunk::Ended { block, opaque: None }, Chunk::Usage(usage), end]);
        // As from a socket: each is there only after the one before was taken in.
        let one_by_one = stream::iter(chunks).then(|chunk| async move {
            tokio::task::yield_now().await;
            chunk
        });
        one_by_one.boxed()
    }
}
