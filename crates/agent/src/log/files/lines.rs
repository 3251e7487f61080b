//! Lines of a file in a stream, each with its place; a line that is too long is passed over.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// A longer line cannot be one of ours: long texts stand in files of their own.
pub(super) const LINE_BYTES_MAX: u64 = 32 * 1024 * 1024;
const BUFFER_BYTES: usize = 64 * 1024;

pub(super) struct Lines {
    reader: BufReader<File>,
    /// The file's bytes up to what is read next.
    pub place: u64,
    buffer: Vec<u8>,
}

pub(super) struct RawLine<'a> {
    pub place: u64,
    pub length: u64,
    pub bytes: &'a [u8],
    /// It ends with a newline.
    pub whole: bool,
    too_long: bool,
}

impl RawLine<'_> {
    /// The line without its end and a byte order mark; `None` when it is no text.
    pub fn text(&self) -> Option<&str> {
        if self.too_long {
            return None;
        }
        let text = std::str::from_utf8(self.bytes).ok()?;
        Some(text.trim_start_matches('\u{feff}').trim_end_matches(['\n', '\r']))
    }
}

impl Lines {
    /// From that byte of the file on.
    pub fn from(mut file: File, place: u64) -> io::Result<Lines> {
        file.seek(SeekFrom::Start(place))?;
        let reader = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(Lines { reader, place, buffer: Vec::new() })
    }

    pub fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        let place = self.place;
        self.buffer.clear();
        let mut read =
            (&mut self.reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut self.buffer)? as u64;
        if read == 0 {
            return Ok(None);
        }
        let mut whole = self.buffer.last() == Some(&b'\n');
        let too_long = !whole && read == LINE_BYTES_MAX;
        if too_long {
            self.buffer.clear();
            let mut rest = 1;
            while !whole && rest > 0 {
                self.buffer.clear();
                let part = (&mut self.reader).take(LINE_BYTES_MAX);
                rest = { part }.read_until(b'\n', &mut self.buffer)? as u64;
                whole = self.buffer.last() == Some(&b'\n');
                read += rest;
            }
        }
        self.place += read;
        Ok(Some(RawLine { place, length: read, bytes: &self.buffer, whole, too_long }))
    }
}
