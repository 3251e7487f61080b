//! Writes a page as Markdown: headings, paragraphs, lists, quotes, code, tables, links.
//!
//! What nobody reads is left out: scripts, styles, pictures without words, form fields. Links are
//! made whole. Works piece by piece, with small stacks of bounded depth instead of a tree.

use reqwest::Url;

use super::html::{Piece, Tag};

/// Deeper lists and quotes are written like these.
const DEPTH_MAX: usize = 12;
/// Of the text; indented lines can make it longer than the page.
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Elements that are followed inside one that is left out.
const SKIPPED_DEPTH_MAX: usize = 64;
/// A longer link is left out, its text is not.
const LINK_BYTES_MAX: usize = 2 * 1024;

/// Left out with all that is in them.
const SKIPPED: &[&str] = &[
    "audio", "button", "canvas", "datalist", "iframe", "noembed", "noframes", "object", "script",
    "select", "style", "svg", "template", "textarea", "video",
];
/// They have no end.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "body",
    "caption",
    "center",
    "details",
    "dialog",
    "div",
    "dl",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hgroup",
    "legend",
    "main",
    "menu",
    "nav",
    "p",
    "search",
    "section",
    "summary",
    "tbody",
    "tfoot",
    "thead",
];

pub(super) fn write<'a>(pieces: impl Iterator<Item = Piece<'a>>, base: &Url) -> String {
    let mut writer = Writer::new(base);
    for piece in pieces {
        match piece {
            Piece::Begin(tag) => writer.begin(&tag),
            Piece::End(name) => writer.end(&name),
            Piece::Text(text) => writer.text(&text),
        }
        if writer.out.len() > TEXT_BYTES_MAX {
            writer.out.truncate(writer.out.floor_char_boundary(TEXT_BYTES_MAX));
            break;
        }
    }
    writer.finish()
}

/// What a line begins with, from the outside in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Quote,
    /// The number of its next item, if they are numbered; and how far an item is indented.
    List {
        next: Option<u64>,
        indent: usize,
    },
}

/// Something that is written around a text, and not at all if there is none.
#[derive(Debug)]
struct Around {
    name: String,
    /// Where the text begins.
    from: usize,
    /// Where its sign begins.
    sign: usize,
    close: String,
}

struct Writer {
    base: Url,
    out: String,
    levels: Vec<Level>,
    /// Lists and quotes beyond the depth.
    beyond: usize,
    around: Vec<Around>,
    /// Line ends that are owed before the next text.
    breaks: usize,
    /// A space is owed before the next text.
    space: bool,
    /// Where the text after a sign such as that of an item begins: no break is owed there.
    fresh: usize,
    pre: usize,
    /// The first line end in such a text is not part of it.
    pre_begun: bool,
    table: usize,
    cells: usize,
    title: bool,
    skipping: Option<Skipping>,
}

/// An element that is left out, and what is open inside of it.
struct Skipping {
    name: String,
    open: Vec<String>,
}

impl Writer {
    fn new(base: &Url) -> Writer {
        Writer {
            base: base.clone(),
            out: String::new(),
            levels: Vec::new(),
            beyond: 0,
            around: Vec::new(),
            breaks: 0,
            space: false,
            fresh: 0,
            pre: 0,
            pre_begun: false,
            table: 0,
            cells: 0,
            title: false,
            skipping: None,
        }
    }

    fn begin(&mut self, tag: &Tag) {
        let name = tag.name.as_str();
        if let Some(skipping) = &mut self.skipping {
            if !VOID.contains(&name) && skipping.open.len() < SKIPPED_DEPTH_MAX {
                skipping.open.push(name.to_owned());
            }
            return;
        }
        match name {
            _ if SKIPPED.contains(&name) => {
                self.skipping = Some(Skipping { name: name.to_owned(), open: Vec::new() });
            }
            _ if BLOCKS.contains(&name) => self.block(2),
            "title" => {
                self.block(2);
                self.title = true;
                self.sign("title", "Title: ", "");
            }
            "base" => self.rebase(tag),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.block(2);
                let depth = name.as_bytes().get(1).map_or(1, |digit| usize::from(digit - b'0'));
                self.sign(name, &format!("{} ", "#".repeat(depth)), "");
            }
            "br" => self.block(1),
            "hr" => {
                self.block(2);
                self.put("---");
                self.block(2);
            }
            "b" | "strong" => self.sign(name, "**", "**"),
            "i" | "em" => self.sign(name, "*", "*"),
            "code" | "kbd" | "samp" | "tt" if self.pre == 0 => self.sign(name, "`", "`"),
            "a" => self.link(tag),
            "img" => self.image(tag),
            "pre" | "xmp" | "listing" => self.begin_pre(),
            "blockquote" => self.deeper(Level::Quote),
            "ul" | "ol" => self.begin_list(tag),
            "li" => self.item(),
            "dt" => self.block(1),
            "dd" => {
                self.block(1);
                self.put(": ");
                self.fresh = self.out.len();
            }
            "table" => {
                self.block(2);
                self.table += 1;
                self.cells = 0;
            }
            "tr" => {
                self.breaks = self.breaks.max(1);
                self.cells = 0;
            }
            "td" | "th" => self.cell(),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some(skipping) = &mut self.skipping {
            if let Some(at) = skipping.open.iter().rposition(|open| open == name) {
                skipping.open.truncate(at);
                return;
            }
            // The end of something around it ends it, too.
            let own = skipping.name == name;
            self.skipping = None;
            if own {
                return;
            }
        }
        match name {
            _ if BLOCKS.contains(&name) => self.block(2),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "title" => {
                self.close(name);
                self.title = false;
                self.block(2);
            }
            "b" | "strong" | "i" | "em" | "code" | "kbd" | "samp" | "tt" | "a" => self.close(name),
            "pre" | "xmp" | "listing" => self.end_pre(),
            "blockquote" => self.shallower(|level| level == Level::Quote),
            "ul" | "ol" => self.shallower(|level| level != Level::Quote),
            "li" | "dt" | "dd" => self.block(1),
            "table" => {
                self.table = self.table.saturating_sub(1);
                self.cells = 0;
                self.block(2);
            }
            "tr" => {
                self.cells = 0;
                self.breaks = self.breaks.max(1);
            }
            "td" | "th" => self.space = true,
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.skipping.is_some() {
            return;
        }
        if self.pre > 0 {
            let begun = std::mem::take(&mut self.pre_begun);
            let text = text.strip_prefix('\n').filter(|_| begun).unwrap_or(text);
            for (number, line) in text.split('\n').enumerate() {
                if number > 0 {
                    self.breaks += 1;
                }
                let line = line.trim_end_matches('\r');
                if !line.is_empty() {
                    self.put(line);
                }
            }
            return;
        }
        for (number, word) in text.split(|c: char| c.is_ascii_whitespace()).enumerate() {
            if number > 0 {
                self.space = true;
            }
            if !word.is_empty() {
                self.put(word);
            }
        }
    }

    /// Line ends before what comes next; in a cell of a table a space does.
    fn block(&mut self, breaks: usize) {
        if self.title || self.out.len() == self.fresh {
            return;
        }
        if self.table == 1 && self.cells > 0 && self.pre == 0 {
            self.space = true;
            return;
        }
        self.breaks = self.breaks.max(breaks);
    }

    /// Writes a text, and before it what is owed.
    fn put(&mut self, text: &str) {
        self.settle();
        self.out.push_str(text);
    }

    fn settle(&mut self) {
        let (breaks, space) = (std::mem::take(&mut self.breaks), std::mem::take(&mut self.space));
        if self.out.is_empty() {
            self.margin();
        } else if breaks > 0 {
            // More than a blank line only in a text that is as it is.
            let most = if self.pre > 0 { breaks } else { 2 };
            for _ in 0..breaks.min(most) {
                let line = self.out.trim_end_matches(' ').len();
                self.out.truncate(line.max(self.fresh));
                self.out.push('\n');
                self.margin();
            }
        } else if space && self.pre == 0 {
            match self.out.len() == self.fresh {
                true => self.space_before_signs(),
                false => self.out.push(' '),
            }
        }
    }

    /// A space at the beginning of a text in signs belongs before them.
    fn space_before_signs(&mut self) {
        let (mut first, mut at) = (self.around.len(), self.out.len());
        for (index, around) in self.around.iter().enumerate().rev() {
            if around.from != at || around.close.is_empty() {
                break;
            }
            (first, at) = (index, around.sign);
        }
        let before = self.out.get(..at).unwrap_or_default();
        if first == self.around.len() || at == 0 || before.ends_with(char::is_whitespace) {
            return;
        }
        self.out.insert(at, ' ');
        for around in self.around.iter_mut().skip(first) {
            around.sign += 1;
            around.from += 1;
        }
        self.fresh = self.out.len();
    }

    fn margin(&mut self) {
        for level in &self.levels {
            match level {
                Level::Quote => self.out.push_str("> "),
                Level::List { indent, .. } => self.out.push_str(&"   "[..(*indent).min(3)]),
            }
        }
        self.fresh = self.fresh.min(self.out.len());
    }

    /// Begins something that is written around a text.
    fn sign(&mut self, name: &str, open: &str, close: &str) {
        if self.around.len() >= DEPTH_MAX {
            return;
        }
        self.settle();
        let sign = self.out.len();
        self.out.push_str(open);
        let from = self.out.len();
        self.fresh = from;
        let (name, close) = (name.to_owned(), close.to_owned());
        self.around.push(Around { name, from, sign, close });
    }

    /// Ends the innermost one of this name, and what was left open in it.
    fn close(&mut self, name: &str) {
        let Some(at) = self.around.iter().rposition(|around| around.name == name) else { return };
        for around in self.around.split_off(at).into_iter().rev() {
            if self.out.len() <= around.from {
                self.out.truncate(around.sign);
                self.fresh = self.fresh.min(around.sign);
            } else {
                self.out.push_str(&around.close);
            }
        }
    }

    fn rebase(&mut self, tag: &Tag) {
        let base = tag.href.as_deref().and_then(|href| self.base.join(href).ok());
        if let Some(base) = base.filter(|base| matches!(base.scheme(), "http" | "https")) {
            self.base = base;
        }
    }

    /// A link as a whole URL, if it leads anywhere else.
    fn whole(&self, link: Option<&str>) -> Option<String> {
        let link = link?.trim();
        if link.is_empty() || link.starts_with('#') {
            return None;
        }
        let url = self.base.join(link).ok()?;
        let leads = matches!(url.scheme(), "http" | "https" | "mailto" | "ftp");
        Some(String::from(url)).filter(|url| leads && url.len() <= LINK_BYTES_MAX)
    }

    fn link(&mut self, tag: &Tag) {
        // One link ends where the next begins.
        self.close("a");
        if let Some(url) = self.whole(tag.href.as_deref()) {
            let url = url.replace('(', "%28").replace(')', "%29");
            self.sign("a", "[", &format!("]({url})"));
        }
    }

    fn image(&mut self, tag: &Tag) {
        let alt = tag.alt.as_deref().unwrap_or_default();
        let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
        if alt.is_empty() {
            return;
        }
        let shown = match self.whole(tag.src.as_deref()) {
            Some(url) => format!("![{alt}]({})", url.replace(')', "%29")),
            None => format!("![{alt}]"),
        };
        self.put(&shown);
    }

    fn begin_pre(&mut self) {
        if self.pre == 0 {
            self.block(2);
            self.put("```");
            self.breaks = 1;
            self.pre_begun = true;
        }
        self.pre += 1;
    }

    fn end_pre(&mut self) {
        if self.pre == 1 {
            self.breaks = 1;
            self.put("```");
        }
        self.pre = self.pre.saturating_sub(1);
        self.block(2);
    }

    fn begin_list(&mut self, tag: &Tag) {
        let next = match tag.name.as_str() {
            "ol" => {
                let start = tag.start.as_deref().and_then(|start| start.trim().parse().ok());
                Some(start.unwrap_or(1))
            }
            _ => None,
        };
        self.deeper(Level::List { next, indent: 0 });
    }

    fn deeper(&mut self, level: Level) {
        let inside = self.levels.iter().any(|level| *level != Level::Quote);
        self.block(if inside && level != Level::Quote { 1 } else { 2 });
        match self.levels.len() < DEPTH_MAX {
            true => self.levels.push(level),
            false => self.beyond += 1,
        }
    }

    /// Ends the innermost level of a kind, and those in it.
    fn shallower(&mut self, is: impl Fn(Level) -> bool) {
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if let Some(at) = self.levels.iter().rposition(|level| is(*level)) {
            self.levels.truncate(at);
        }
        let inside = self.levels.iter().any(|level| *level != Level::Quote);
        self.block(if inside { 1 } else { 2 });
    }

    fn item(&mut self) {
        self.block(1);
        let mut sign = "- ".to_owned();
        if let Some(Level::List { next, indent }) = self.levels.last_mut() {
            // Its own sign stands where its other lines are indented.
            *indent = 0;
            if let Some(number) = next {
                sign = format!("{number}. ");
                *number = number.saturating_add(1);
            }
        }
        self.put(&sign);
        self.fresh = self.out.len();
        if let Some(Level::List { indent, .. }) = self.levels.last_mut() {
            *indent = sign.len();
        }
    }

    fn cell(&mut self) {
        self.space = false;
        match self.cells {
            0 => self.put("| "),
            _ => {
                self.breaks = 0;
                self.out.truncate(self.out.trim_end_matches(' ').len().max(self.fresh));
                self.put(" | ");
            }
        }
        self.cells += 1;
        self.fresh = self.out.len();
    }

    fn finish(mut self) -> String {
        while let Some(name) = self.around.first().map(|around| around.name.clone()) {
            self.close(&name);
        }
        if self.pre > 0 {
            self.pre = 1;
            self.end_pre();
        }
        let end = self.out.trim_end().len();
        self.out.truncate(end);
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }
}

#[cfg(test)]
mod tests;
