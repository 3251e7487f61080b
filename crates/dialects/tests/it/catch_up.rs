//! A client that leaves and comes back ends with the same text as one that never left.
//!
//! Each check takes all that a session sent in a dialect, and tries every frame to leave after and
//! several moments to come back at.

use std::collections::BTreeMap;

use polyloop_dialects::{Complaint, Cursor, Dialect, Frame, Reply, View, detect};
use polyloop_session::policy::Effect;
use polyloop_session::state::Turn;
use polyloop_session::{Seq, Update, WaitId};
use serde_json::{Value, json as value};

use super::action::sessions;
use super::fixture::scenarios;
use super::make::{answered, begun, entries, judgement, proposed, started, tool, waits};
use super::play::play;
use super::runner::try_all;
use super::speaks::{self, Reader, Seen, cursor_of, placeless};
use super::world::{Moment, Sent, json, sent, session};

const CASES: u32 = 32;

/// All that a session sent in a dialect, and its moments.
struct Told<'a> {
    dialect: &'static dyn Dialect,
    reader: Reader,
    updates: &'a [Update],
    moments: &'a [Moment],
    frames: Vec<Vec<Sent>>,
}

impl Told<'_> {
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

    fn until(&self, update: usize, frame: usize) -> impl Iterator<Item = &Sent> {
        self.frames[..update].iter().flatten().chain(&self.frames[update][..=frame])
    }

    /// The frames after one, up to a moment.
    fn between(&self, update: usize, frame: usize, moment: usize) -> Vec<&Sent> {
        let rest = self.frames[update][frame + 1..].iter();
        rest.chain(self.frames[update + 1..moment].iter().flatten()).collect()
    }

    fn from(&self, moment: usize) -> impl Iterator<Item = &Sent> {
        self.frames[moment..].iter().flatten()
    }

    /// What asks a person at a moment, and which messages wait.
    fn pending(&self, moment: usize) -> Vec<Vec<Value>> {
        let turn = self.moments[moment].state.turn();
        let is_open = |wait: WaitId| turn.is_some_and(|turn| turn.waits.contains_key(&wait));
        let frames = || self.frames[..moment].iter().flatten();
        let mut pending = speaks::pending(self.dialect, frames(), is_open);
        let waiting = speaks::waiting(frames(), &self.moments[moment].state);
        pending.extend(waiting.into_iter().map(|told| vec![told]));
        pending
    }

    fn seen<'f>(&self, frames: impl IntoIterator<Item = &'f Sent>) -> Seen {
        self.reader.seen(frames)
    }

    fn attach(&self, moment: usize, since: Option<&Cursor>) -> Vec<Sent> {
        self.moments[moment].attach(self.dialect, since)
    }
}

/// `others` of a replay must be `due`, then what is pending unless it is among them.
fn owes(due: Vec<Value>, pending: Vec<Vec<Value>>, others: &[Value]) -> Result<(), String> {
    let mut due = due;
    let owed = |asked: &Vec<Value>| asked.last().is_some_and(|request| !due.contains(request));
    let asked: Vec<Value> = pending.into_iter().filter(owed).flatten().collect();
    due.extend(asked);
    ensure!(due == others, "owed\n  {due:?}\n  got\n  {others:?}");
    Ok(())
}

/// By its last `cursor`, or `seq` where there is none: no gap, no duplicate, not in one character.
fn by_cursor(told: &Told) -> Result<(), String> {
    let whole = told.seen(told.frames.iter().flatten());
    for (update, frame, back) in told.leaves() {
        let cursor = cursor_of(&told.frames[update][frame]);
        let replay = told.attach(back, Some(&cursor));
        let place = format!("left at {cursor}, back after update {back}");
        let due = told.seen(told.between(update, frame, back)).others;
        owes(due, told.pending(back), &told.seen(&replay).others)
            .map_err(|told| format!("{place}: {told}"))?;
        let seen = told.seen(told.until(update, frame).chain(&replay).chain(told.from(back)));
        let (want, got) = (&whole.texts, &seen.texts);
        ensure!(want == got, "{place}: the texts are\n  {got:?}, not\n  {want:?}");
    }
    Ok(())
}

/// By a bare `seq`: what came after it, and items that were open then from their start.
fn by_seq(told: &Told) -> Result<(), String> {
    for (update, frame, back) in told.leaves() {
        let seq = told.frames[update][frame]["seq"].as_u64().unwrap_or_default();
        let replay = told.attach(back, Some(&Cursor::at(Seq(seq))));
        let place = format!("left at seq {seq}, back after update {back}");
        let got = told.seen(replay.iter().chain(told.from(back)));
        let mut want = Seen::default();
        for (update, frames) in told.updates.iter().zip(&told.frames) {
            match update {
                Update::Logged(entry) if entry.seq.0 <= seq => {}
                Update::Logged(_) | Update::Grew(_) | Update::Raw(_) => {
                    frames.iter().for_each(|frame| told.reader.take(frame, &mut want));
                }
            }
        }
        // Those that were complete by then are not sent again.
        let log = &told.moments.last().unwrap().log;
        for entry in log.iter().take_while(|entry| entry.seq.0 <= seq) {
            want.texts.retain(|key, _| !speaks::ends(*key, entry));
        }
        ensure!(got.texts == want.texts, "{place}: {:?}, not {:?}", got.texts, want.texts);
        let after = told.seen(told.from(back)).others.len();
        let mut due = want.others;
        due.truncate(due.len() - after);
        owes(due, told.pending(back), &told.seen(&replay).others)
            .map_err(|told| format!("{place}: {told}"))?;
    }
    Ok(())
}

/// Without a place: the opening frame of a running turn, open items from their start, what waits.
fn without_since(told: &Told) -> Result<(), String> {
    for (at, moment) in told.moments.iter().enumerate() {
        let replay = told.attach(at, None);
        let got = told.seen(&replay);
        let turn = moment.state.turn();
        let due: Vec<Value> = turn.map(|turn| opening(told, at, turn)).unwrap_or_default();
        let others: Vec<Value> =
            got.others.iter().map(|other| speaks::known(told.dialect, other)).collect();
        owes(due, told.pending(at), &others)
            .map_err(|told| format!("after update {at}: {told}"))?;
        let shown = told.seen(told.frames[..at].iter().flatten()).texts;
        let ended = |key| moment.log.iter().any(|entry| speaks::ends(key, entry));
        let want: BTreeMap<_, _> = shown.into_iter().filter(|(key, _)| !ended(*key)).collect();
        ensure!(got.texts == want, "after update {at}: {:?}, not {want:?}", got.texts);
    }
    Ok(())
}

/// What clients were sent since a turn began and all who come later are sent too.
fn opening(told: &Told, at: usize, turn: &Turn) -> Vec<Value> {
    let begins = |update: &Update| match update {
        Update::Logged(entry) => entry.seq == turn.id.0,
        Update::Grew(_) | Update::Raw(_) => false,
    };
    let begun = told.updates.iter().position(begins).unwrap();
    let since: Vec<&Sent> = told.frames[begun..at].iter().flatten().collect();
    speaks::opening(told.dialect, &since, turn)
}

/// A client whose connection breaks after every single frame still gets all of them once.
fn frame_by_frame(told: &Told) -> Result<(), String> {
    let all = told.updates.len();
    let (mut cursor, mut read) = (Cursor::default(), Vec::new());
    let pending = told.pending(all).concat();
    let frames_max = told.frames.iter().flatten().count() + 1 + pending.len();
    loop {
        let mut replay = told.attach(all, Some(&cursor));
        let asks: Vec<Value> = replay.iter().map(|frame| placeless(frame)).collect();
        if asks == pending {
            read.append(&mut replay); // It is sent again on every attach, so there is always this.
            break;
        }
        let Some(frame) = replay.into_iter().next() else { break };
        cursor = cursor_of(&frame);
        read.push(frame);
        ensure!(read.len() <= frames_max, "it never ends at {cursor}");
    }
    let (want, got) = (told.seen(told.frames.iter().flatten()), told.seen(&read));
    ensure!(got.texts == want.texts, "the texts are {:?}, not {:?}", got.texts, want.texts);
    // Where other frames came after it, what waits was sent once more.
    let (got, want) = (once(got.others, &pending), once(want.others, &pending));
    ensure!(got == want, "got {got:?}\n  not {want:?}");
    Ok(())
}

/// Without what waits where it stands again.
fn once(others: Vec<Value>, pending: &[Value]) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for other in others {
        if !(pending.contains(&other) && kept.contains(&other)) {
            kept.push(other);
        }
    }
    kept
}

/// Where a dialect counts the events of a run, it counts from 1 without a gap, whenever a client
/// comes.
fn numbered(told: &Told) -> Result<(), String> {
    counts(None, told.frames.iter().flatten())?;
    for (at, moment) in told.moments.iter().enumerate() {
        let replay = moment.attach(told.dialect, None);
        counts(None, &replay).map_err(|told| format!("after update {at}: {told}"))?;
    }
    for (update, frame, back) in told.leaves() {
        let left = &told.frames[update][frame];
        if speaks::number(left).is_none() {
            continue; // It is no event of a run, and its cursor does not count them.
        }
        let replay = told.attach(back, Some(&cursor_of(left)));
        let last = told.until(update, frame).filter_map(|f| speaks::number(f)).last();
        counts(last, &replay).map_err(|told| format!("left at {}: {told}", left.json))?;
    }
    Ok(())
}

fn counts<'f>(
    last: Option<(String, u64)>,
    frames: impl IntoIterator<Item = &'f Sent>,
) -> Result<(), String> {
    let mut last = last;
    for (run, number) in frames.into_iter().filter_map(|frame| speaks::number(frame)) {
        let want = match &last {
            Some((before, number)) if *before == run => number + 1,
            _ => 1,
        };
        ensure!(number == want, "event {number} of {run} comes in the place of {want}");
        last = Some((run, number));
    }
    Ok(())
}

/// A view that is opened late sends what one that was there from the start sends.
fn late_view(told: &Told) -> Result<(), String> {
    let mut view = View::new(told.dialect, &session(), Seq::NONE);
    let all: Vec<Vec<Frame>> = told.updates.iter().map(|update| view.see(update)).collect();
    for (at, moment) in told.moments.iter().enumerate() {
        let mut view = moment.open_view(told.dialect);
        for (update, want) in told.updates[at..].iter().zip(&all[at..]) {
            let got = view.see(update);
            ensure!(got == *want, "opened at {at}, on {update:?}:\n  {got:?}, not\n  {want:?}");
        }
    }
    Ok(())
}

/// An answer to one client is stamped with its place, and from there nothing is missing.
fn by_place(told: &Told) -> Result<(), String> {
    let mut view = View::new(told.dialect, &session(), Seq::NONE);
    for (at, moment) in told.moments.iter().enumerate() {
        let complaint = Complaint::new("Invalid message format", "it is empty", "bad_message");
        let reply = told.dialect.reply(Some(&session()), 1, &Reply::Complaint(complaint));
        let reply = json(&reply.stamped(&view.place()));
        let here =
            reply["session_id"] == "golden" && reply["seq"] == value!(moment.state.last_seq());
        ensure!(here && reply["type"] == "error", "after update {at} an answer is {reply}");
        let (place, cursor) = (cursor_of(&reply), view.cursor());
        ensure!(place == cursor, "after update {at} the place is {place}, the cursor {cursor}");
        let owed = told.seen(&told.attach(at, Some(&cursor)));
        ensure!(owed.texts.is_empty(), "after update {at} texts are owed: {:?}", owed.texts);
        owes(Vec::new(), told.pending(at), &owed.others)
            .map_err(|told| format!("after update {at}: {told}"))?;
        if let Some(update) = told.updates.get(at) {
            let last = view.see(update).pop();
            // A stamp that counts events is finished by the connection.
            let stamp = last.as_ref().filter(|f| f.inserts.is_empty()).and_then(Frame::stamp);
            ensure!(stamp.is_none_or(|stamp| stamp == view.place()), "{last:?} is elsewhere");
        }
    }
    Ok(())
}

fn each(updates: &[Update], check: impl Fn(&Told) -> Result<(), String>) -> Result<(), String> {
    let moments = Moment::all(updates);
    for dialect in speaks::all() {
        let frames = sent(*dialect, updates);
        let reader = Reader::new(*dialect, &moments.last().unwrap().log);
        check(&Told { dialect: *dialect, reader, updates, moments: &moments, frames })
            .map_err(|told| format!("{}: {told}", dialect.name()))?;
    }
    Ok(())
}

fn holds(check: impl Fn(&Told) -> Result<(), String>) {
    for scenario in scenarios() {
        each(&scenario.updates(scenario.steps.len()), &check)
            .unwrap_or_else(|told| panic!("{}: {told}", scenario.name));
    }
    try_all(CASES, sessions(), |(start, actions)| each(&play(&start, &actions), &check));
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
fn events_are_counted_without_a_gap() {
    holds(numbered);
}

#[test]
fn an_answer_says_where_its_client_is() {
    holds(by_place);
}

#[test]
fn a_view_that_opens_late_sends_the_same() {
    holds(late_view);
}

#[test]
fn an_empty_session_owes_nothing() {
    for dialect in speaks::all() {
        assert!(Moment::default().attach(*dialect, None).is_empty());
        assert!(Moment::default().attach(*dialect, Some(&Cursor::at(Seq(9)))).is_empty());
    }
}

/// Whoever attaches is where the log ends, also when there is nothing to catch up with.
#[test]
fn who_attaches_is_at_the_head() {
    for scenario in scenarios() {
        for moment in Moment::all(&scenario.updates(scenario.steps.len())) {
            for dialect in speaks::all() {
                let (place, head) =
                    (moment.open_view(*dialect).view.place(), moment.state.last_seq());
                let place = String::from_utf8_lossy(&place).into_owned();
                let at = |end: &str| place.contains(&format!("\"seq\":{head}{end}"));
                assert!(at("}") || at(","), "{}: {place} at {head}", scenario.name);
            }
        }
    }
}

/// A message that waits is looked up behind what the client was just shown.
#[test]
fn what_was_asked_is_not_asked_again_because_something_is_looked_up() {
    let touches = judgement(Effect::Execute, &["touch", "a"], None);
    let asks = [started(3, tool("bash")), proposed(4, "{}", touches), answered(3), waits(4)];
    let log = entries(begun().into_iter().chain(asks));
    for dialect in detect::ALL {
        let mut view = View::new(*dialect, &session(), Seq::NONE);
        let shown: Vec<Frame> = log.iter().flat_map(|entry| view.see_entry(entry, 0)).collect();
        assert!(!shown.is_empty(), "{}", dialect.name());
        view.recall(&log[0]);
        let again = view.pending();
        assert!(again.is_empty(), "{}: {:?}", dialect.name(), again[0].text);
    }
}
