//! Appends to one session's files.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use polyloop_session::{Growth, LogEntry, Seq, SessionId};

use super::super::{Flush, LineEncoder, LogError, Writer};
use super::journal::Journal;
use super::kept;
use super::{FILE_MODE, INDEX_ENTRIES, LINE_BYTES_MAX, Store, lock, make_dir};

pub(super) struct FileWriter {
    store: Arc<Store>,
    id: SessionId,
    file: Arc<File>,
    journal: Journal,
    encoder: Box<dyn LineEncoder>,
    last: Seq,
    /// Something failed that this writer cannot undo; the session must be opened anew.
    failed: Option<String>,
    /// Files that belong to the next flush.
    unflushed: Vec<File>,
}

impl FileWriter {
    pub(super) fn new(
        store: Arc<Store>,
        id: SessionId,
        file: File,
        journal: Journal,
        encoder: Box<dyn LineEncoder>,
        last: Seq,
    ) -> FileWriter {
        FileWriter {
            store,
            id,
            file: Arc::new(file),
            journal,
            encoder,
            last,
            failed: None,
            unflushed: Vec::new(),
        }
    }

    fn usable(&self) -> Result<(), LogError> {
        match &self.failed {
            Some(why) => Err(LogError::store(format!("session {}", self.id), why)),
            None => Ok(()),
        }
    }

    /// One write for all of it; what does not fit is taken back.
    fn write(&mut self, text: &str) -> io::Result<u64> {
        let before = self.file.metadata()?.len();
        if let Err(error) = (&*self.file).write_all(text.as_bytes()) {
            self.file.set_len(before)?;
            return Err(error);
        }
        Ok(before)
    }

    fn blobs(&mut self, blobs: &[(String, String)]) -> io::Result<()> {
        if blobs.is_empty() {
            return Ok(());
        }
        let dir = self.store.path(&self.id, "blobs");
        make_dir(&dir)?;
        for (name, text) in blobs {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(FILE_MODE);
            let mut file = options.open(dir.join(name))?;
            file.write_all(text.as_bytes())?;
            self.unflushed.push(file);
        }
        // Their names too must survive the machine.
        self.unflushed.push(File::open(&dir)?);
        self.unflushed.push(File::open(&self.store.dir)?);
        Ok(())
    }

    /// Returns how long the file was before.
    fn add(&mut self, entries: &[Arc<LogEntry>]) -> io::Result<u64> {
        let mut text = String::new();
        let (mut count, mut index) = (0, Vec::new());
        for entry in entries {
            let lines = self.encoder.lines(entry);
            self.blobs(&lines.blobs)?;
            if entry.seq.0 % INDEX_ENTRIES == 1 {
                index.push((entry.seq, text.len() as u64));
            }
            count += lines.lines.len() as u64;
            if lines.lines.iter().any(|line| line.len() as u64 > LINE_BYTES_MAX) {
                return Err(io::Error::other("it is too long for one line of the session's file"));
            }
            lines.lines.iter().for_each(|line| text.push_str(line));
        }
        let before = self.write(&text)?;
        if let Some(known) = lock(&self.store.known).get_mut(&self.id) {
            if known.summary.lines == 0 {
                known.summary.start = entries.first().map_or(known.summary.start, |e| e.at);
            }
            known.bytes = before + text.len() as u64;
            known.index.extend(index.iter().map(|(seq, place)| (*seq, before + place)));
            known.summary.lines += count;
            known.summary.last = entries.last().map_or(known.summary.last, |entry| entry.at);
        }
        Ok(before)
    }

    async fn flush(&mut self, before: u64) -> Result<(), LogError> {
        let (file, others) = (self.file.clone(), std::mem::take(&mut self.unflushed));
        let flushed = move || {
            others.iter().try_for_each(File::sync_all)?;
            file.sync_data()
        };
        let done = tokio::task::spawn_blocking(flushed).await;
        let error = match done {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        // After a failed flush the kernel may have dropped the data: asking again proves nothing.
        // The batch is taken back, as far as that goes.
        let _ = self.file.set_len(before);
        self.failed = Some(format!("a flush to disk failed: {error}"));
        self.usable()
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if let Some(known) = lock(&self.store.known).get_mut(&self.id) {
            known.leased = false;
        }
    }
}

impl Writer for FileWriter {
    fn append<'a>(
        &'a mut self,
        expected_last: Seq,
        entries: &'a [Arc<LogEntry>],
        flush: Flush,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            self.usable()?;
            if self.last != expected_last {
                return Err(LogError::Conflict { expected: expected_last, found: self.last });
            }
            let before = match self.add(entries) {
                Ok(before) => before,
                Err(error) => {
                    // The encoder has seen entries that the file does not hold.
                    self.failed = Some(error.to_string());
                    return Err(self.store.error(&self.id, &error));
                }
            };
            self.last = entries.last().map_or(self.last, |entry| entry.seq);
            match flush {
                Flush::Disk => self.flush(before).await,
                Flush::Process => Ok(()),
            }
        }
        .boxed()
    }

    fn grow<'a>(&'a mut self, growths: &'a [Growth]) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            self.usable()?;
            self.journal.grow(growths).map_err(|error| self.store.error(&self.id, &error))
        }
        .boxed()
    }

    fn forget_growth(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        async move { self.journal.clear().map_err(|error| self.store.error(&self.id, &error)) }
            .boxed()
    }

    fn audit<'a>(&'a mut self, line: &'a str) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            self.usable()?;
            let before = self.write(line).map_err(|error| self.store.error(&self.id, &error))?;
            if let Some(known) = lock(&self.store.known).get_mut(&self.id) {
                known.bytes = before + line.len() as u64;
                known.summary.lines += 1;
            }
            Ok(())
        }
        .boxed()
    }

    fn keep_content<'a>(
        &'a mut self,
        hash: &'a str,
        content: &'a Bytes,
    ) -> BoxFuture<'a, Result<bool, LogError>> {
        async move {
            self.usable()?;
            let kept = kept::keep(&self.store, &self.id, hash, content);
            let kept = kept.map_err(|error| self.store.error(&self.id, &error))?;
            let fits = kept.is_some();
            self.unflushed.extend(kept.unwrap_or_default());
            Ok(fits)
        }
        .boxed()
    }
}
