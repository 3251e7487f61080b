//! Long texts, batches that fit in no message, and kept contents, in the object store.

use std::collections::HashMap;

use async_nats::jetstream::object_store::{GetErrorKind, ObjectMetadata};
use bytes::Bytes;
use polyloop_session::SessionId;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep, timeout};

use super::super::LogError;
use super::{ANSWER_TIME_MAX, Store, TRY_EVERY, TRYING_TIME_MAX, failed_to, unanswered};

/// A longer one cannot be ours.
const OBJECT_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Of one message of an object, where NATS takes so much.
const CHUNK_BYTES_MAX: usize = 128 * 1024;

impl Store {
    /// Returns when it is acknowledged.
    pub(super) async fn put(&self, name: &str, content: &[u8]) -> Result<(), LogError> {
        let until = Instant::now() + TRYING_TIME_MAX;
        loop {
            let chunk_size = Some(CHUNK_BYTES_MAX.min(self.streams.payload_bytes_max()));
            let name = name.to_owned();
            let meta = ObjectMetadata { name, chunk_size, ..ObjectMetadata::default() };
            let mut content = content;
            match self.streams.objects.put(meta, &mut content).await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() >= until => {
                    return Err(failed_to("keep a long text", error));
                }
                Err(_) => sleep(TRY_EVERY).await,
            }
        }
    }

    /// `None` where there is none of that name.
    pub(super) async fn get(&self, name: &str) -> Result<Option<Bytes>, LogError> {
        let until = Instant::now() + TRYING_TIME_MAX;
        loop {
            let why = match self.got_once(name).await {
                Ok(found) => return Ok(found),
                Err(why) => why,
            };
            if Instant::now() >= until {
                return Err(unanswered("read a long text", why));
            }
            sleep(TRY_EVERY).await;
        }
    }

    async fn got_once(&self, name: &str) -> Result<Option<Bytes>, String> {
        let mut object = match self.streams.objects.get(name).await {
            Ok(object) => object,
            Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        if object.info.size > OBJECT_BYTES_MAX {
            return Err(format!("it has {} bytes", object.info.size));
        }
        let mut content = Vec::with_capacity(object.info.size);
        loop {
            // The library sees to it that it is whole.
            let read = timeout(ANSWER_TIME_MAX, object.read_buf(&mut content)).await;
            match read {
                Ok(Ok(0)) => return Ok(Some(content.into())),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error.to_string()),
                Err(_) => return Err("NATS does not answer".into()),
            }
        }
    }

    /// The texts that have these names in one place.
    pub(super) async fn texts(
        &self,
        objects: &str,
        names: &[String],
        found: &mut HashMap<String, String>,
    ) -> Result<(), LogError> {
        for name in names {
            let content = self.get(&format!("{objects}/{name}")).await?;
            let text = content.and_then(|content| String::from_utf8(content.into()).ok());
            found.extend(text.map(|text| (name.clone(), text)));
        }
        Ok(())
    }

    /// What the session, or one it was copied from, keeps under a hash.
    pub(super) async fn kept_content(
        &self,
        id: &SessionId,
        hash: &str,
    ) -> Result<Option<Bytes>, LogError> {
        let ours = hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
        let Some((record, _)) = self.record(id).await?.filter(|_| ours) else { return Ok(None) };
        for birth in std::iter::once(&record.birth).chain(&record.copied_from) {
            let Some(content) = self.get(&kept_name(birth, hash)).await? else { continue };
            if format!("{:x}", Sha256::digest(&content)) == hash {
                return Ok(Some(content));
            }
        }
        Ok(None)
    }
}

pub(super) fn kept_name(birth: &str, hash: &str) -> String {
    format!("{birth}/kept-{hash}")
}
