//! The panel below the conversation: what is open, how things stand, and the line.

use std::io;
use std::time::Instant;

use super::{Chat, Connection, Writing};
use crate::screen::Panel;
use crate::story::seconds;
use crate::style::{Colour, Line, Style};
use crate::text::{one_line, shorten};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SPINNER_MILLIS: u128 = 120;
/// Of each call that runs.
const OUTPUT_LINES_OPEN: usize = 6;
const QUEUE_LINES_SHOWN: usize = 3;
/// With fewer there is room for what is needed alone.
const ROWS_SMALL: usize = 10;
const LEAD: &str = "› ";

impl Chat {
    pub(super) fn draw(&mut self) -> io::Result<()> {
        let panel = self.panel();
        let done = std::mem::take(&mut self.done);
        self.screen.draw(&done, panel)
    }

    fn panel(&mut self) -> Panel {
        let size = self.screen.size();
        let columns = size.columns.saturating_sub(1).max(10);
        let fit = |lines: Vec<Line>| -> Vec<Line> {
            lines.iter().flat_map(|line| line.fitted_rows(columns)).collect()
        };
        let below = fit(self.below());
        let above = fit(self.above(columns));
        let most = size.rows.saturating_sub(1).max(3);
        let lead = match &self.writing {
            Writing::Message => LEAD,
            Writing::Reason(_) => "reason › ",
            Writing::Feedback(_) => "what to change › ",
        };
        let input = self.editor.layout(lead, columns);
        let input =
            input.bounded(most.saturating_sub(above.len() + below.len()).max(most / 2).max(1));
        // What is open has the room that is left, and shows its end.
        let taken = above.len() + below.len() + input.rows.len();
        let mut rows = fit(self.story.open_lines(OUTPUT_LINES_OPEN));
        let room = most.saturating_sub(taken).min(most / 2);
        rows.drain(..rows.len().saturating_sub(room));
        rows.extend(above);
        let cursor = (rows.len() + input.cursor.0, input.cursor.1);
        for (at, row) in input.rows.iter().enumerate() {
            let (lead, text) = if at == 0 { split(row, input.lead) } else { ("", row.as_str()) };
            let style = Style::coloured(Colour::Blue).bold();
            rows.push(Line::of(lead, style).and(text, Style::PLAIN).unwrapped());
        }
        rows.extend(below);
        // On a tiny screen the line matters most.
        let over = rows.len().saturating_sub(most).min(cursor.0);
        rows.drain(..over);
        rows.truncate(most);
        Panel { rows, cursor: (cursor.0 - over, cursor.1) }
    }

    /// Between what is open and the line.
    fn above(&mut self, columns: usize) -> Vec<Line> {
        let mut lines = vec![Line::new()];
        lines.extend(self.status());
        for (at, queued) in self.story.queue().iter().enumerate().take(QUEUE_LINES_SHOWN) {
            let text = format!("  queued {}: ", at + 1);
            let message = one_line(&queued.message, columns.saturating_sub(text.len()));
            lines.push(Line::of(&text, Style::DIM).and(&message, Style::DIM));
        }
        let more = self.story.queue().len().saturating_sub(QUEUE_LINES_SHOWN);
        if more > 0 {
            lines.push(Line::of(&format!("  … {more} more; /queue lists them"), Style::DIM));
        }
        for (_, text) in &self.outbox {
            let message = one_line(text, columns.saturating_sub(12));
            lines.push(Line::of(&format!("  sending: {message}"), Style::DIM));
        }
        lines.extend(self.question());
        lines
    }

    /// What is asked, as far as it can be answered now.
    fn question(&mut self) -> Vec<Line> {
        if !self.story.is_asked() || self.writing != Writing::Message {
            return Vec::new();
        }
        let (empty, armed) = (self.editor.is_empty(), self.is_armed());
        let small = self.screen.size().rows < ROWS_SMALL;
        let Some(wait) = self.story.asked() else { return Vec::new() };
        let words = matches!(wait.kind, crate::story::wait::Kind::Question { .. });
        if wait.answered {
            return Vec::new();
        }
        if words || armed {
            let mut keys = wait.keys();
            if small {
                keys.truncate(1);
            }
            return keys;
        }
        if empty {
            return Vec::new();
        }
        vec![Line::of("? something is asked; Esc puts your line aside to answer it", Style::YELLOW)]
    }

    fn status(&self) -> Option<Line> {
        let now = Instant::now();
        if let Connection::Down { why, again_at } = &self.connection {
            let wait = again_at.saturating_duration_since(now).as_secs() + 1;
            let text = format!("the connection is lost ({why}); again in {wait} s");
            return Some(Line::of("✗ ", Style::RED).and(&text, Style::RED));
        }
        if !self.story.is_working() {
            return None;
        }
        if self.story.is_asked() {
            return Some(Line::of("? waiting for you", Style::YELLOW));
        }
        let elapsed = self.story.elapsed(now);
        let at = elapsed.map_or(0, |time| time.as_millis() / SPINNER_MILLIS) as usize;
        let mark = SPINNER[at % SPINNER.len()];
        let time = elapsed.map(|time| format!(" {}", seconds(time))).unwrap_or_default();
        let line = Line::of(mark, Style::CYAN).and(&format!(" working{time}"), Style::CYAN);
        Some(line.and("  Esc interrupts", Style::DIM))
    }

    /// Under the line.
    fn below(&self) -> Vec<Line> {
        if !self.hint.is_empty() || self.screen.size().rows < ROWS_SMALL {
            return self.hint.clone();
        }
        let story = &self.story;
        let mut parts: Vec<String> = [&story.mode, &story.model, &story.agent]
            .into_iter()
            .filter(|word| !word.is_empty())
            .cloned()
            .collect();
        parts.extend(story.used.map(|used| format!("{:.0} % of the window", used * 100.0)));
        parts.extend(story.title.clone().or_else(|| self.session.clone()));
        let columns = self.screen.size().columns.saturating_sub(1);
        let text = crate::text::clean(&parts.join(" · "));
        vec![Line::of(&shorten(&text, columns), Style::DIM)]
    }
}

/// A row, behind so many columns; the lead is of characters of one column.
fn split(row: &str, columns: usize) -> (&str, &str) {
    match row.char_indices().nth(columns) {
        Some((at, _)) => row.split_at(at),
        None => (row, ""),
    }
}
