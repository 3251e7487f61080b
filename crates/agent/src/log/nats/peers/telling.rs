//! What is told of sessions to whoever follows them, on plain NATS: in order, and with gaps where
//! there was no room.

use std::time::Duration;

use async_nats::Client;
use async_nats::connection::State;
use bytes::Bytes;
use futures_util::StreamExt;
use polyloop_session::SessionId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::super::super::LogError;
use super::super::failed;
use super::super::records::key_of;
use super::Shared;
use super::asking::{Asking, KNOCK};

const TOLD: &str = "told";
const TOLD_WAITING_MAX: usize = 4096;
const HEARD_WAITING_MAX: usize = 4096;
/// How long is waited for the session's server to know of a follower.
const KNOCK_TIME_MAX: Duration = Duration::from_secs(2);

pub(super) struct Telling {
    queue: mpsc::Sender<(String, Bytes)>,
}

impl Telling {
    pub fn start(shared: &Shared, tasks: &mut JoinSet<()>) -> Telling {
        let (queue, told) = mpsc::channel(TOLD_WAITING_MAX);
        tasks.spawn(publish(shared.store.streams.client.clone(), told));
        Telling { queue }
    }

    pub fn tell(&self, shared: &Shared, id: &SessionId, told: Bytes) {
        // What has no room is not told.
        drop(self.queue.try_send((shared.subject(TOLD, &key_of(id)), told)));
    }
}

async fn publish(client: Client, mut told: mpsc::Receiver<(String, Bytes)>) {
    while let Some((subject, told)) = told.recv().await {
        if client.connection_state() != State::Connected {
            continue; // It would come late, when it is in the log long since.
        }
        if let Err(error) = client.publish(subject, told).await {
            tracing::debug!(%error, "followers are not told");
        }
    }
}

/// When this returns, what the session's server tells comes in.
pub(super) async fn follow(
    shared: &Shared,
    asking: &Asking,
    id: &SessionId,
) -> Result<mpsc::Receiver<Bytes>, LogError> {
    let client = &shared.store.streams.client;
    let told = client.subscribe(shared.subject(TOLD, &key_of(id))).await;
    let mut told = told.map_err(|error| failed(id, error))?;
    // Whoever answers what was sent behind the subscription has it behind the subscription, also
    // on another NATS server.
    let whom = super::lock(&shared.view).owner(id).unwrap_or(&shared.here).clone();
    let knock = shared.subject(KNOCK, &whom.0);
    drop(asking.ask(knock, Bytes::new(), KNOCK_TIME_MAX).await);
    let (send, receive) = mpsc::channel(HEARD_WAITING_MAX);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                message = told.next() => match message {
                    // What has no room is missing; whoever follows sees that.
                    Some(message) => drop(send.try_send(message.payload)),
                    None => return,
                },
                () = send.closed() => return,
            }
        }
    });
    Ok(receive)
}
