//! The live journal: growth of open items, written before anyone sees it.
//!
//! A record is a header line (`item stream offset bytes`), the text, and a newline; a torn last
//! record is left out. Of no use when no item is open; emptied then if it is long, else later: to
//! make the first page of a file takes longer than to write down most of what is said.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Access, Disk};
use polyloop_session::{Growth, ItemId, Live, Seq, Stream};

pub(super) struct Journal {
    disk: Arc<dyn Disk>,
    file: File,
    path: PathBuf,
    bytes: u64,
    /// Whether it holds growth of items that may be open.
    needed: bool,
    /// What is written next; kept, since it is as long every time.
    out: Vec<u8>,
}

/// What may stand in a journal that nobody needs: one page.
const LEFT_BYTES_MAX: u64 = 4096;
/// A longer one is let go.
const OUT_BYTES_KEPT: usize = 1024;

impl Journal {
    pub(super) fn open(disk: Arc<dyn Disk>, path: &Path) -> io::Result<(Journal, Live)> {
        let mut file = disk.open(path, Access::AppendOrMake)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (live, whole) = read(&bytes);
        if whole < bytes.len() as u64 {
            disk.cut(&file, whole)?;
        }
        let path = path.to_path_buf();
        let needed = whole > 0;
        Ok((Journal { disk, file, path, bytes: whole, needed, out: Vec::new() }, live))
    }

    pub(super) fn grow(&mut self, growths: &[Growth]) -> io::Result<()> {
        self.out.clear();
        self.needed |= !growths.is_empty();
        write(growths, &mut self.out);
        if let Err(error) = self.disk.write(&self.file, &self.out) {
            self.disk.cut(&self.file, self.bytes)?;
            return Err(error);
        }
        self.bytes += self.out.len() as u64;
        if self.out.capacity() > OUT_BYTES_KEPT {
            self.out = Vec::new();
        }
        Ok(())
    }

    /// No item is open.
    pub(super) fn end(&mut self) -> io::Result<()> {
        if self.bytes > LEFT_BYTES_MAX {
            return self.clear();
        }
        self.needed = false;
        Ok(())
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.needed = false;
        if self.bytes > 0 {
            self.disk.cut(&self.file, 0)?;
            self.bytes = 0;
        }
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.needed || self.bytes == 0 {
            // It says nothing of what is open, also when it cannot be removed.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Adds the records of growth.
pub(in crate::log) fn write(growths: &[Growth], out: &mut Vec<u8>) {
    let mut numbers = itoa::Buffer::new();
    for Growth { item, stream, offset, text } in growths {
        out.extend_from_slice(numbers.format(item.0.0).as_bytes());
        out.extend_from_slice(&[b' ', letter(*stream), b' ']);
        out.extend_from_slice(numbers.format(*offset).as_bytes());
        out.push(b' ');
        out.extend_from_slice(numbers.format(text.len()).as_bytes());
        out.push(b'\n');
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
    }
}

/// What a journal holds, and how many of its bytes are whole records.
pub(in crate::log) fn read(bytes: &[u8]) -> (Live, u64) {
    let mut live = Live::default();
    let mut rest = bytes;
    while let Some((growth, after)) = record(rest) {
        live.grow(&growth);
        rest = after;
    }
    (live, (bytes.len() - rest.len()) as u64)
}

fn letter(stream: Stream) -> u8 {
    match stream {
        Stream::Text => b't',
        Stream::Args => b'a',
        Stream::Output => b'o',
    }
}

fn record(bytes: &[u8]) -> Option<(Growth, &[u8])> {
    let end = bytes.iter().position(|b| *b == b'\n')?;
    let header = std::str::from_utf8(bytes.get(..end)?).ok()?;
    let mut words = header.split(' ');
    let item = ItemId(Seq(words.next()?.parse().ok()?));
    let stream = match words.next()? {
        "t" => Stream::Text,
        "a" => Stream::Args,
        "o" => Stream::Output,
        _ => return None,
    };
    let offset = words.next()?.parse().ok()?;
    let length: usize = words.next()?.parse().ok()?;
    let from = end + 1;
    let to = from.checked_add(length)?;
    let text = std::str::from_utf8(bytes.get(from..to)?).ok()?.into();
    if bytes.get(to) != Some(&b'\n') {
        return None;
    }
    Some((Growth { item, stream, offset, text }, bytes.get(to + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(item: u64, offset: u64, text: &str) -> Growth {
        Growth { item: ItemId(Seq(item)), stream: Stream::Output, offset, text: text.into() }
    }

    fn opened(path: &Path) -> (Journal, Live) {
        Journal::open(Arc::new(super::super::disk::RealDisk), path).unwrap()
    }

    #[test]
    fn what_nobody_needs_stands_for_a_page_and_goes_with_the_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.live");
        let (mut journal, _) = opened(&path);
        journal.grow(&[growth(7, 0, "one")]).unwrap();
        journal.end().unwrap();
        let stands = journal.bytes;
        assert!(stands > 0);
        journal.grow(&[growth(9, 0, "two")]).unwrap();
        assert!(journal.bytes > stands, "what was left is not written over");

        // As after a kill: both are there, and the caller knows which is open.
        let copy = dir.path().join("copy.live");
        std::fs::copy(&path, &copy).unwrap();
        let (mut again, live) = opened(&copy);
        let text = |item| live.text(ItemId(Seq(item)), Stream::Output);
        assert_eq!((text(7), text(9)), ("one", "two"));
        drop(again);
        assert!(copy.exists(), "what was found may be needed");
        (again, _) = opened(&copy);
        again.clear().unwrap();
        assert_eq!(std::fs::metadata(&copy).unwrap().len(), 0);
        drop(again);
        assert!(!copy.exists());

        let much = "x".repeat(LEFT_BYTES_MAX as usize);
        journal.grow(&[growth(9, 3, &much)]).unwrap();
        journal.end().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        journal.grow(&[growth(11, 0, "three")]).unwrap();
        journal.end().unwrap();
        drop(journal);
        assert!(!path.exists());

        let (mut journal, _) = opened(&path);
        journal.grow(&[growth(13, 0, "open")]).unwrap();
        journal.grow(&[]).unwrap();
        drop(journal);
        assert!(path.exists(), "it is open");
    }

    #[test]
    fn a_journal_cut_at_any_byte_keeps_every_whole_record() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.live");
        let (mut journal, _) = opened(&path);
        let texts = ["one\n", "zwei ü\n\n", "3 o 0 4\n", "x"];
        let mut offset = 0;
        let mut ends = vec![0];
        for text in texts {
            journal.grow(&[growth(7, offset, text)]).unwrap();
            offset += text.len() as u64;
            ends.push(journal.bytes as usize);
        }
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (journal, live) = opened(&path);
            let records = ends.iter().filter(|end| **end <= cut).count() - 1;
            let want: String = texts[..records].concat();
            assert_eq!(live.text(ItemId(Seq(7)), Stream::Output), want, "cut at {cut}");
            assert_eq!(journal.bytes as usize, ends[records]);
        }
    }
}
