//! What clients are sent, and what providers are asked.

use std::hint::black_box;

use polyloop_agent::model::Request;
use polyloop_agent::model::anthropic::Anthropic;
use polyloop_agent::model::api::Api;
use polyloop_agent::model::completions::Completions;
use polyloop_agent::model::gemini::Gemini;
use polyloop_agent::model::responses::Responses;
use polyloop_agent::model::table::{Family, Table};
use polyloop_agent::tool::{self, ToolList};
use polyloop_dialects::{Dialect, View, detect};
use polyloop_session::{CallId, Growth, ItemId, Seq, SessionId, State, Stream, Update, history};

use crate::meter::Meter;
use crate::story::Story;
use crate::{LIMITS, flat};

const ROUNDS: u64 = 100;
/// So many turns are in a prompt.
const PROMPT_TURNS: u64 = 10;
const GROWN: &str = "of interest ";

pub fn count(meter: &Meter) {
    let id = SessionId::parse("count").unwrap();
    for dialect in detect::ALL {
        growth(meter, *dialect, &id);
        turn(meter, *dialect, &id);
    }
    requests(meter);
}

fn growth(meter: &Meter, dialect: &dyn Dialect, id: &SessionId) {
    let mut story = Story::default();
    let mut view = View::new(dialect, id, Seq::NONE);
    flat(story.begin()).into_iter().for_each(|entry| drop(view.see(&Update::Logged(entry))));
    let (opening, item) = story.open_turn();
    flat(opening).into_iter().for_each(|entry| drop(view.see(&Update::Logged(entry))));
    let text = GROWN.into();
    let mut grew = Growth { item: ItemId(Seq(item)), stream: Stream::Text, offset: 0, text };
    let mut frames = 0;
    meter.count(&format!("encode {} growth", dialect.name()), ROUNDS, |_| {
        let update = Update::Grew(grew.clone());
        frames += black_box(view.see(black_box(&update))).len();
        grew.offset += GROWN.len() as u64;
    });
    // One dialect streams nothing.
    assert!(frames as u64 == Meter::all(ROUNDS) || dialect.name() == "chat");
}

fn turn(meter: &Meter, dialect: &dyn Dialect, id: &SessionId) {
    let mut story = Story::default();
    let mut view = View::new(dialect, id, Seq::NONE);
    flat(story.begin()).into_iter().for_each(|entry| drop(view.see(&Update::Logged(entry))));
    let turns: Vec<Vec<Update>> = (0..Meter::all(ROUNDS))
        .map(|_| flat(story.turn()).into_iter().map(Update::Logged).collect())
        .collect();
    meter.count(&format!("encode {} turn", dialect.name()), ROUNDS, |round| {
        for update in &turns[round as usize] {
            black_box(view.see(update));
        }
    });
}

fn requests(meter: &Meter) {
    let (mut state, mut story) = (State::default(), Story::default());
    flat(story.begin()).iter().for_each(|entry| state.apply(entry));
    for _ in 0..PROMPT_TURNS {
        flat(story.turn()).iter().for_each(|entry| state.apply(entry));
    }
    let (opening, item) = story.open_turn();
    flat(opening).iter().for_each(|entry| state.apply(entry));
    // The call stands right before its item.
    let call = CallId(Seq(item - 1));
    meter.count("fold prompt", ROUNDS, |_| {
        black_box(history::prompt(&state, call, &LIMITS)).unwrap();
    });
    let apis: [(Box<dyn Api>, Family); 4] = [
        (Box::new(Completions::new("OpenAI")), Family::OpenAi),
        (Box::new(Responses::new("OpenAI")), Family::OpenAi),
        (Box::new(Anthropic), Family::Anthropic),
        (Box::new(Gemini), Family::Google),
    ];
    let tools: ToolList = tool::ALL.iter().map(|tool| tool.spec()).collect();
    let table = Table::built_in();
    for (api, family) in apis {
        let prompt = history::prompt(&state, call, &LIMITS).unwrap();
        let instructions = "You are a careful agent.".into();
        let request = Request { prompt, instructions, tools: tools.clone() };
        let card = table.card("count", family);
        meter.count(&format!("encode {} request", api.name()), 20, |_| {
            black_box(api.encode(black_box(&request), "count", &card));
        });
    }
}
