//! Watches the bucket, and goes on watching whatever happens to NATS.

use std::sync::Arc;

use async_nats::jetstream::kv::{Entry, Operation, Watch};
use futures_util::StreamExt;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::super::super::LogError;
use super::super::{ANSWER_TIME_MAX, TRY_EVERY, failed_to, lock};
use super::Shared;
use super::view::{Change, Found, change};
use crate::peers::News;

const ALL_KEYS: &str = ">";

/// What is there has come in when this returns.
pub(super) async fn start(shared: &Arc<Shared>, tasks: &mut JoinSet<()>) -> Result<(), LogError> {
    let watch = begun(shared).await?;
    tasks.spawn(keep_watching(shared.clone(), watch));
    Ok(())
}

async fn keep_watching(shared: Arc<Shared>, mut watch: Watch) {
    loop {
        let entry = tokio::select! {
            entry = watch.next() => entry,
            () = shared.look_again.notified() => None,
        };
        if let Some(Ok(entry)) = entry {
            shared.take(&entry, None);
            continue;
        }
        watch = loop {
            match begun(&shared).await {
                Ok(watch) => break watch,
                Err(error) => tracing::debug!(%error, "trying again"),
            }
            sleep(TRY_EVERY).await;
        };
    }
}

/// A watch whose first values have come in. There is at least one: this server's.
async fn begun(shared: &Shared) -> Result<Watch, LogError> {
    let failed = |error: &dyn std::fmt::Display| failed_to("watch the owners", error);
    let watch = shared.bucket.watch_with_history(ALL_KEYS).await;
    let mut watch = watch.map_err(|error| failed(&error))?;
    lock(&shared.view).begin();
    let mut found = Found::default();
    loop {
        let entry = timeout(ANSWER_TIME_MAX, watch.next()).await;
        let Ok(Some(entry)) = entry else { return Err(failed(&"NATS does not answer")) };
        let entry = entry.map_err(|error| failed(&error))?;
        shared.take(&entry, Some(&mut found));
        if entry.seen_current {
            break;
        }
    }
    let mut news = Vec::new();
    lock(&shared.view).settle(&found, &mut news);
    shared.spread(news);
    Ok(watch)
}

impl Shared {
    fn take(&self, entry: &Entry, found: Option<&mut Found>) {
        let Some(change) = read(entry) else {
            tracing::warn!(key = entry.key, "a record of the owners cannot be read");
            return;
        };
        if let Some(found) = found {
            found.note(&change);
        }
        let mut news = Vec::new();
        lock(&self.view).take(change, entry.revision, &mut news);
        self.spread(news);
    }

    fn spread(&self, news: Vec<News>) {
        for news in news {
            drop(self.news.send(news)); // Nobody may want to know any more.
        }
    }
}

fn read(entry: &Entry) -> Option<Change> {
    let value = match entry.operation {
        Operation::Put => Some(&*entry.value),
        Operation::Delete | Operation::Purge => None,
    };
    change(&entry.key, value)
}
