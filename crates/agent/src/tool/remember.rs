//! Keeps something for the user beyond the session, or forgets it.
//!
//! Outlives the session and will be believed by later ones, so it is an edit: people are asked as
//! about one, and shown the key and the value with nothing in them hidden.

use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement, Key, Risk};
use serde_json::value::RawValue;

use super::apply_patch::ApplyPatch;
use super::files::{Args, Done, wait};
use super::memory::{self, KEY_HELP, named};
use super::todo_write::own;
use super::{Place, Progress, Run, Tool, ToolSpec};
use crate::memories::VALUE_BYTES_MAX;

const NAME: &str = "remember";

const DESCRIPTION: &str = "Keeps a value under a key for this user, in place of the one before; it \
     is there in all later sessions. Use it for what the user wants you to know next time: \
     preferences, decisions, facts about them and their projects. Never keep passwords or keys. \
     The value null forgets the key.";

pub struct Remember;

impl Tool for Remember {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "key": { "type": "string", "description": KEY_HELP },
                "value": {
                    "type": ["string", "number", "boolean", "object", "array", "null"],
                    "items": {},
                    "description": "What to remember: a text, or any other JSON value. null \
                                    forgets it.",
                },
            },
            "required": ["key", "value"],
        });
        ToolSpec { name: NAME, description: DESCRIPTION.into(), parameters: parameters.into() }
    }

    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>> {
        let judged = Wanted::parse(args).map(|wanted| wanted.judgement(place));
        std::future::ready(judged).boxed()
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        if Args::parse(NAME, &run.args).is_ok_and(|args| args.is_patch()) {
            return ApplyPatch.run(run);
        }
        let Run { args, place, stop, .. } = run;
        wait(NAME, stop, "It is not known whether it was kept.\n", async move {
            let wanted = Wanted::parse(&args).map_err(|why| why.to_string())?;
            let done = match &wanted.value {
                Some(value) => place.memories.remember(&wanted.key, value).await,
                None => place.memories.forget(&wanted.key).await.map(|_| ()),
            };
            done.map(|()| Done::text("ok\n")).map_err(|error| error.to_string())
        })
    }
}

struct Wanted {
    key: String,
    /// JSON, as it was given; without one the key is forgotten.
    value: Option<String>,
}

impl Wanted {
    fn parse(json: &str) -> Result<Wanted, Text> {
        let key = memory::key(&Args::parse(NAME, json)?, NAME)?;
        // Numbers and the order of fields stay as they were written.
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json)
            .map_err(|error| format!("{NAME}: the arguments are not a JSON object: {error}"))?;
        let Some(value) = fields.get("value").map(|value| value.get()) else {
            return Err(format!("{NAME}: `value` is missing; give what to remember").into());
        };
        let bytes = value.len();
        if bytes > VALUE_BYTES_MAX {
            let told = format!("{NAME}: `value` has {bytes} bytes, the limit is {VALUE_BYTES_MAX}");
            return Err(told.into());
        }
        Ok(Wanted { key, value: (value != "null").then(|| value.to_owned()) })
    }

    fn judgement(&self, place: &Place) -> Judgement {
        let (key, user) = (named(&self.key), named(place.memories.user()));
        let (reason, covers, what) = match self.value {
            Some(_) => (
                format!("remembers {key} for the user {user}, in later sessions too"),
                format!("remembering {key}, for this session"),
                format!("{NAME}:{}", self.key),
            ),
            None => (
                format!("forgets {key} of the user {user}"),
                format!("forgetting {key}, for this session"),
                format!("forget:{}", self.key),
            ),
        };
        let value = self.value.as_deref().unwrap_or("null");
        Judgement {
            safe: false,
            risk: Risk::Medium,
            command: vec![NAME.into(), self.key.as_str().into(), value.into()],
            covers: covers.into(),
            keys: vec![Key { what: what.into(), risk: Risk::Medium }],
            ..own(NAME, Effect::Edit, &reason)
        }
    }
}
