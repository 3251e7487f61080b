//! The list of todos as people are shown it, and what is left of it, for the summary that takes the
//! place of the calls that were about it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::Text;

/// The tool whose arguments are the list.
pub const TODOS_TOOL: &str = "todo_write";

/// Of the open todos that stand behind a summary.
pub const OPEN_TODOS_BYTES_MAX: usize = 4_000;

/// One of the list that a call wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    pub content: Text,
    pub status: Status,
    pub priority: Priority,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    High,
    Medium,
    Low,
}

/// One line each, of those that are not over; `None` when nothing is open. Each is given by what
/// is to be done and its status.
pub fn open<'a>(todos: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let mut told = String::from("Open todos:\n");
    let mut any = false;
    for (content, status) in todos {
        let mark = match status {
            "completed" | "cancelled" => continue,
            "in_progress" => " (in progress)",
            _ => "",
        };
        let content = content.trim().replace('\n', " ");
        any = true;
        if told.len() + content.len() > OPEN_TODOS_BYTES_MAX {
            told.push_str("- and more; read the list of todos\n");
            break;
        }
        told.push_str(&format!("- {content}{mark}\n"));
    }
    any.then(|| told.trim_end().to_owned())
}

/// The same from the arguments of a call that wrote them, for logs of earlier versions, whose
/// results do not say it.
pub(crate) fn open_in(args: &str) -> Option<String> {
    let args: Value = serde_json::from_str(args).ok()?;
    let todos = args.get("todos")?.as_array()?;
    open(todos.iter().filter_map(|todo| {
        let word = |name| todo.get(name).and_then(Value::as_str);
        Some((word("content")?, word("status").unwrap_or_default()))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_told_and_what_is_over_is_not() {
        let args = r#"{"todos":[{"content":"a","status":"completed"},{"content":"b\nc",
            "status":"in_progress"},{"content":"d"},{"status":"pending"}]}"#;
        assert_eq!(open_in(args).as_deref(), Some("Open todos:\n- b c (in progress)\n- d"));
        for none in ["", "{}", r#"{"todos":7}"#, r#"{"todos":[]}"#] {
            assert_eq!(open_in(none), None);
        }
        let long =
            format!(r#"{{"todos":[{{"content":"a"}},{{"content":"{}"}}]}}"#, "x".repeat(5_000));
        let told = open_in(&long).unwrap_or_default();
        assert!(told.ends_with("and more; read the list of todos"), "{told}");
    }
}
