//! How the text of the line stands in rows, and where the cursor is.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::{clean, grapheme_width, width};

#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// The rows, each no wider than the screen.
    pub rows: Vec<String>,
    /// Row and column.
    pub cursor: (usize, usize),
    /// Columns of what stands before the text in the first row; the others begin behind as many.
    pub lead: usize,
}

impl Layout {
    pub fn of(text: &str, cursor: usize, lead: &str, columns: usize) -> Layout {
        let lead = clean(lead);
        let lead_columns = width(&lead);
        // The last column stays free for the cursor.
        let columns = columns.saturating_sub(1).max(lead_columns + 2);
        let blank = " ".repeat(lead_columns);
        let (mut rows, mut row, mut used) = (Vec::new(), lead, lead_columns);
        let mut place = None;
        for (at, grapheme) in text.grapheme_indices(true) {
            if grapheme == "\n" || grapheme == "\r\n" {
                if at == cursor {
                    place = Some((rows.len(), used));
                }
                rows.push(std::mem::replace(&mut row, blank.clone()));
                used = lead_columns;
                continue;
            }
            let shown = clean(grapheme);
            let needs = shown.graphemes(true).map(grapheme_width).sum::<usize>();
            if used + needs > columns && used > lead_columns {
                rows.push(std::mem::replace(&mut row, blank.clone()));
                used = lead_columns;
            }
            if at == cursor {
                place = Some((rows.len(), used));
            }
            row.push_str(&shown);
            used += needs;
        }
        let cursor = place.unwrap_or((rows.len(), used));
        rows.push(row);
        Layout { rows, cursor, lead: lead_columns }
    }

    /// At most so many rows, with the cursor among them.
    pub fn bounded(mut self, most: usize) -> Layout {
        let most = most.max(1);
        if self.rows.len() > most {
            let from = (self.cursor.0 + 1).saturating_sub(most).min(self.rows.len() - most);
            self.rows = self.rows.split_off(from);
            self.rows.truncate(most);
            self.cursor.0 -= from;
        }
        self
    }
}
