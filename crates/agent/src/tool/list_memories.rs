//! Names everything that is remembered.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::Judgement;

use super::files::{Args, Done, wait};
use super::memory;
use super::{Place, Progress, Run, Tool, ToolSpec};

const NAME: &str = "list_memories";

const DESCRIPTION: &str = "Lists the keys of everything that is remembered for this user, as a \
     JSON list.";

pub struct ListMemories;

impl Tool for ListMemories {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({ "type": "object", "properties": {} });
        ToolSpec { name: NAME, description: DESCRIPTION.into(), parameters: parameters.into() }
    }

    fn may_read(&self) -> bool {
        true
    }

    fn judge<'a>(&'a self, args: &'a str, _: &'a Place) -> BoxFuture<'a, Result<Judgement, Text>> {
        let judged = Args::parse(NAME, args);
        let judged = judged.map(|_| memory::reads(NAME, "lists the keys of memories", &[]));
        std::future::ready(judged).boxed()
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        let Run { args, place, stop, .. } = run;
        wait(NAME, stop, "", async move {
            Args::parse(NAME, &args).map_err(|why| why.to_string())?;
            let keys = place.memories.keys().await.map_err(|error| error.to_string())?;
            let (mut text, count) = memory::list(keys.iter().map(memory::json));
            if count < keys.len() {
                let more = keys.len() - count;
                text.push_str(&format!("({more} more; find them with search_memories)\n"));
            }
            Ok(Done::text(text))
        })
    }
}
