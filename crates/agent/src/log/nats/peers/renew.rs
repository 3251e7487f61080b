//! Says again and again that this server lives, and puts away the records of those that do not.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::super::super::LogError;
use super::super::publish::Refused;
use super::super::{TRY_EVERY, TRYING_TIME_MAX, failed_to, lock};
use super::Shared;
use super::claim::remove;
use super::view::server_key;

/// How long is tried to say that this server ends.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(3);
const RENEW_EVERY: Duration = Duration::from_millis(500);
/// A renewal whose answer is lost is not waited for until this server has fallen.
const RENEW_TIME_MAX: Duration = Duration::from_secs(1);
/// Renewals that failed, or did not come in, after which the watch is not believed any more.
const RENEWALS_MISSED_MAX: u32 = 10;

/// Gives the number of the record.
async fn renew(shared: &Shared, count: u64) -> Result<u64, LogError> {
    let context = &shared.store.streams.context;
    let subject = shared.key_subject(&server_key(&shared.here));
    let payload = json!({ "renewed": count }).to_string().into();
    let renewed = async {
        let sent = context.publish(subject, payload).await;
        sent.map_err(|error| error.to_string())?.await.map_err(|error| error.to_string())
    };
    let renewed = timeout(RENEW_TIME_MAX, renewed).await;
    let renewed = renewed.unwrap_or_else(|_| Err("NATS does not answer".into()));
    let renewed = renewed.map_err(|why| failed_to("say that this server is there", why))?;
    *lock(&shared.store.heard) = Some(Instant::now());
    Ok(renewed.sequence)
}

/// The first time. A bucket that was just made, by whichever server, may not be known yet to the NATS
/// server that this one is connected to: it is tried for as long as any write.
pub(super) async fn begin(shared: &Shared) -> Result<u64, LogError> {
    let end = Instant::now() + TRYING_TIME_MAX;
    loop {
        match renew(shared, 0).await {
            Err(_) if Instant::now() < end => sleep(TRY_EVERY).await,
            done => return done,
        }
    }
}

pub(super) async fn keep_renewing(shared: Arc<Shared>, mut last: u64) {
    let (mut count, mut missed) = (0, 0);
    loop {
        sleep(RENEW_EVERY).await;
        count += 1;
        match renew(&shared, count).await {
            Ok(revision) => {
                let is_seen = lock(&shared.view).seen() >= last;
                if missed >= RENEWALS_MISSED_MAX {
                    // Keys may have come and gone, or their numbers begun anew.
                    shared.look_again.notify_one();
                    missed = 0;
                } else if is_seen {
                    missed = 0;
                } else {
                    missed += 1;
                }
                last = revision;
            }
            Err(error) => {
                missed += 1;
                tracing::debug!(%error, missed, "other servers may take it for fallen");
            }
        }
        clear(&shared).await;
    }
}

/// Others need not wait to find out. When NATS does not answer, they do.
pub(super) async fn leave(shared: &Shared) {
    let key = server_key(&shared.here);
    let left = async {
        let mut behind = lock(&shared.view).seen();
        // A renewal may still have been on its way.
        while let Err(Refused::Moved { newest }) = shared.purge(&key, behind).await {
            behind = newest.map_or(0, |newest| newest.sequence);
        }
    };
    drop(timeout(LEAVE_TIME_MAX, left).await);
}

/// Those who fell have their records put away.
async fn clear(shared: &Shared) {
    let fallen = lock(&shared.view).to_clear();
    for (server, revision) in fallen {
        // Else with the next renewal.
        drop(timeout(RENEW_EVERY, remove(shared, &server_key(&server), revision)).await);
    }
}
