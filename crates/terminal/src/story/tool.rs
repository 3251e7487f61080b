//! A tool call as it is shown: what was called, the tail of its output while it runs, how it ended.

use std::collections::VecDeque;

use serde_json::Value;

use crate::markdown::diff_style;
use crate::style::{Line, Style};
use crate::text::{count, lines, one_line, shorten};

/// Lines of a command's output that stay when it is over.
const OUTPUT_LINES_SHOWN: usize = 12;
const RESULT_LINES_SHOWN: usize = 4;
const DIFF_LINES_SHOWN: usize = 40;
/// Of one line; the rest is cut off.
const LINE_CHARS_SHOWN: usize = 500;
const HEAD_COLUMNS: usize = 200;

#[derive(Debug)]
pub struct ToolCall {
    pub id: String,
    name: String,
    arguments: Value,
    tail: VecDeque<String>,
    open: String,
    lines: usize,
    exit_code: Option<i64>,
}

impl ToolCall {
    pub fn new(id: String, name: String, arguments: Value) -> ToolCall {
        let (tail, open) = (VecDeque::new(), String::new());
        ToolCall { id, name, arguments, tail, open, lines: 0, exit_code: None }
    }

    pub fn output(&mut self, output: &str, exit_code: Option<i64>) {
        self.exit_code = exit_code.or(self.exit_code);
        self.open.push_str(output);
        let Some(at) = self.open.rfind('\n') else {
            // A line without an end is not kept whole either.
            if self.open.len() > LINE_CHARS_SHOWN * 8 {
                self.open = shorten(&self.open, LINE_CHARS_SHOWN);
            }
            return;
        };
        let rest = self.open.split_off(at + 1);
        let whole = std::mem::replace(&mut self.open, rest);
        for line in lines(whole.trim_end_matches('\n')) {
            self.keep(line);
        }
    }

    fn keep(&mut self, line: &str) {
        self.lines += 1;
        self.tail.push_back(line.chars().take(LINE_CHARS_SHOWN).collect());
        if self.tail.len() > OUTPUT_LINES_SHOWN {
            self.tail.pop_front();
        }
    }

    fn head(&self, style: Style) -> Line {
        let what = summary(&self.name, &self.arguments);
        Line::of("● ", style).and(&self.name, Style::BOLD).and(&what, Style::PLAIN).hang(2)
    }

    /// As it is shown while it runs.
    pub fn open_lines(&self, most: usize) -> Vec<Line> {
        let mut shown = vec![self.head(Style::YELLOW)];
        let mut tail: Vec<&str> = self.tail.iter().map(String::as_str).collect();
        tail.extend(Some(self.open.as_str()).filter(|open| !open.is_empty()));
        let from = tail.len().saturating_sub(most);
        shown.extend(tail[from..].iter().map(|line| output_line(line)));
        shown
    }

    /// As it stays.
    pub fn ended(mut self, success: bool, told: &str) -> Vec<Line> {
        let open = std::mem::take(&mut self.open);
        if !open.is_empty() {
            self.keep(&open);
        }
        let style = if success { Style::GREEN } else { Style::RED };
        let mut shown = vec![self.head(style)];
        let is_command = self.lines > 0 || self.exit_code.is_some();
        let diff = diff(&self.arguments);
        if is_command {
            let above = self.lines - self.tail.len();
            if above > 0 {
                let more = format!("  │ … {} lines before these", count(above as u64));
                shown.push(Line::of(&more, Style::DIM));
            }
            shown.extend(self.tail.iter().map(|line| output_line(line)));
            shown.extend(
                self.exit_code
                    .filter(|code| *code != 0)
                    .map(|code| Line::of(&format!("  ✗ exit code {code}"), Style::RED)),
            );
        } else if success && !diff.is_empty() {
            shown.extend(diff_lines(&diff, DIFF_LINES_SHOWN));
        } else if self.name != "TodoWrite" || !success {
            shown.extend(result_lines(told, success));
        }
        shown
    }
}

fn output_line(line: &str) -> Line {
    Line::of("  │ ", Style::DIM).and(line, Style::DIM).unwrapped()
}

fn result_lines(told: &str, success: bool) -> Vec<Line> {
    let style = if success { Style::DIM } else { Style::RED };
    let all: Vec<&str> = lines(told.trim_end()).collect();
    let mut shown: Vec<Line> = all
        .iter()
        .take(RESULT_LINES_SHOWN)
        .filter(|line| !line.is_empty())
        .map(|line| {
            Line::of("  └ ", Style::DIM).and(&shorten(line, LINE_CHARS_SHOWN), style).hang(4)
        })
        .collect();
    if all.len() > RESULT_LINES_SHOWN {
        let more = format!("    … {} more lines", count((all.len() - RESULT_LINES_SHOWN) as u64));
        shown.push(Line::of(&more, Style::DIM));
    }
    shown
}

/// What a call is about, in a line.
pub fn summary(name: &str, arguments: &Value) -> String {
    let field = |names: &[&str]| names.iter().find_map(|name| arguments[*name].as_str());
    let what = match name {
        "Bash" => field(&["command"]).unwrap_or_default().to_owned(),
        "TodoWrite" | "TodoRead" => String::new(),
        "apply_patch" => patched(field(&["patch"]).unwrap_or_default()),
        "Grep" | "Glob" => field(&["pattern"]).unwrap_or_default().to_owned(),
        _ => match field(&["path", "file_path", "url", "from", "key", "query", "name"]) {
            Some(path) => path.to_owned(),
            None => arguments.to_string(),
        },
    };
    let what = one_line(&what, HEAD_COLUMNS);
    if what.is_empty() || what == "{}" { String::new() } else { format!("  {what}") }
}

/// The files of a patch.
fn patched(patch: &str) -> String {
    let files: Vec<&str> = patch
        .lines()
        .filter_map(|line| line.strip_prefix("*** ")?.split_once(" File: "))
        .map(|(_, file)| file)
        .collect();
    files.join(", ")
}

/// The lines of an edit, as far as its arguments tell them.
pub fn diff(arguments: &Value) -> Vec<String> {
    if let Some(patch) = arguments["patch"].as_str() {
        return lines(patch).map(str::to_owned).collect();
    }
    if let Some(edits) = arguments["edits"].as_array() {
        return edits.iter().flat_map(replaced).collect();
    }
    if let (Some(content), Some(_)) = (arguments["content"].as_str(), arguments["path"].as_str()) {
        return lines(content.trim_end()).map(|line| format!("+{line}")).collect();
    }
    replaced(arguments)
}

/// What one edit takes out and puts in, without what stays the same at both ends.
fn replaced(edit: &Value) -> Vec<String> {
    let field = |names: [&str; 2]| names.iter().find_map(|name| edit[*name].as_str());
    let old = field(["oldString", "old_string"]);
    let new = field(["newString", "new_string"]);
    let (Some(old), Some(new)) = (old, new) else { return Vec::new() };
    let (old, new): (Vec<&str>, Vec<&str>) = (lines(old).collect(), lines(new).collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let ahead = old.iter().zip(&new).take_while(same).count();
    let behind = old[ahead..].iter().rev().zip(new[ahead..].iter().rev()).take_while(same).count();
    let taken = old[ahead..old.len() - behind].iter().map(|line| format!("-{line}"));
    taken.chain(new[ahead..new.len() - behind].iter().map(|line| format!("+{line}"))).collect()
}

/// A diff in its colours, up to so many lines.
pub fn diff_lines(diff: &[String], most: usize) -> Vec<Line> {
    let is_frame = |line: &&String| line.starts_with("*** Begin") || line.starts_with("*** End");
    let diff: Vec<&String> =
        diff.iter().filter(|line| !is_frame(line) && !line.is_empty()).collect();
    let mut shown: Vec<Line> = diff
        .iter()
        .take(most)
        .map(|line| Line::of("  │ ", Style::DIM).and(line, diff_style(line)).unwrapped())
        .collect();
    if diff.len() > most {
        let more = format!("  │ … {} more lines", count((diff.len() - most) as u64));
        shown.push(Line::of(&more, Style::DIM));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plain(lines: &[Line]) -> Vec<String> {
        lines.iter().map(Line::plain).collect()
    }

    fn bash(command: &str) -> ToolCall {
        ToolCall::new("tool-1".into(), "Bash".into(), json!({ "command": command }))
    }

    #[test]
    fn output_comes_in_pieces() {
        let mut call = bash("ls");
        for piece in ["a", "\nb\n", "c"] {
            call.output(piece, None);
        }
        assert_eq!(plain(&call.open_lines(2)), ["● Bash  ls", "  │ b", "  │ c"]);
        call.output("", Some(0));
        assert_eq!(plain(&call.ended(true, "x")), ["● Bash  ls", "  │ a", "  │ b", "  │ c"]);
    }

    #[test]
    fn only_the_tail_stays() {
        let mut call = bash("seq 100");
        let all: String = (1..=100).map(|n| format!("{n}\n")).collect();
        call.output(&all, Some(3));
        let shown = plain(&call.ended(false, ""));
        assert_eq!(shown[1], "  │ … 88 lines before these");
        assert_eq!(shown[2], "  │ 89");
        assert_eq!(shown.last().unwrap(), "  ✗ exit code 3");
    }

    #[test]
    fn edits_show_what_they_change() {
        let edit = json!({"path": "f", "old_string": "a\nb\nc", "new_string": "a\nB\nc"});
        assert_eq!(diff(&edit), ["-b", "+B"]);
        let write = json!({"path": "f", "content": "a\nb\n"});
        assert_eq!(diff(&write), ["+a", "+b"]);
        let call = ToolCall::new("t".into(), "Edit".into(), edit);
        assert_eq!(plain(&call.ended(true, "Edited")), ["● Edit  f", "  │ -b", "  │ +B"]);
    }

    #[test]
    fn a_call_is_named_by_what_it_is_about() {
        assert_eq!(summary("Bash", &json!({"command": "a\nb"})), "  a …");
        assert_eq!(summary("Read", &json!({"path": "x\x1b[2J"})), "  x␛[2J");
        assert_eq!(summary("odd", &json!({"n": 1})), r#"  {"n":1}"#);
        let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** End Patch";
        assert_eq!(summary("apply_patch", &json!({"patch": patch})), "  a, b");
    }

    #[test]
    fn results_are_short() {
        let call = ToolCall::new("t".into(), "Read".into(), json!({"path": "f"}));
        let told: String = (1..=9).map(|n| format!("{n}\n")).collect();
        let shown = plain(&call.ended(true, &told));
        assert_eq!(shown.len(), 6);
        assert_eq!(shown[5], "    … 5 more lines");
    }
}
