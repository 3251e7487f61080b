//! Takes sessions for this server, and lets them go: each a message behind the one that was read.

use std::sync::Arc;

use async_nats::header::{HeaderMap, NATS_MESSAGE_TTL};
use bytes::Bytes;
use polyloop_session::SessionId;
use tokio::time::sleep;

use super::super::super::LogError;
use super::super::direct::Stored;
use super::super::message::Marks;
use super::super::open::roll_up;
use super::super::publish::{Publish, Refused};
use super::super::records::OPERATION;
use super::super::{TRY_EVERY, failed, lock};
use super::Shared;
use super::view::{Owner, session_key};
use crate::peers::{Before, Claim, Lease, ServerId};

/// How often a session is tried for that others claim at the same time.
const TRIES_MAX: u32 = 100;
const PURGE: &str = "PURGE";
/// How long NATS remembers that a key is gone. Who watches has heard of it long before.
const GONE_SECS: &str = "3600";

/// What stands behind a session's key.
enum Held {
    /// May be replaced by whoever replaces this number.
    Free {
        revision: u64,
        before: Before,
    },
    By(ServerId),
}

/// There is no record, as far as is known.
const NOBODYS: Held = Held::Free { revision: 0, before: Before::Nobodys };

pub(super) async fn claim(shared: &Arc<Shared>, id: &SessionId) -> Result<Claim, LogError> {
    let key = session_key(id);
    let subject = shared.key_subject(&key);
    let stream = &shared.bucket.stream;
    let is_known = lock(&shared.view).owner(id).is_some();
    let mut held = match is_known {
        false => NOBODYS,
        true => shared.held(id, shared.store.streams.newest(stream, &subject).await?.as_ref())?,
    };
    for _ in 0..TRIES_MAX {
        let (behind, before) = match held {
            Held::By(server) => return Ok(Claim::Theirs(server)),
            Held::Free { revision, before } => (revision, before),
        };
        let owner = Owner { server: shared.here.0.to_string() };
        let owner = serde_json::to_vec(&owner).map_err(|error| failed(id, error))?;
        match shared.put(&key, HeaderMap::new(), owner.into(), behind).await {
            Ok(revision) => {
                lock(&shared.view).claimed(id, revision);
                return Ok(Claim::Ours(lease(shared, key, revision, before)));
            }
            Err(Refused::Moved { newest }) => held = shared.held(id, newest.as_deref())?,
            Err(Refused::Failed { why }) => return Err(failed(id, why)),
        }
    }
    Err(failed(id, "others do not stop claiming it"))
}

fn lease(shared: &Arc<Shared>, key: String, revision: u64, before: Before) -> Lease {
    let shared = shared.clone();
    let let_go = async move {
        let Err(why) = remove(&shared, &key, revision).await else { return };
        tracing::warn!(key, why, "a session stays this server's for now");
        let shared = Arc::downgrade(&shared);
        tokio::spawn(async move {
            // As long as this server lives, nobody else would have it.
            while let Some(shared) = shared.upgrade() {
                if remove(&shared, &key, revision).await.is_ok() {
                    return;
                }
                sleep(TRY_EVERY).await;
            }
        });
    };
    Lease::new(before, Box::pin(let_go))
}

/// A key is gone when this returns, or has another value, which is left alone.
pub(super) async fn remove(shared: &Shared, key: &str, revision: u64) -> Result<(), String> {
    match shared.purge(key, revision).await {
        Ok(_) | Err(Refused::Moved { .. }) => Ok(()),
        Err(Refused::Failed { why }) => Err(why),
    }
}

impl Shared {
    pub(super) async fn purge(&self, key: &str, behind: u64) -> Result<u64, Refused> {
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, PURGE);
        headers.insert(NATS_MESSAGE_TTL, GONE_SECS);
        roll_up(&mut headers);
        self.put(key, headers, Bytes::new(), behind).await
    }

    async fn put(
        &self,
        key: &str,
        more: HeaderMap,
        payload: Bytes,
        behind: u64,
    ) -> Result<u64, Refused> {
        let by = uuid::Uuid::new_v4().simple().to_string();
        let mut headers = Marks { by: by.clone(), ..Marks::default() }.headers();
        for (name, values) in more.iter() {
            values.iter().for_each(|value| headers.insert(name.clone(), value.clone()));
        }
        let is_ours = |newest: &Stored| Marks::read(&newest.headers).is_some_and(|m| m.by == by);
        let (stream, subject) = (&self.bucket.stream, &self.key_subject(key));
        let put = Publish { stream, subject, headers, payload, behind };
        self.store.streams.publish(&put, is_ours).await
    }

    fn held(&self, id: &SessionId, newest: Option<&Stored>) -> Result<Held, LogError> {
        let Some(newest) = newest else { return Ok(NOBODYS) };
        let free = |before| Held::Free { revision: newest.sequence, before };
        if newest.headers.get(OPERATION).is_some() {
            return Ok(free(Before::Nobodys)); // It was let go.
        }
        let owner: Result<Owner, _> = serde_json::from_slice(&newest.payload);
        let owner = owner.map_err(|error| failed(id, format!("its owner: {error}")))?;
        let server = ServerId(owner.server.into());
        if server == self.here {
            return Ok(free(Before::Nobodys)); // It could not be let go.
        }
        let has_fallen = lock(&self.view).has_fallen(&server);
        Ok(if has_fallen { free(Before::Fallen) } else { Held::By(server) })
    }
}
