//! The list of sessions: one record each, which makes it a session, and what a list shows of it.
//!
//! A record may be behind its log, never ahead: it says which message it has summed up. It is read
//! from the leader, and changed only by whoever has read what it replaces.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use async_nats::jetstream::kv::{CreateErrorKind, UpdateErrorKind};
use polyloop_session::{SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::super::{LogError, Named, Spent, Standing, Summary};
use super::direct::PAGE_MESSAGES_MAX;
use super::{Store, TRY_EVERY, failed, lock};

pub(super) const OPERATION: &str = "KV-Operation";
const SUBJECT: &str = "Nats-Subject";
const SESSION: &str = "session";
const ARCHIVED: &str = "archived";
/// How often a record is written that another process writes at the same time.
const TRIES_MAX: u32 = 5;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub id: SessionId,
    /// What its subjects and objects are named by; no other session ever has the same.
    pub birth: String,
    /// Births of the sessions it is a copy of, the nearest first: their kept contents are its own.
    #[serde(default)]
    pub copied_from: Vec<String>,
    /// The number of the last message that is summed up here.
    #[serde(default)]
    pub upto: u64,
    /// Of kept contents, as far as that is known.
    #[serde(default)]
    pub kept_bytes: u64,
    pub start: Timestamp,
    pub last: Timestamp,
    pub lines: u64,
    #[serde(default)]
    pub named: Named,
    #[serde(default)]
    pub spent: Spent,
    #[serde(default)]
    pub standing: Standing,
}

impl Record {
    pub fn new(id: &SessionId) -> Record {
        let birth = format!("{}.{}", key_of(id), uuid::Uuid::new_v4().simple());
        let (start, last, named, spent, standing) = Default::default();
        Record {
            id: id.clone(),
            birth,
            copied_from: Vec::new(),
            upto: 0,
            kept_bytes: 0,
            start,
            last,
            lines: 0,
            named,
            spent,
            standing,
        }
    }

    pub fn summary(&self) -> Summary {
        Summary {
            id: self.id.clone(),
            start: self.start,
            last: self.last,
            lines: self.lines,
            named: self.named.clone(),
            spent: self.spent,
            standing: self.standing.clone(),
        }
    }

    pub fn sum_up(&mut self, summary: &Summary, upto: u64) {
        let Summary { id: _, start, last, lines, named, spent, standing } = summary.clone();
        (self.start, self.last, self.lines, self.upto) = (start, last, lines, upto);
        (self.named, self.spent, self.standing) = (named, spent, standing);
    }
}

/// An id as a part of a key or a subject, where a dot parts one from the next.
pub(super) fn key_of(id: &SessionId) -> String {
    id.as_str().replace('.', "=")
}

pub(super) fn id_of(key: &str) -> Option<SessionId> {
    SessionId::parse(&key.replace('=', ".")).ok()
}

fn session_key(id: &SessionId) -> String {
    format!("{SESSION}.{}", key_of(id))
}

impl Store {
    /// A session's record, with the number that it is replaced by.
    pub(super) async fn record(&self, id: &SessionId) -> Result<Option<(Record, u64)>, LogError> {
        let bucket = &self.streams.records;
        let subject = format!("{}{}", bucket.prefix, session_key(id));
        let Some(found) = self.streams.newest(&bucket.stream, &subject).await? else {
            return Ok(None);
        };
        if found.headers.get(OPERATION).is_some() {
            return Ok(None); // It was deleted.
        }
        let record = serde_json::from_slice(&found.payload);
        let record: Record = record.map_err(|error| failed(id, format!("its record: {error}")))?;
        Ok(Some((record, found.sequence)))
    }

    /// False when there is one already.
    pub(super) async fn create_record(&self, record: &Record) -> Result<bool, LogError> {
        let id = &record.id;
        match self.streams.records.create(session_key(id), json(record)?).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(failed(id, error)),
        }
    }

    /// Writes what is newer than what stands there. Someone else's record is left alone.
    pub(super) async fn write_record(&self, record: &Record) -> Result<(), LogError> {
        for _ in 0..TRIES_MAX {
            let Some((found, revision)) = self.record(&record.id).await? else { return Ok(()) };
            if found.birth != record.birth || found.upto >= record.upto {
                return Ok(());
            }
            let key = session_key(&record.id);
            match self.streams.records.update(key, json(record)?, revision).await {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => {}
                Err(error) => return Err(failed(&record.id, error)),
            }
        }
        Ok(())
    }

    pub(super) async fn list(&self) -> Result<Vec<Summary>, LogError> {
        let bucket = &self.streams.records;
        let subject = format!("{}{SESSION}.>", bucket.prefix);
        let (mut found, mut from) = (HashMap::new(), 1);
        loop {
            // Each key has one message, its newest; one that is replaced meanwhile comes again.
            let page =
                self.streams.messages(&bucket.stream_name, &subject, from, PAGE_MESSAGES_MAX);
            let page = page.await?;
            let Some(last) = page.last() else { break };
            from = last.sequence + 1;
            for message in page {
                let key = message.headers.get(SUBJECT).map(|key| key.as_str().to_owned());
                if message.headers.get(OPERATION).is_some() {
                    found.remove(&key);
                    continue;
                }
                match serde_json::from_slice::<Record>(&message.payload) {
                    Ok(record) => drop(found.insert(key, record.summary())),
                    // One that cannot be read does not hide the others.
                    Err(error) => tracing::warn!(%error, "a session cannot be listed"),
                }
            }
        }
        let mut all: Vec<Summary> = found.into_values().collect();
        let leased = lock(&self.leased);
        for summary in &mut all {
            if let Some(leased) = leased.get(&summary.id) {
                *summary = leased.summary.clone();
            }
        }
        // What has no line yet is about to be made.
        all.retain(|summary| summary.lines > 0);
        Ok(all)
    }

    pub(super) async fn archive(&self, id: &SessionId, at: Timestamp) -> Result<bool, LogError> {
        let Some((record, revision)) = self.record(id).await? else { return Ok(false) };
        // Whoever may still have it open cannot write any more.
        self.fence(&record, id).await?;
        let away = format!("{ARCHIVED}.{}.{}", record.birth, at.0);
        let bucket = &self.streams.records;
        bucket.put(away, json(&record)?).await.map_err(|error| failed(id, error))?;
        let deleted = bucket.delete_expect_revision(session_key(id), Some(revision)).await;
        deleted.map_err(|error| failed(id, error))?;
        self.due.remove(id);
        Ok(true)
    }
}

fn json(record: &Record) -> Result<bytes::Bytes, LogError> {
    let text = serde_json::to_vec(record).map_err(|error| failed(&record.id, error))?;
    Ok(text.into())
}

/// Records that are to be written, the newest of each session.
#[derive(Default)]
pub(super) struct Due {
    records: Mutex<HashMap<SessionId, Record>>,
    changed: Notify,
}

impl Due {
    pub fn add(&self, record: Record) {
        lock(&self.records).insert(record.id.clone(), record);
        self.changed.notify_one();
    }

    /// Unless a newer one came in the meantime.
    fn put_back(&self, record: Record) {
        lock(&self.records).entry(record.id.clone()).or_insert(record);
    }

    fn remove(&self, id: &SessionId) {
        lock(&self.records).remove(id);
    }

    fn next(&self) -> Option<Record> {
        let mut records = lock(&self.records);
        let id = records.keys().next().cloned()?;
        records.remove(&id)
    }

    /// The store is gone.
    pub fn end(&self) {
        self.changed.notify_one();
    }
}

/// Writes records while the store is there. One that cannot be written is tried again; nothing
/// depends on it but what other servers' lists show.
pub(super) async fn write_when_due(due: Arc<Due>, store: Weak<Store>) {
    loop {
        let Some(record) = due.next() else {
            if store.strong_count() == 0 {
                return;
            }
            due.changed.notified().await;
            continue;
        };
        let Some(store) = store.upgrade() else { return };
        if let Err(error) = store.write_record(&record).await {
            tracing::warn!(session = %record.id, %error, "its record is behind");
            due.put_back(record);
            sleep(TRY_EVERY).await;
        }
    }
}
