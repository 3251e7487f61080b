//! Loads a skill of the working directory: what it says about how something is done here.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::Judgement;

use super::files::{Args, Done, look};
use super::skills::{self, SKILL_BYTES_MAX};
use super::{Place, Progress, Run, Tool, ToolSpec, memory};

const NAME: &str = "skill";

const DESCRIPTION: &str = "Loads a skill of this working directory: a text that says how a certain \
     task is done here. Use it before you begin a task that one of the skills is about. A name \
     that is none is answered with the list of them all.";

pub struct Skill;

impl Tool for Skill {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": { "name": { "type": "string", "description": "The skill's name." } },
            "required": ["name"],
        });
        ToolSpec { name: NAME, description: DESCRIPTION.into(), parameters: parameters.into() }
    }

    fn may_read(&self) -> bool {
        true
    }

    fn judge<'a>(&'a self, args: &'a str, _: &'a Place) -> BoxFuture<'a, Result<Judgement, Text>> {
        let judged = parse(args).map(|name| memory::reads(NAME, "loads a skill", &[&name]));
        std::future::ready(judged).boxed()
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        look(NAME, run, |run, _| {
            let name = parse(&run.args).map_err(|why| why.to_string())?;
            let skill = skills::find(&name, &run.place)?;
            let (path, has_directory) = (skill.path.clone(), skill.has_directory);
            let (text, is_cut) = skill.text()?;
            let end = if text.ends_with('\n') { "" } else { "\n" };
            let mut text =
                format!("<skill_content name=\"{name}\">\n{text}{end}</skill_content>\n");
            if is_cut {
                text.push_str(&format!(
                    "(cut after {SKILL_BYTES_MAX} bytes; the rest is in {path})\n"
                ));
            }
            if has_directory {
                text.push_str(&format!("(files that it names are beside {path})\n"));
            }
            Ok(Done::text(text))
        })
    }
}

fn parse(json: &str) -> Result<String, Text> {
    Args::parse(NAME, json)?.required(&["name"], "the skill's name")
}
