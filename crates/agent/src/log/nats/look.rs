//! Looks at the NATS servers of a store as a start would find them.
//!
//! Makes and changes nothing there. How often NATS flushes what it acknowledges cannot be seen
//! from outside.

use async_nats::Client;
use async_nats::jetstream::context::{Context, GetStreamErrorKind};
use async_nats::jetstream::{self, ErrorCode};

use super::streams::{self, Place};
use super::{ANSWER_TIME_MAX, login};

/// What one server of a place said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    Answers {
        version: String,
        /// Why a store cannot stand there.
        unfit: Option<String>,
    },
    Silent {
        why: String,
    },
}

/// What was seen of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// In the order of the place.
    pub servers: Vec<Look>,
    /// Each with how often it is kept, as far as it is there; in the words of a server that answers.
    pub streams: Result<Vec<(String, Option<usize>)>, String>,
    /// How often a start would keep those that are not there.
    pub replicas_wanted: usize,
}

pub async fn look(place: &Place) -> Looked {
    let (mut servers, mut usable) = (Vec::new(), None);
    for server in &place.servers {
        match asked(place, server).await {
            Ok((client, version, unfit)) => {
                if unfit.is_none() {
                    usable.get_or_insert(client);
                }
                servers.push(Look::Answers { version, unfit });
            }
            Err(why) => servers.push(Look::Silent { why }),
        }
    }
    let streams = match usable {
        Some(client) => streams_of(&client, &place.name).await,
        None => Err("no server could be asked".to_owned()),
    };
    Looked { servers, streams, replicas_wanted: place.replicas() }
}

async fn asked(place: &Place, server: &str) -> Result<(Client, String, Option<String>), String> {
    let options = login::options(place)
        .name("polyloop doctor")
        .request_timeout(Some(ANSWER_TIME_MAX))
        .connection_timeout(ANSWER_TIME_MAX)
        .ignore_discovered_servers();
    let client = options.connect(server).await.map_err(|error| error.to_string())?;
    let version = client.server_info().version;
    let unfit = match streams::too_old(&client) {
        Some(why) => Some(why),
        None => without_streams(&client).await,
    };
    Ok((client, version, unfit))
}

async fn without_streams(client: &Client) -> Option<String> {
    let asked = context(client).query_account().await;
    asked.err().map(|error| format!("it has no JetStream to offer ({error})"))
}

fn context(client: &Client) -> Context {
    let mut context = jetstream::new(client.clone());
    context.set_timeout(ANSWER_TIME_MAX);
    context
}

async fn streams_of(client: &Client, name: &str) -> Result<Vec<(String, Option<usize>)>, String> {
    let context = context(client);
    let mut found = Vec::new();
    for stream in streams::names(name) {
        let replicas = match context.get_stream(&stream).await {
            Ok(stream) => Some(stream.cached_info().config.num_replicas),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(told)
                    if told.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                {
                    None
                }
                _ => return Err(format!("{stream}: {error}")),
            },
        };
        found.push((stream, replicas));
    }
    Ok(found)
}
