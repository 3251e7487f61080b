//! The screen: lines that are done go up into the terminal's own history, and below them stands a
//! panel with what is open and the line that is written.
//!
//! The panel is drawn anew in its place; what stands above it is never touched again.

use std::io::{self, Write};

use crate::style::{Colours, Line};

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const CLEAR_BELOW: &str = "\x1b[J";
const CLEAR_ALL: &str = "\x1b[H\x1b[2J";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Panel {
    /// No wider than the screen.
    pub rows: Vec<Line>,
    /// Row and column.
    pub cursor: (usize, usize),
}

pub struct Screen<W> {
    out: W,
    colours: Colours,
    size: Size,
    shown: Panel,
}

impl<W: Write> Screen<W> {
    pub fn new(out: W, colours: Colours, size: Size) -> Screen<W> {
        Screen { out, colours, size, shown: Panel::default() }
    }

    pub fn size(&self) -> Size {
        self.size
    }

    /// Puts lines above the panel and shows the panel, in one write.
    pub fn draw(&mut self, done: &[Line], panel: Panel) -> io::Result<()> {
        if done.is_empty() && panel == self.shown {
            return Ok(());
        }
        let mut text = self.to_top();
        for line in done {
            for row in line.rows(self.size.columns.saturating_sub(1)) {
                text.push_str(&row.write(self.colours));
                text.push_str("\r\n");
            }
        }
        let rows: Vec<String> = panel.rows.iter().map(|row| row.write(self.colours)).collect();
        text.push_str(&rows.join("\r\n"));
        let up = rows.len().saturating_sub(panel.cursor.0 + 1);
        if up > 0 {
            text.push_str(&format!("\x1b[{up}A"));
        }
        text.push('\r');
        if panel.cursor.1 > 0 {
            text.push_str(&format!("\x1b[{}C", panel.cursor.1));
        }
        text.push_str(SHOW_CURSOR);
        self.shown = panel;
        self.write(&text)
    }

    /// From the cursor's place to a cleared place where the panel began.
    fn to_top(&self) -> String {
        let mut text = HIDE_CURSOR.to_owned();
        let up = self.rows_above_cursor();
        if up > 0 {
            text.push_str(&format!("\x1b[{up}A"));
        }
        text.push('\r');
        text.push_str(CLEAR_BELOW);
        text
    }

    /// A terminal that became narrower has wrapped the rows that are too wide now.
    fn rows_above_cursor(&self) -> usize {
        let columns = self.size.columns.max(1);
        let (row, column) = self.shown.cursor;
        let above = self.shown.rows.iter().take(row);
        let wrapped: usize = above.map(|row| row.width().div_ceil(columns).max(1)).sum();
        wrapped + column / columns
    }

    pub fn resize(&mut self, size: Size) {
        self.size = size;
    }

    /// Takes the panel away; what comes next stands below what is done.
    pub fn leave(&mut self) -> io::Result<()> {
        let text = format!("{}{SHOW_CURSOR}", self.to_top());
        self.shown = Panel::default();
        self.write(&text)
    }

    pub fn clear(&mut self) -> io::Result<()> {
        self.shown = Panel::default();
        self.write(CLEAR_ALL)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
