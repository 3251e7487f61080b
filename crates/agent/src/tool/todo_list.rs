//! The list of todos, and the session's file that holds it for people.
//!
//! Rewrites only the task lines of the file's two sections; whatever else people wrote there stays.
//! Knows where the file is from the `Place` alone, and writes it as every file is written: whole,
//! and through no link.

use std::path::Path;

use polyloop_session::Text;
use polyloop_session::todos::{self, Priority, Status};
use serde::Serialize;
use serde_json::Value;

use super::Place;
use super::files::Args;
use crate::patch::{PatchError, Root, plan_content};

pub(super) const TODOS_MAX: usize = 200;
const CONTENT_BYTES_MAX: usize = 2_000;
const ID_BYTES_MAX: usize = 64;
/// Of a file that is read.
const FILE_BYTES_MAX: usize = 1024 * 1024;

const CURRENT: &str = "## Current Tasks";
const COMPLETED: &str = "## Completed Tasks";
const NO_CURRENT: &str = "- [ ] No tasks yet - add your goals here";
const NO_COMPLETED: &str = "(Tasks will be moved here when completed)";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Todo {
    pub id: String,
    pub content: String,
    pub status: &'static str,
    pub priority: &'static str,
}

const STATUSES: [&str; 4] = ["pending", "in_progress", "completed", "cancelled"];
const PRIORITIES: [&str; 3] = ["high", "medium", "low"];

impl Todo {
    /// The error says nothing of the tool.
    fn parse(number: usize, value: &Value) -> Result<Todo, String> {
        let args = Args::inner("todo_write", &format!("todo {number}"), value);
        let args = args.map_err(|why| why.to_string())?;
        let unfit = |why: polyloop_session::Text| format!("{why} (todo {number})");
        let content = args.required(&["content"], "what is to be done").map_err(unfit)?;
        let content = line(&content);
        if content.is_empty() || content.len() > CONTENT_BYTES_MAX {
            return Err(format!(
                "todo_write: todo {number}: `content` must have 1 to {CONTENT_BYTES_MAX} bytes"
            ));
        }
        let id = match value.get("id") {
            Some(Value::String(id)) => word(id),
            Some(Value::Number(id)) => id.to_string(),
            _ => String::new(),
        };
        let id = if id.is_empty() { number.to_string() } else { id };
        let one_of = |name: &str, all: &[&'static str], preset| match args.text(&[name]) {
            Ok(None) => Ok(preset),
            Ok(Some(text)) => all.iter().copied().find(|one| *one == text).ok_or_else(|| {
                let all = all.join(", ");
                format!("todo_write: todo {number}: `{name}` is {text:?}; use one of {all}")
            }),
            Err(why) => Err(unfit(why)),
        };
        let status = one_of("status", &STATUSES, "pending")?;
        Ok(Todo { id, content, status, priority: one_of("priority", &PRIORITIES, "medium")? })
    }

    fn is_over(&self) -> bool {
        matches!(self.status, "completed" | "cancelled")
    }

    fn to_line(&self) -> String {
        let (mark, Todo { id, content, status, priority }) =
            (if self.is_over() { 'x' } else { ' ' }, self);
        format!("- [{mark}] {content} <!-- {id} {status} {priority} -->")
    }

    /// A task line, also one that a person wrote.
    fn from_line(number: usize, text: &str) -> Option<Todo> {
        let (is_over, text) = task(text)?;
        let (content, facts) = match text.rsplit_once("<!--") {
            Some((content, facts)) => (content, facts.trim_end().trim_end_matches("-->")),
            None => (text, ""),
        };
        let mut facts = facts.split_whitespace();
        let id = facts.next().map_or_else(|| number.to_string(), str::to_owned);
        let mut known = |all: &[&'static str]| {
            let fact = facts.next();
            all.iter().copied().find(|one| Some(*one) == fact)
        };
        // A person ticks a task off by its mark.
        let status = match (known(&STATUSES), is_over) {
            (Some(status @ ("pending" | "in_progress")), false) => status,
            (Some("cancelled"), true) => "cancelled",
            (_, false) => "pending",
            (_, true) => "completed",
        };
        let priority = known(&PRIORITIES).unwrap_or("medium");
        Some(Todo { id, content: content.trim().to_owned(), status, priority })
    }
}

/// Whether a task line is ticked, and its text.
fn task(text: &str) -> Option<(bool, &str)> {
    let text = text.trim_start();
    let text = text.strip_prefix("- [").or_else(|| text.strip_prefix("* ["))?;
    let (mark, text) = text.split_once("] ")?;
    match mark {
        " " => Some((false, text)),
        "x" | "X" => Some((true, text)),
        _ => None,
    }
}

/// On one line, without what would end the remark behind it.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ").replace("<!--", "<! --").replace("-->", "-- >")
}

fn word(text: &str) -> String {
    let kept = text.chars().filter(|c| c.is_ascii_alphanumeric() || "._:#".contains(*c));
    kept.take(ID_BYTES_MAX).collect()
}

pub(super) fn parse(values: &[Value]) -> Result<Vec<Todo>, String> {
    if values.len() > TODOS_MAX {
        let count = values.len();
        return Err(format!("todo_write: {count} todos, the limit is {TODOS_MAX}"));
    }
    values.iter().enumerate().map(|(index, value)| Todo::parse(index + 1, value)).collect()
}

/// As the model sees them: how many are open, then the list.
pub(super) fn told(todos: &[Todo]) -> String {
    let open = todos.iter().filter(|todo| !todo.is_over()).count();
    let list = serde_json::to_string_pretty(todos).unwrap_or_default();
    format!("{open} todos\n{list}\n")
}

/// What is open of them, for a summary.
pub(super) fn open(todos: &[Todo]) -> Text {
    let todos = todos.iter().map(|todo| (&*todo.content, todo.status));
    polyloop_session::todos::open(todos).unwrap_or_default().into()
}

/// The list as people are shown it.
pub(super) fn shown(todos: &[Todo]) -> Vec<todos::Todo> {
    let one = |todo: &Todo| todos::Todo {
        content: todo.content.as_str().into(),
        status: match todo.status {
            "in_progress" => Status::InProgress,
            "completed" => Status::Completed,
            "cancelled" => Status::Cancelled,
            _ => Status::Pending,
        },
        priority: match todo.priority {
            "high" => Priority::High,
            "low" => Priority::Low,
            _ => Priority::Medium,
        },
    };
    todos.iter().map(one).collect()
}

/// The todos of a text in the form of the file.
fn todos_in(text: &str) -> Vec<Todo> {
    let mut todos = Vec::new();
    let mut is_task_section = false;
    for line in text.lines() {
        if line.starts_with('#') {
            is_task_section = [CURRENT, COMPLETED].contains(&line.trim_end());
        } else if is_task_section && line.trim() != NO_CURRENT {
            todos.extend(Todo::from_line(todos.len() + 1, line));
        }
    }
    todos.truncate(TODOS_MAX);
    todos
}

/// The text with these todos in place of its own.
fn with_todos(text: &str, todos: &[Todo]) -> String {
    let lines_of = |is_over: bool, none: &str| {
        let lines = todos.iter().filter(|todo| todo.is_over() == is_over).map(Todo::to_line);
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() { none.to_owned() } else { lines.join("\n") }
    };
    let (current, completed) = (lines_of(false, NO_CURRENT), lines_of(true, NO_COMPLETED));
    let mut out = String::new();
    let (mut is_task_section, mut after_heading) = (false, false);
    for line in text.lines() {
        if line.starts_with('#') {
            is_task_section = [CURRENT, COMPLETED].contains(&line.trim_end());
            out.push_str(line);
            out.push('\n');
            if is_task_section {
                let tasks = if line.trim_end() == CURRENT { &current } else { &completed };
                out.push_str(&format!("\n{tasks}\n"));
            }
            after_heading = is_task_section;
            continue;
        }
        let is_ours = task(line).is_some() || [NO_CURRENT, NO_COMPLETED].contains(&line.trim());
        if is_task_section && (is_ours || after_heading && line.trim().is_empty()) {
            continue;
        }
        if after_heading {
            out.push('\n');
            after_heading = false;
        }
        out.push_str(line);
        out.push('\n');
    }
    for (heading, tasks) in [(CURRENT, current), (COMPLETED, completed)] {
        if !text.lines().any(|line| line.trim_end() == heading) {
            out.push_str(&format!("\n{heading}\n\n{tasks}\n"));
        }
    }
    separated(&out)
}

/// With an empty line before every heading.
fn separated(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if line.starts_with('#') && !out.is_empty() && !out.ends_with("\n\n") {
            out.push('\n');
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// The session's file: its directory and its name in it.
fn file(place: &Place) -> Option<(&Path, &str)> {
    let path = place.todos.as_deref()?;
    Some((path.parent()?, path.file_name()?.to_str()?))
}

/// What is kept; nothing where nothing is.
pub(super) fn read(place: &Place) -> Result<Option<Vec<Todo>>, String> {
    let Some((directory, name)) = file(place) else { return Ok(None) };
    let failed = |error: PatchError| error.to_string();
    let root = Root::open(directory).map_err(failed)?;
    let Some((file, _)) = root.open_file(name).map_err(failed)? else { return Ok(None) };
    let mut text = String::new();
    let file = std::io::Read::take(file, FILE_BYTES_MAX as u64);
    std::io::Read::read_to_string(&mut { file }, &mut text)
        .map_err(|error| format!("the todos file cannot be read: {error}"))?;
    Ok(Some(todos_in(&text)))
}

/// Whether there is a file to keep them in.
pub(super) fn write(place: &Place, todos: &[Todo]) -> Result<bool, String> {
    let Some((directory, name)) = file(place) else { return Ok(false) };
    let root = Root::open(directory).map_err(|error| error.to_string())?;
    let planned = plan_content(&root, name, |before| {
        let before = before.unwrap_or(b"# Session Todos\n");
        if before.len() > FILE_BYTES_MAX {
            return Err(format!("has more than {FILE_BYTES_MAX} bytes"));
        }
        let text = std::str::from_utf8(before).map_err(|_| "is not UTF-8".to_owned())?;
        Ok(with_todos(text, todos).into_bytes())
    });
    match planned.and_then(|plan| plan.apply(place.journal.as_ref())) {
        Ok(_) | Err(PatchError::Unchanged) => Ok(true),
        Err(error) => Err(format!("the todos file cannot be written: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn todo(id: &str, content: &str, status: &'static str, priority: &'static str) -> Todo {
        Todo { id: id.into(), content: content.into(), status, priority }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let todos = vec![
            todo("1", "first", "in_progress", "high"),
            todo("b", "a [link](x) and `code`", "pending", "medium"),
            todo("3", "done", "completed", "low"),
            todo("4", "not done", "cancelled", "medium"),
        ];
        let text = "# Terraine Session Todos\n\nSession ID: `s`\n\n## Current Tasks\n\n- [ ] No \
                    tasks yet - add your goals here\n\n## Completed Tasks\n\n(Tasks will be moved \
                    here when completed)\n\n---\n\n*A remark.*\n";
        let written = with_todos(text, &todos);
        assert_eq!(todos_in(&written), todos, "{written}");
        assert_eq!(with_todos(&written, &todos), written, "a second time changes nothing");
        assert_eq!(with_todos(&written, &[]), text, "without todos it is as it was");
        assert!(todos_in(text).is_empty());
    }

    #[test]
    fn what_people_wrote_stays_and_is_understood() {
        let text = "# Mine\n\n## Current Tasks\n\nA note.\n* [ ] by hand\n- [X] ticked <!-- 7 \
                    pending high -->\n\n## Notes\n\n- [ ] not a todo\n";
        let read = todos_in(text);
        let want =
            [todo("1", "by hand", "pending", "medium"), todo("7", "ticked", "completed", "high")];
        assert_eq!(read, want);
        let written = with_todos(text, &[todo("1", "new", "pending", "medium")]);
        for kept in ["# Mine\n", "\nA note.\n", "## Notes\n\n- [ ] not a todo\n", COMPLETED] {
            assert!(written.contains(kept), "{kept:?}: {written}");
        }
        assert!(!written.contains("by hand"), "{written}");
    }

    #[test]
    fn a_content_stays_on_its_line() {
        let value = serde_json::json!({ "content": "a\n## b\r\n--> <!-- c", "id": "<x> 1" });
        let todo = Todo::parse(1, &value).unwrap();
        let text = with_todos("", std::slice::from_ref(&todo));
        assert_eq!(todos_in(&text), [todo]);
    }
}
