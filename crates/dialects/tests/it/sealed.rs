//! What only a provider may read: it stays in the log, byte for byte, and no client is shown it.

use std::cell::Cell;
use std::collections::BTreeMap;

use polyloop_dialects::agentloop::file::{FileEncoder, Line, read_line};
use polyloop_session::item::ItemKind;
use polyloop_session::{Event, ItemId, LogEntry, Update};
use serde_json::Value;

use super::action::sessions;
use super::fixture::scenarios;
use super::play::{SEALED, play};
use super::runner::try_all;
use super::speaks;
use super::world::{Moment, sent, session};

const CASES: u32 = 128;

/// The completions of texts and reasoning without a character, by their place among the updates.
fn silent(updates: &[Update]) -> Vec<(usize, LogEntry)> {
    let mut kinds: BTreeMap<ItemId, ItemKind> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, update) in updates.iter().enumerate() {
        let Update::Logged(entry) = update else { continue };
        match &entry.event {
            Event::ItemStarted { item, .. } => {
                kinds.insert(ItemId(entry.seq), item.clone());
            }
            Event::ItemCompleted { item, text, .. } if text.is_empty() => {
                let speaks = matches!(kinds.get(item), Some(ItemKind::Text | ItemKind::Reasoning));
                found.extend(speaks.then(|| (at, (**entry).clone())));
            }
            _ => {}
        }
    }
    found
}

/// How many silent items had something for their provider.
fn holds(updates: &[Update]) -> Result<u64, String> {
    let silent = silent(updates);
    for dialect in speaks::all() {
        let frames = sent(*dialect, updates);
        for (at, entry) in &silent {
            let shown = &frames[*at];
            ensure!(shown.is_empty(), "{} shows {shown:?} for {entry:?}", dialect.name());
        }
        let told = frames.iter().flatten().find(|frame| frame.text.contains(SEALED));
        ensure!(told.is_none(), "{} shows {told:?}", dialect.name());
    }
    let (mut file, mut kept) = (FileEncoder::new(&session()), 0);
    for entry in &Moment::after(updates).log {
        let lines = file.lines(entry).lines;
        for line in &lines {
            let line: Value = serde_json::from_str(line).unwrap();
            let told = line["message_data"].to_string();
            ensure!(!told.contains(SEALED), "the file tells {told}");
        }
        let Some((_, completed)) = silent.iter().find(|(_, other)| other.seq == entry.seq) else {
            continue;
        };
        let [line] = &lines[..] else { return Err(format!("{entry:?} is written as {lines:?}")) };
        let no_message = line.contains(r#""event_type":"session_event""#)
            && line.contains(r#""message_data":null"#);
        ensure!(no_message, "{entry:?} is written as {line}");
        let read = read_line(line, &|_| None);
        ensure!(read == Line::Entry(completed.clone()), "{line} is read as {read:?}");
        let sealed = matches!(&entry.event, Event::ItemCompleted { opaque: Some(_), .. });
        kept += u64::from(sealed);
    }
    Ok(kept)
}

#[test]
fn what_only_its_provider_may_read_is_kept_and_never_shown() {
    for scenario in scenarios() {
        let told = holds(&scenario.updates(scenario.steps.len()));
        told.unwrap_or_else(|told| panic!("{}: {told}", scenario.name));
    }
    let met = Cell::new(0);
    try_all(CASES, sessions(), |(start, actions)| {
        met.set(met.get() + holds(&play(&start, &actions))?);
        Ok(())
    });
    let met = met.into_inner();
    assert!(met >= 5, "only {met} silent items had something for their provider");
}
