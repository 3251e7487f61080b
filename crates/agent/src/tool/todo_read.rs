//! Reads the session's list of todos, as it and people left it.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement};

use super::files::{Args, Done, look};
use super::todo_write::own;
use super::{Place, Progress, Run, Tool, ToolSpec, todo_list};

const DESCRIPTION: &str = "Reads the list of todos for this session: how many are open, then all \
     of them. People may have changed it since you wrote it.";

const NO_FILE: &str = "0 todos\n[]\n(this session has no todos file; what todo_write was last \
     given is the list)\n";

pub struct TodoRead;

impl Tool for TodoRead {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({ "type": "object", "properties": {} });
        ToolSpec {
            name: "todo_read",
            description: DESCRIPTION.into(),
            parameters: parameters.into(),
        }
    }

    fn may_read(&self) -> bool {
        true
    }

    fn judge<'a>(&'a self, args: &'a str, _: &'a Place) -> BoxFuture<'a, Result<Judgement, Text>> {
        let judged = Args::parse("todo_read", args);
        let judged = judged.map(|_| own("todo_read", Effect::Read, "reads its todos"));
        std::future::ready(judged).boxed()
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        look("todo_read", run, |run, _| {
            Args::parse("todo_read", &run.args).map_err(|why| why.to_string())?;
            let Some(todos) = todo_list::read(&run.place)? else { return Ok(Done::text(NO_FILE)) };
            let (text, todos) = (todo_list::told(&todos), Some(todo_list::open(&todos)));
            Ok(Done { text, todos, ..Done::default() })
        })
    }
}
