//! A client that leaves and comes back ends with the same text as one that never left.
//!
//! Each check takes all that a session sent, and tries every frame to leave after and several
//! moments to come back at.

use std::collections::BTreeMap;

use polyloop_dialects::agentloop::Agentloop;
use polyloop_dialects::{Complaint, Cursor, Dialect, Frame, Reply, View};
use polyloop_session::{Event, ItemId, Seq, Update};
use serde_json::{Value, json as value};

use super::action::sessions;
use super::fixture::scenarios;
use super::play::play;
use super::runner::try_all;
use super::world::{Moment, json, sent, session};

const CASES: u32 = 200;

/// What a client has made of the frames it was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The text of each streamed message, put together as the protocol's documents show.
    pub texts: BTreeMap<String, String>,
    /// All other messages, in order.
    pub others: Vec<Value>,
}

impl Seen {
    pub fn of<'a>(frames: impl IntoIterator<Item = &'a Value>) -> Seen {
        let mut seen = Seen::default();
        frames.into_iter().for_each(|frame| seen.take(frame));
        seen
    }

    fn take(&mut self, frame: &Value) {
        match text_of(frame) {
            Some((id, text)) => self.texts.entry(id.to_string()).or_default().push_str(text),
            None => self.others.push(placeless(frame)),
        }
    }
}

/// The item and the characters of a streamed message.
pub fn text_of(frame: &Value) -> Option<(&str, &str)> {
    let payload = &frame["payload"];
    if frame["type"] != "response_item" || payload["role"] != "assistant" {
        return None;
    }
    Some((payload["id"].as_str()?, payload["content"][0]["text"].as_str()?))
}

/// A message without its place, which differs when it is sent again.
pub fn placeless(frame: &Value) -> Value {
    let mut frame = frame.clone();
    if let Some(fields) = frame.as_object_mut() {
        fields.remove("seq");
        fields.remove("cursor");
    }
    frame
}

/// All that a session sent, and its moments.
struct Told {
    updates: Vec<Update>,
    frames: Vec<Vec<Value>>,
    moments: Vec<Moment>,
}

impl Told {
    fn new(updates: Vec<Update>) -> Told {
        let (frames, moments) = (sent(&updates), Moment::all(&updates));
        Told { updates, frames, moments }
    }

    /// Every frame with its update, and a few later moments to come back at.
    fn leaves(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let all = self.updates.len();
        let cuts = self.frames.iter().enumerate();
        cuts.flat_map(move |(update, frames)| {
            let mut back = vec![update + 1, (update + 2).min(all), (update + 1 + all) / 2, all];
            back.dedup();
            (0..frames.len())
                .flat_map(move |frame| back.clone().into_iter().map(move |b| (update, frame, b)))
        })
    }

    fn until(&self, update: usize, frame: usize) -> impl Iterator<Item = &Value> {
        self.frames[..update].iter().flatten().chain(&self.frames[update][..=frame])
    }

    /// The frames after one, up to a moment.
    fn between(&self, update: usize, frame: usize, moment: usize) -> Vec<&Value> {
        let rest = self.frames[update][frame + 1..].iter();
        rest.chain(self.frames[update + 1..moment].iter().flatten()).collect()
    }

    fn from(&self, moment: usize) -> impl Iterator<Item = &Value> {
        self.frames[moment..].iter().flatten()
    }

    /// The request that is presented at a moment: the last that was sent, while anything waits.
    fn pending(&self, moment: usize) -> Option<Value> {
        let mut sent = self.frames[..moment].iter().flatten();
        let last = sent.rfind(|frame| frame["type"] == "approval_request");
        last.filter(|_| self.moments[moment].is_waiting()).map(placeless)
    }
}

/// `others` of a replay must be `due`, then what is pending unless it is among them.
fn owes(due: Vec<Value>, pending: Option<Value>, others: &[Value]) -> Result<(), String> {
    let mut due = due;
    if let Some(request) = pending
        && !due.contains(&request)
    {
        due.push(request);
    }
    ensure!(due == others, "owed\n  {due:?}\n  got\n  {others:?}");
    Ok(())
}

fn cursor_of(frame: &Value) -> Cursor {
    let text = frame["cursor"].as_str().map(str::to_string);
    let text = text.unwrap_or_else(|| frame["seq"].to_string());
    Cursor::parse(&text).expect("the server wrote it")
}

/// By its last `cursor`, or `seq` where there is none: no gap, no duplicate, not in one character.
fn by_cursor(told: &Told) -> Result<(), String> {
    let whole = Seen::of(told.frames.iter().flatten());
    for (update, frame, back) in told.leaves() {
        let cursor = cursor_of(&told.frames[update][frame]);
        let replay = told.moments[back].attach(Some(&cursor));
        let place = format!("left at {cursor}, back after update {back}");
        let due = Seen::of(told.between(update, frame, back)).others;
        owes(due, told.pending(back), &Seen::of(&replay).others)
            .map_err(|told| format!("{place}: {told}"))?;
        let seen = Seen::of(told.until(update, frame).chain(&replay).chain(told.from(back)));
        let (want, got) = (&whole.texts, &seen.texts);
        ensure!(want == got, "{place}: the texts are\n  {got:?}, not\n  {want:?}");
    }
    Ok(())
}

/// By a bare `seq`: what came after it, and items that were open then from their start.
fn by_seq(told: &Told) -> Result<(), String> {
    for (update, frame, back) in told.leaves() {
        let seq = told.frames[update][frame]["seq"].as_u64().unwrap_or_default();
        let replay = told.moments[back].attach(Some(&Cursor::at(Seq(seq))));
        let place = format!("left at seq {seq}, back after update {back}");
        let got = Seen::of(replay.iter().chain(told.from(back)));
        let mut want = Seen::default();
        for (update, frames) in told.updates.iter().zip(&told.frames) {
            match update {
                Update::Logged(entry) if entry.seq.0 > seq => {
                    frames.iter().for_each(|frame| want.take(frame));
                }
                Update::Logged(_) => {}
                Update::Grew(_) => frames.iter().for_each(|frame| want.take(frame)),
            }
        }
        // Those that were complete by then are not sent again.
        for ended in completed_by(&told.moments[told.updates.len()], Seq(seq)) {
            want.texts.remove(&format!("msg_{ended}"));
        }
        ensure!(got.texts == want.texts, "{place}: {:?}, not {:?}", got.texts, want.texts);
        let after: Vec<Value> =
            told.from(back).filter(|f| text_of(f).is_none()).map(placeless).collect();
        let mut due = want.others;
        due.truncate(due.len() - after.len());
        owes(due, told.pending(back), &Seen::of(&replay).others)
            .map_err(|told| format!("{place}: {told}"))?;
    }
    Ok(())
}

fn completed_by(moment: &Moment, seq: Seq) -> impl Iterator<Item = ItemId> + '_ {
    let passed = moment.log.iter().take_while(move |entry| entry.seq <= seq);
    passed.filter_map(|entry| match &entry.event {
        Event::ItemCompleted { item, .. } => Some(*item),
        _ => None,
    })
}

/// Without a place: the opening frame of a running turn, open items from their start, what waits.
fn without_since(told: &Told) -> Result<(), String> {
    for (at, moment) in told.moments.iter().enumerate() {
        let replay = moment.attach(None);
        let got = Seen::of(&replay);
        let mut due: Vec<Value> = Vec::new();
        if moment.state.turn().is_some() {
            let mut sent = told.frames[..at].iter().flatten();
            due.extend(sent.rfind(|f| f["payload"]["loading"] == true).map(placeless));
            ensure!(due.len() == 1, "after update {at} a turn runs that never began");
        }
        owes(due, told.pending(at), &got.others)
            .map_err(|told| format!("after update {at}: {told}"))?;
        let shown = Seen::of(told.frames[..at].iter().flatten()).texts;
        let open = |id: &str| {
            let item =
                id.strip_prefix("msg_").and_then(|id| id.parse().ok()).map(|id| ItemId(Seq(id)));
            let turn = moment.state.turn();
            turn.zip(item).is_some_and(|(turn, item)| turn.items.contains_key(&item))
        };
        let want: BTreeMap<_, _> = shown.into_iter().filter(|(id, _)| open(id)).collect();
        ensure!(got.texts == want, "after update {at}: {:?}, not {want:?}", got.texts);
    }
    Ok(())
}

/// A client whose connection breaks after every single frame still gets all of them once.
fn frame_by_frame(told: &Told) -> Result<(), String> {
    let (moment, all) = (told.moments.last().unwrap(), told.updates.len());
    let (mut cursor, mut read) = (Cursor::default(), Vec::new());
    let frames_max = told.frames.iter().flatten().count() + 1;
    loop {
        let mut replay = moment.attach(Some(&cursor)).into_iter();
        let Some(frame) = replay.next() else { break };
        let last = replay.next().is_none();
        cursor = cursor_of(&frame);
        read.push(frame);
        ensure!(read.len() <= frames_max, "it never ends at {cursor}");
        if last && Some(placeless(read.last().unwrap())) == told.pending(all) {
            break; // It is sent again on every attach, so there is always this one.
        }
    }
    let (want, got) = (Seen::of(told.frames.iter().flatten()), Seen::of(&read));
    let mut due = want.others;
    if let Some(request) = told.pending(all) {
        let last = read.last().map(placeless);
        ensure!(last.as_ref() == Some(&request), "it ends with {last:?}, not with what is pending");
        // Where other frames came after it, it was sent once more.
        if got.others.len() > due.len() {
            due.push(request);
        }
    }
    ensure!(got.texts == want.texts, "the texts are {:?}, not {:?}", got.texts, want.texts);
    ensure!(got.others == due, "got {:?}\n  not {due:?}", got.others);
    Ok(())
}

/// A view that is opened late sends what one that was there from the start sends.
fn late_view(told: &Told) -> Result<(), String> {
    for (at, moment) in told.moments.iter().enumerate() {
        let mut view = moment.open_view();
        for (update, want) in told.updates[at..].iter().zip(&told.frames[at..]) {
            let got: Vec<Value> = view.see(update).iter().map(json).collect();
            ensure!(got == *want, "opened at {at}, on {update:?}:\n  {got:?}, not\n  {want:?}");
        }
    }
    Ok(())
}

/// An answer to one client is stamped with its place, and from there nothing is missing.
fn by_place(told: &Told) -> Result<(), String> {
    let mut view = View::new(&Agentloop, &session(), polyloop_session::Seq::NONE);
    for (at, moment) in told.moments.iter().enumerate() {
        let complaint = Complaint::new("Invalid message format", "it is empty", "bad_message");
        let reply = Agentloop.reply(Some(&session()), 1, &Reply::Complaint(complaint));
        let reply = json(&reply.stamped(&view.place()));
        let here =
            reply["session_id"] == "golden" && reply["seq"] == value!(moment.state.last_seq());
        ensure!(here && reply["type"] == "error", "after update {at} an answer is {reply}");
        let (place, cursor) = (cursor_of(&reply), view.cursor());
        ensure!(place == cursor, "after update {at} the place is {place}, the cursor {cursor}");
        let owed = Seen::of(&moment.attach(Some(&cursor)));
        ensure!(owed.texts.is_empty(), "after update {at} texts are owed: {:?}", owed.texts);
        owes(Vec::new(), told.pending(at), &owed.others)?;
        if let Some(update) = told.updates.get(at) {
            let last = view.see(update).pop();
            let stamp = last.as_ref().and_then(Frame::stamp);
            ensure!(stamp.is_none_or(|stamp| stamp == view.place()), "{last:?} is elsewhere");
        }
    }
    Ok(())
}

fn holds(check: impl Fn(&Told) -> Result<(), String>) {
    for scenario in scenarios() {
        let told = Told::new(scenario.updates(scenario.steps.len()));
        check(&told).unwrap_or_else(|told| panic!("{}: {told}", scenario.name));
    }
    try_all(CASES, sessions(), |(start, actions)| check(&Told::new(play(&start, &actions))));
}

#[test]
fn from_a_cursor_it_goes_on_at_the_very_character() {
    holds(by_cursor);
}

#[test]
fn from_a_seq_open_items_are_sent_from_their_start() {
    holds(by_seq);
}

#[test]
fn without_a_place_it_gets_what_is_open() {
    holds(without_since);
}

#[test]
fn one_frame_a_connection_is_enough() {
    holds(frame_by_frame);
}

#[test]
fn an_answer_says_where_its_client_is() {
    holds(by_place);
}

#[test]
fn a_view_that_opens_late_sends_the_same() {
    holds(late_view);
}

/// The properties above would hold for a dialect that sends nothing.
#[test]
fn random_sessions_are_worth_watching() {
    let met = std::cell::RefCell::new(BTreeMap::<String, usize>::new());
    try_all(CASES, sessions(), |(start, actions)| {
        let (updates, mut met) = (play(&start, &actions), met.borrow_mut());
        for frame in sent(&updates).concat() {
            let kind = frame["payload"]["type"].as_str().or(frame["type"].as_str());
            *met.entry(kind.unwrap_or("?").to_string()).or_default() += 1;
            if frame["cursor"].as_str().is_some_and(|c| c.contains('~')) {
                *met.entry("inside an item".into()).or_default() += 1;
            }
            if frame["cursor"].as_str().is_some_and(|c| c.contains(',')) {
                *met.entry("inside two items".into()).or_default() += 1;
            }
        }
        let waits = Moment::all(&updates).iter().any(Moment::is_waiting);
        *met.entry("waits".into()).or_default() += usize::from(waits);
        Ok(())
    });
    let met = met.into_inner();
    for kind in [
        "message",
        "function_call",
        "function_call_output",
        "reasoning",
        "approval_request",
        "loading_state",
        "agent_finished",
        "error",
        "context_compacted",
        "context_info",
        "inside an item",
        "inside two items",
        "waits",
    ] {
        assert!(met.get(kind).is_some_and(|times| *times >= 5), "{kind} is too rare in {met:?}");
    }
}

#[test]
fn an_empty_session_owes_nothing() {
    assert!(Moment::default().attach(None).is_empty());
    assert!(Moment::default().attach(Some(&Cursor::at(Seq(9)))).is_empty());
}

/// Whoever attaches is where the log ends, also when there is nothing to catch up with.
#[test]
fn who_attaches_is_at_the_head() {
    for scenario in scenarios() {
        for moment in Moment::all(&scenario.updates(scenario.steps.len())) {
            let (place, head) = (moment.open_view().place(), moment.state.last_seq());
            let place = String::from_utf8_lossy(&place).into_owned();
            let at = |end: &str| place.contains(&format!("\"seq\":{head}{end}"));
            assert!(at("}") || at(","), "{}: {place} at {head}", scenario.name);
        }
    }
}
