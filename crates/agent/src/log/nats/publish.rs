//! Stores a message behind another, or not at all, and finds out which.

use std::error::Error;

use async_nats::header::{HeaderMap, NATS_EXPECTED_LAST_SUBJECT_SEQUENCE};
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{Error as JetStreamError, ErrorCode};
use bytes::Bytes;
use tokio::time::{Instant, sleep};

use super::direct::Stored;
use super::streams::Streams;
use super::{TRY_EVERY, TRYING_TIME_MAX};

/// What is stored, and behind which message of its subject; 0 is the first.
pub(super) struct Publish<'a> {
    pub stream: &'a Stream,
    pub subject: &'a str,
    pub headers: HeaderMap,
    pub payload: Bytes,
    pub behind: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Refused {
    /// Another message is the last one.
    Moved { newest: Option<Box<Stored>> },
    /// Whether it is stored is not known, or it cannot be.
    Failed { why: String },
}

impl Streams {
    /// Gives the number it has in its stream. `is_ours` knows the message again: an answer may be
    /// lost, and what is sent again is then refused because it is there.
    pub async fn publish(
        &self,
        publish: &Publish<'_>,
        is_ours: impl Fn(&Stored) -> bool,
    ) -> Result<u64, Refused> {
        let until = Instant::now() + TRYING_TIME_MAX;
        loop {
            let error = match self.sent_once(publish).await {
                Ok(number) => return Ok(number),
                Err(error) => error,
            };
            let is_final = error.source().is_some_and(|source| source.is::<JetStreamError>())
                && !is_under_way(&error);
            match error.kind() {
                PublishErrorKind::WrongLastSequence => {
                    let newest = self.newest(publish.stream, publish.subject).await;
                    let newest = newest.map_err(|error| failed(&error))?;
                    return match newest {
                        Some(newest) if is_ours(&newest) => Ok(newest.sequence),
                        newest => Err(Refused::Moved { newest: newest.map(Box::new) }),
                    };
                }
                PublishErrorKind::MaxPayloadExceeded => return Err(failed(&error)),
                PublishErrorKind::Other if is_final => return Err(failed(&error)),
                _ if Instant::now() >= until => return Err(unanswered(&error)),
                _ => sleep(TRY_EVERY).await,
            }
        }
    }

    async fn sent_once(&self, publish: &Publish<'_>) -> Result<u64, PublishError> {
        let mut headers = publish.headers.clone();
        if is_fenced(publish.subject) {
            headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, publish.behind.to_string());
        }
        let subject = publish.subject.to_owned();
        let sent = self.context.publish_with_headers(subject, headers, publish.payload.clone());
        Ok(sent.await?.await?.sequence)
    }
}

/// Everything is, but for the build that shows what then happens: there only claims are.
fn is_fenced(subject: &str) -> bool {
    !cfg!(feature = "unfenced") || subject.starts_with("$KV.")
}

/// Another message for the same place is not yet stored by enough servers: it may come to be there,
/// or not, and may even be this one, sent before. Whoever asks again is told which.
pub(super) fn is_under_way(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<JetStreamError>() {
            return error.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT;
        }
        next = error.source();
    }
    false
}

fn unanswered(error: &dyn std::fmt::Display) -> Refused {
    let why = format!(
        "NATS does not answer ({error}); whether it was stored shows when the session is opened \
         again"
    );
    Refused::Failed { why }
}

fn failed(error: &dyn std::fmt::Display) -> Refused {
    Refused::Failed { why: format!("NATS does not take it: {error}") }
}
