//! The streams and buckets that sessions stand on: their names, and what is set of them.
//!
//! Why each is set so stands in `docs/decisions/0040`. That acknowledged messages are flushed to
//! disk is set in the configuration of the NATS servers and nowhere else: `sync_interval: always`.

use std::time::Duration;

use async_nats::jetstream::context::{ContextBuilder, CreateStreamError, CreateStreamErrorKind};
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::stream::{Config, DiscardPolicy, PersistenceMode, StorageType, Stream};
use async_nats::jetstream::{Context, kv};
use async_nats::{Client, Event};
use tokio::time::Instant;

use super::super::LogError;
use super::{ANSWER_TIME_MAX, TRY_EVERY, TRYING_TIME_MAX, failed_to, login};

/// Fewer would leave nothing when one server is lost.
const REPLICAS_OF_MANY: usize = 3;
const SERVERS_MANY: usize = 3;
/// The first with `persist_mode`.
const SERVER_VERSION_MIN: (i64, i64, i64) = (2, 12, 0);
/// Messages of all sessions that are on their way.
const UNACKNOWLEDGED_MESSAGES_MAX: usize = 16 * 1024;
/// A server that says nothing to two of these is left for another.
const PING_EVERY: Duration = Duration::from_secs(2);
const TRY_SERVER_EVERY_MAX: Duration = Duration::from_millis(500);
/// Headers and what the server puts around a message.
const AROUND_PAYLOAD_BYTES: usize = 4 * 1024;

/// Where the store is.
#[derive(Clone, Debug)]
pub struct Place {
    /// Each `nats://` or `tls://`, with a user and a password if need be.
    pub servers: Vec<String>,
    /// What the streams' names begin with, so that several stores have room on one NATS.
    pub name: String,
    /// Nothing is as many as the number of servers allows.
    pub replicas: Option<usize>,
}

impl Place {
    pub(super) fn replicas(&self) -> usize {
        let many = self.servers.len() >= SERVERS_MANY;
        self.replicas.unwrap_or(if many { REPLICAS_OF_MANY } else { 1 })
    }
}

pub(super) struct Streams {
    pub client: Client,
    pub context: Context,
    pub log: Stream,
    pub live: Stream,
    pub records: kv::Store,
    pub objects: ObjectStore,
    pub name: String,
    place: Place,
}

impl Streams {
    pub async fn open(place: &Place) -> Result<Streams, LogError> {
        let Place { servers, name, .. } = place;
        let failed = |error: &dyn std::fmt::Display| failed_to("reach NATS", error);
        let options = login::options(place)
            .name("polyloop")
            .request_timeout(Some(ANSWER_TIME_MAX))
            .ping_interval(PING_EVERY)
            .reconnect_delay_callback(before_try)
            .event_callback(tell);
        let client = options.connect(servers).await.map_err(|error| failed(&error))?;
        if let Some(why) = too_old(&client) {
            return Err(failed(&why));
        }
        let context = ContextBuilder::new()
            .timeout(ANSWER_TIME_MAX)
            .ack_timeout(ANSWER_TIME_MAX)
            .max_ack_inflight(UNACKNOWLEDGED_MESSAGES_MAX)
            .backpressure_on_inflight(true)
            .build(client.clone());
        let replicas = place.replicas();
        let made = async |config: Config| stream(&context, config, place.replicas).await;
        let log = made(log_config(name, replicas)).await?;
        let live = made(live_config(name, replicas)).await?;
        made(records_config(name, replicas)).await?;
        let records = async || context.get_key_value(format!("{name}-sessions")).await;
        let records = opened("open the list of sessions", records).await?;
        made(objects_config(name, replicas)).await?;
        let objects = async || context.get_object_store(format!("{name}-objects")).await;
        let objects = opened("open the object store", objects).await?;
        let (name, place) = (name.clone(), place.clone());
        Ok(Streams { client, context, log, live, records, objects, name, place })
    }

    /// The bucket of owners, which is made if it is not there.
    pub async fn owners(&self) -> Result<kv::Store, LogError> {
        let config = owners_config(&self.name, self.place.replicas());
        stream(&self.context, config, self.place.replicas).await?;
        let owners = async || self.context.get_key_value(format!("{}-owners", self.name)).await;
        opened("open the list of owners", owners).await
    }

    /// The subject of a session's log; of its journal.
    pub fn log_subject(&self, birth: &str) -> String {
        format!("{}.log.{birth}", self.name)
    }

    pub fn live_subject(&self, birth: &str) -> String {
        format!("{}.live.{birth}", self.name)
    }

    pub fn payload_bytes_max(&self) -> usize {
        self.client.max_payload().saturating_sub(AROUND_PAYLOAD_BYTES)
    }
}

/// Why a server's version will not do.
pub(super) fn too_old(client: &Client) -> Option<String> {
    let (major, minor, patch) = SERVER_VERSION_MIN;
    let is_new = client.is_server_compatible(major, minor, patch);
    let found = client.server_info().version;
    (!is_new).then(|| format!("its version is {found}; {major}.{minor} or newer is needed"))
}

/// The streams of a store, buckets as well.
pub(super) fn names(name: &str) -> Vec<String> {
    let configs = [log_config, live_config, records_config, owners_config, objects_config];
    configs.map(|config| config(name, 1).name).into()
}

/// How long is waited before a server is tried again. Whoever comes back late has fallen.
fn before_try(tries: usize) -> Duration {
    TRY_EVERY.saturating_mul(tries as u32).min(TRY_SERVER_EVERY_MAX)
}

/// What happens to the connection, for whoever reads the server's log.
async fn tell(event: Event) {
    match event {
        Event::Disconnected => tracing::warn!("the connection to NATS is lost; trying again"),
        Event::Connected => tracing::info!("connected to NATS"),
        event => tracing::debug!(%event, "NATS"),
    }
}

/// A stream that is there stays as it is: a server that was told of fewer NATS servers must not
/// make anything less safe. Only its replicas are set, if a number was given.
async fn stream(
    context: &Context,
    config: Config,
    replicas: Option<usize>,
) -> Result<Stream, LogError> {
    let name = config.name.clone();
    let failed =
        |error: &dyn std::fmt::Display| failed_to(&format!("make the stream {name}"), error);
    let found = found_or_made(context, config).await.map_err(|error| failed(&error))?;
    let found_config = &found.cached_info().config;
    let Some(wanted) = replicas.filter(|wanted| *wanted != found_config.num_replicas) else {
        return Ok(found);
    };
    let config = Config { num_replicas: wanted, ..found_config.clone() };
    context.update_stream(config).await.map_err(|error| failed(&error))?;
    context.get_stream(&name).await.map_err(|error| failed(&error))
}

/// NATS servers that were just started let what is asked of a stream drop until it has a leader: it
/// is asked again for as long as a write is tried.
async fn found_or_made(context: &Context, config: Config) -> Result<Stream, CreateStreamError> {
    let end = Instant::now() + TRYING_TIME_MAX;
    loop {
        match context.get_or_create_stream(config.clone()).await {
            Err(error)
                if error.kind() == CreateStreamErrorKind::TimedOut && Instant::now() < end => {}
            done => return done,
        }
    }
}

/// What was just made, perhaps by another server, is not known to every NATS server yet.
async fn opened<T, E: std::fmt::Display>(
    what: &str,
    open: impl AsyncFn() -> Result<T, E>,
) -> Result<T, LogError> {
    let end = Instant::now() + TRYING_TIME_MAX;
    loop {
        match open().await {
            Err(error) if Instant::now() >= end => return Err(failed_to(what, error)),
            Err(_) => tokio::time::sleep(TRY_EVERY).await,
            Ok(opened) => return Ok(opened),
        }
    }
}

fn log_config(name: &str, replicas: usize) -> Config {
    Config {
        name: format!("{name}-log"),
        subjects: vec![format!("{name}.log.>")],
        storage: StorageType::File,
        persist_mode: Some(PersistenceMode::Default),
        ..common(replicas)
    }
}

/// On files as well: a NATS server that forgets what it agreed to when it ends may agree to
/// something else when it begins again.
fn live_config(name: &str, replicas: usize) -> Config {
    Config {
        name: format!("{name}-live"),
        subjects: vec![format!("{name}.live.>")],
        storage: StorageType::File,
        allow_rollup: true,
        ..common(replicas)
    }
}

/// As the client library makes a bucket of keys with one value each.
fn records_config(name: &str, replicas: usize) -> Config {
    bucket_config(&format!("{name}-sessions"), replicas)
}

/// Keys that are gone are forgotten after a while.
fn owners_config(name: &str, replicas: usize) -> Config {
    let bucket = bucket_config(&format!("{name}-owners"), replicas);
    Config { allow_message_ttl: true, ..bucket }
}

fn bucket_config(bucket: &str, replicas: usize) -> Config {
    Config {
        name: format!("KV_{bucket}"),
        subjects: vec![format!("$KV.{bucket}.>")],
        storage: StorageType::File,
        max_messages_per_subject: 1,
        allow_rollup: true,
        deny_delete: true,
        ..common(replicas)
    }
}

/// As the client library makes an object store.
fn objects_config(name: &str, replicas: usize) -> Config {
    let bucket = format!("{name}-objects");
    Config {
        name: format!("OBJ_{bucket}"),
        subjects: vec![format!("$O.{bucket}.C.>"), format!("$O.{bucket}.M.>")],
        storage: StorageType::File,
        allow_rollup: true,
        // Whether there is such an object is asked of the leader.
        allow_direct: false,
        ..common(replicas)
    }
}

fn common(replicas: usize) -> Config {
    Config {
        num_replicas: replicas,
        // A full store refuses what is new; it never drops what is old.
        discard: DiscardPolicy::New,
        max_messages: -1,
        max_bytes: -1,
        allow_direct: true,
        ..Config::default()
    }
}
