//! Reads messages of a subject in pages, from whichever replica answers.
//!
//! A replica may be behind, so the end of a page is not the end of a subject: the leader knows.

use async_nats::header::HeaderMap;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::super::LogError;
use super::streams::Streams;
use super::{ANSWER_TIME_MAX, TRY_EVERY, TRYING_TIME_MAX, failed_to, unanswered};

pub(super) const PAGE_MESSAGES_MAX: usize = 256;
const PAGE_BYTES_MAX: usize = 1024 * 1024;

const END_OF_PAGE: u16 = 204;
const NOT_FOUND: u16 = 404;
/// So a stream without a leader answers.
const UNAVAILABLE: usize = 503;

/// A message as it is stored.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub sequence: u64,
    pub headers: HeaderMap,
    pub payload: Bytes,
}

impl Streams {
    /// Messages of a subject, which may hold wildcards, from a number of the stream on. An empty
    /// page says that this replica has no more.
    pub async fn messages(
        &self,
        stream: &str,
        subject: &str,
        from: u64,
        count_max: usize,
    ) -> Result<Vec<Stored>, LogError> {
        let until = Instant::now() + TRYING_TIME_MAX;
        loop {
            match self.asked_once(stream, subject, from, count_max).await {
                Ok(page) => return Ok(page),
                Err(why) if Instant::now() >= until => return Err(unanswered("read", why)),
                Err(_) => sleep(TRY_EVERY).await,
            }
        }
    }

    async fn asked_once(
        &self,
        stream: &str,
        subject: &str,
        from: u64,
        count_max: usize,
    ) -> Result<Vec<Stored>, String> {
        let ask = json!({
            "seq": from.max(1),
            "next_by_subj": subject,
            "batch": count_max,
            "max_bytes": PAGE_BYTES_MAX,
        });
        let inbox = self.client.new_inbox();
        let mut answers =
            self.client.subscribe(inbox.clone()).await.map_err(|error| error.to_string())?;
        let to = format!("$JS.API.DIRECT.GET.{stream}");
        let sent = self.client.publish_with_reply(to, inbox, ask.to_string().into()).await;
        sent.map_err(|error| error.to_string())?;
        let mut page = Vec::new();
        loop {
            let answer = timeout(ANSWER_TIME_MAX, answers.next()).await;
            let Ok(Some(answer)) = answer else { return Err("NATS does not answer".into()) };
            match answer.status.map(|status| status.as_u16()) {
                None => page.push(stored(answer.headers, answer.payload)?),
                Some(END_OF_PAGE | NOT_FOUND) => return Ok(page),
                Some(status) => {
                    let told = answer.description.unwrap_or_default();
                    return Err(format!("NATS answers {status} {told}"));
                }
            }
        }
    }

    /// The newest message of a subject, as the leader knows it.
    pub async fn newest(&self, stream: &Stream, subject: &str) -> Result<Option<Stored>, LogError> {
        let until = Instant::now() + TRYING_TIME_MAX;
        loop {
            match stream.get_last_raw_message_by_subject(subject).await {
                Ok(found) => {
                    let (sequence, headers) = (found.sequence, found.headers);
                    return Ok(Some(Stored { sequence, headers, payload: found.payload }));
                }
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                    return Ok(None);
                }
                Err(error) if Instant::now() >= until => {
                    return Err(match error.kind() {
                        LastRawMessageErrorKind::JetStream(told) if told.code() != UNAVAILABLE => {
                            failed_to("read", error)
                        }
                        _ => unanswered("read", format!("NATS does not answer: {error}")),
                    });
                }
                Err(_) => sleep(TRY_EVERY).await,
            }
        }
    }
}

fn stored(headers: Option<HeaderMap>, payload: Bytes) -> Result<Stored, String> {
    let headers = headers.unwrap_or_default();
    let sequence = headers.get("Nats-Sequence").and_then(|number| number.as_str().parse().ok());
    let sequence = sequence.ok_or("a message of NATS has no number")?;
    Ok(Stored { sequence, headers, payload })
}
