//! Reads a text file, or a part of it, with line numbers.
//!
//! Streams: of a huge file no more is held than is shown. Never follows a link out of the working
//! directory, and never waits for a pipe.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead as _, BufReader};

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::Judgement;

use super::files::{
    Args, Names, PATH_HELP, Reading, TEXT_BYTES_MAX, Target, Watch, judge_reading, run_reading,
};
use super::{Place, Progress, Run, Tool, ToolSpec};

/// Lines of one call, unless it asks for fewer or more.
const LINES_PRESET: usize = 2_000;
/// A longer line is cut.
pub const LINE_BYTES_MAX: usize = 2_000;
/// Bytes at the beginning of a file that tell what it is.
const HEAD_BYTES: usize = 8 * 1024;
/// Room for the notes at the end.
const NOTES_BYTES: usize = 1_024;

const DESCRIPTION: &str = "Reads a text file. Each line comes with its number and a tab; they are \
     not part of the file. Without `offset` and `limit` it begins at the first line and gives up \
     to 2000 lines; the end says whether there is more and how to read on. Of an image only the \
     kind and size are told.";

pub struct Read;

impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": PATH_HELP },
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "How many lines to skip; 0 by default.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "How many lines to read; 2000 by default.",
                },
            },
            "required": ["path"],
        });
        ToolSpec { name: "read", description: DESCRIPTION.into(), parameters: parameters.into() }
    }

    fn may_read(&self) -> bool {
        true
    }

    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>> {
        judge_reading::<Wanted>(args, place)
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        run_reading(run, read)
    }
}

struct Wanted {
    path: String,
    offset: usize,
    limit: usize,
}

impl Reading for Wanted {
    const NAME: &'static str = "read";
    const DOES: &'static str = "reads";
    const NAMES: Names = Names::File;

    fn parse(json: &str) -> Result<Wanted, Text> {
        let args = Args::parse(Self::NAME, json)?;
        let limit = args.limit(LINES_PRESET, usize::MAX)?;
        Ok(Wanted { path: args.path()?, offset: args.count("offset", 0)?, limit })
    }

    fn path(&self) -> &str {
        &self.path
    }
}

fn read(wanted: &Wanted, target: &Target, _: &Place, watch: &Watch) -> Result<String, String> {
    let opened = target.root.open_file(&target.relative).map_err(|error| {
        let why = target.explain(error);
        if why.contains("a directory, not") { format!("{why}; use ls") } else { why }
    })?;
    let (file, stat) = opened.ok_or_else(|| target.missing())?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let failed = |error: std::io::Error| format!("{}: cannot read it: {error}", target.shown());
    let head = reader.fill_buf().map_err(failed)?;
    let head = head.get(..HEAD_BYTES).unwrap_or(head);
    if let Some(kind) = image(head) {
        let (path, bytes) = (target.shown(), stat.st_size);
        return Ok(format!("({path} is a {kind} image of {bytes} bytes; it cannot be shown)\n"));
    }
    if head.contains(&0) {
        let (path, bytes) = (target.shown(), stat.st_size);
        return Err(format!("{path}: a binary file of {bytes} bytes; it cannot be shown as text"));
    }
    let mut lines = Lines { reader, watch, number: 0 };
    let mut page = Page { text: String::new(), crlf: false, lossy: false };
    while lines.number < wanted.offset {
        if !lines.skip().map_err(failed)? {
            let (path, has) = (target.shown(), lines.number);
            return Err(match watch.why_over() {
                Some(why) => format!("{path}: {why}"),
                None => format!("{path}: has only {has} lines; `offset` is {}", wanted.offset),
            });
        }
    }
    let mut shown = 0;
    while shown < wanted.limit {
        let Some((line, bytes)) = lines.next().map_err(failed)? else { break };
        if !page.add(lines.number, &line, bytes) {
            // It is the first of the next page.
            return Ok(page.cut(lines.number - 1));
        }
        shown += 1;
    }
    if let Some(why) = watch.why_over() {
        return Ok(page.end(&why));
    }
    if lines.number == 0 {
        return Ok("(the file is empty)\n".to_owned());
    }
    if lines.is_at_end().map_err(failed)? {
        return match shown {
            0 => Err(format!(
                "{}: has only {} lines; `offset` is {}",
                target.shown(),
                lines.number,
                wanted.offset
            )),
            _ => Ok(page.end("")),
        };
    }
    Ok(page.cut(lines.number))
}

/// The lines of a file one by one, none of them held longer than it is shown.
struct Lines<'a> {
    reader: BufReader<File>,
    watch: &'a Watch,
    /// Of the line before.
    number: usize,
}

impl Lines<'_> {
    /// Whether there was one.
    fn skip(&mut self) -> std::io::Result<bool> {
        Ok(self.take(0)?.is_some())
    }

    /// The beginning of the next line without its end, and how many bytes the line has.
    fn next(&mut self) -> std::io::Result<Option<(Vec<u8>, usize)>> {
        self.take(LINE_BYTES_MAX + 4)
    }

    fn take(&mut self, keep: usize) -> std::io::Result<Option<(Vec<u8>, usize)>> {
        let (mut line, mut bytes) = (Vec::new(), 0);
        loop {
            if self.watch.is_over() {
                return Ok(None);
            }
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                if bytes == 0 {
                    return Ok(None);
                }
                break;
            }
            let end = memchr::memchr(b'\n', buffer);
            let part = buffer.get(..end.map_or(buffer.len(), |end| end + 1)).unwrap_or(buffer);
            let room = keep.saturating_sub(line.len()).min(part.len());
            line.extend_from_slice(part.get(..room).unwrap_or(part));
            let taken = part.len();
            bytes += taken;
            self.reader.consume(taken);
            if end.is_some() {
                break;
            }
        }
        self.number += 1;
        Ok(Some((line, bytes)))
    }

    fn is_at_end(&mut self) -> std::io::Result<bool> {
        Ok(self.reader.fill_buf()?.is_empty())
    }
}

struct Page {
    text: String,
    crlf: bool,
    lossy: bool,
}

impl Page {
    /// Whether it fitted.
    fn add(&mut self, number: usize, line: &[u8], bytes: usize) -> bool {
        let (mut line, whole) = (line, line.len() == bytes);
        if whole {
            line = line.strip_suffix(b"\n").unwrap_or(line);
            if let Some(stripped) = line.strip_suffix(b"\r") {
                self.crlf = true;
                line = stripped;
            }
        }
        let text = String::from_utf8_lossy(line);
        // A character that our own cut went through is no sign of another encoding.
        let cut = text.floor_char_boundary(LINE_BYTES_MAX);
        let kept = text.get(..cut).unwrap_or(&text);
        self.lossy |= matches!(text, Cow::Owned(_)) && kept.contains('\u{fffd}');
        let mark = if kept.len() < text.len() || !whole {
            format!("… (cut; the line has {bytes} bytes)")
        } else {
            String::new()
        };
        let row = format!("{number:>6}\t{kept}{mark}\n");
        if self.text.len() + row.len() > TEXT_BYTES_MAX - NOTES_BYTES {
            return false;
        }
        self.text.push_str(&row);
        true
    }

    fn cut(self, next: usize) -> String {
        self.end(&format!("(more lines follow; read on with offset {next})"))
    }

    fn end(mut self, note: &str) -> String {
        if self.crlf {
            self.text.push_str("(lines end with CRLF; an edit keeps that)\n");
        }
        if self.lossy {
            self.text.push_str("(not all of it is UTF-8; other bytes are shown as \u{fffd})\n");
        }
        if !note.is_empty() {
            self.text.push_str(note);
            self.text.push('\n');
        }
        self.text
    }
}

fn image(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', ..] => Some("PNG"),
        [0xff, 0xd8, 0xff, ..] => Some("JPEG"),
        [b'G', b'I', b'F', b'8', ..] => Some("GIF"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("WebP"),
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Some("BMP"),
        _ => None,
    }
}
