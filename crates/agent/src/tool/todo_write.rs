//! Writes the session's list of todos: all of it, each time.
//!
//! Touches nothing but the session's own todos file, so nobody is asked. Without such a file the
//! list stands in the conversation alone.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement, Risk};

use super::files::{Args, Done, edit};
use super::todo_list::{self, TODOS_MAX, Todo};
use super::{Place, Progress, Run, Tool, ToolSpec};

const DESCRIPTION: &str = "Writes the list of todos for this session, in place of the one before: \
     give all of them, also those that are done. Use it for work of several steps: write the steps \
     down, mark one as in_progress when you begin it and as completed when it is done.";

pub struct TodoWrite;

impl Tool for TodoWrite {
    fn spec(&self) -> ToolSpec {
        let todo = serde_json::json!({
            "type": "object",
            "properties": {
                "id": { "type": "string", "description": "A short name that stays the same." },
                "content": { "type": "string", "description": "What is to be done, in a line." },
                "status": {
                    "type": "string",
                    "enum": ["pending", "in_progress", "completed", "cancelled"],
                },
                "priority": { "type": "string", "enum": ["high", "medium", "low"] },
            },
            "required": ["content"],
        });
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "todos": { "type": "array", "items": todo, "maxItems": TODOS_MAX },
            },
            "required": ["todos"],
        });
        ToolSpec {
            name: "todo_write",
            description: DESCRIPTION.into(),
            parameters: parameters.into(),
        }
    }

    fn judge<'a>(&'a self, args: &'a str, _: &'a Place) -> BoxFuture<'a, Result<Judgement, Text>> {
        let judged = parse(args).map(|_| own("todo_write", Effect::Edit, "writes its todos"));
        std::future::ready(judged).boxed()
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        edit("todo_write", run, parse, |todos, run, _| {
            let kept = todo_list::write(&run.place, todos)?;
            let mut text = todo_list::told(todos);
            if !kept {
                text.push_str("(this session has no todos file; the list stands here alone)\n");
            }
            let (open, list) = (todo_list::open(todos), todo_list::shown(todos));
            Ok(Done { text, todos: Some(open), todo_list: Some(list), ..Done::default() })
        })
    }
}

fn parse(json: &str) -> Result<Vec<Todo>, Text> {
    let args = Args::parse("todo_write", json)?;
    if !args.has("todos") {
        return Err("todo_write: `todos` is missing; give the whole list".into());
    }
    todo_list::parse(args.list("todos")?).map_err(Text::from)
}

/// The judgement of a call that is about the session's own list.
pub(super) fn own(name: &str, effect: Effect, reason: &str) -> Judgement {
    Judgement {
        effect,
        safe: true,
        confined: true,
        sandbox: false,
        refusal: None,
        risk: Risk::Low,
        reason: reason.into(),
        command: vec![name.into()],
        patch: None,
        diff: None,
        plan_file: None,
        covers: "".into(),
        keys: Vec::new(),
        rule: None,
    }
}
