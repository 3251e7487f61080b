//! The agent's list of todos.

use polyloop_session::todos::{Priority, Status, Todo};
use serde::Serialize;

/// The agent wrote its list: this is all of it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct TodosChanged<'a> {
    pub todos: Vec<TodoTold<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct TodoTold<'a> {
    pub content: &'a str,
    /// pending, in_progress, completed or cancelled.
    pub status: &'static str,
    /// high, medium or low.
    pub priority: &'static str,
}

impl<'a> TodoTold<'a> {
    pub(in crate::unified) fn all(todos: &'a [Todo]) -> Vec<TodoTold<'a>> {
        todos.iter().map(TodoTold::of).collect()
    }

    fn of(todo: &'a Todo) -> TodoTold<'a> {
        TodoTold {
            content: &todo.content,
            status: match todo.status {
                Status::Pending => "pending",
                Status::InProgress => "in_progress",
                Status::Completed => "completed",
                Status::Cancelled => "cancelled",
            },
            priority: match todo.priority {
                Priority::High => "high",
                Priority::Medium => "medium",
                Priority::Low => "low",
            },
        }
    }
}
