//! Runs a script with bash.
//!
//! Every process starts through the sandbox crate, in a clean environment, and none outlives its
//! call. What a script may do is judged in `shell`; whether it may run is decided elsewhere.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _};
use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement, Key, Risk};
use polyloop_session::shown::visible;
use serde_json::Value;

use super::{Place, Progress, Run, Tool, ToolSpec, own};
use crate::shell::{Judged, Scope};

mod environment;
mod helpers;
mod output;
mod private;
mod process;
mod protected;
mod spill;
mod touched;

pub use helpers::Helpers;
pub use output::{OUTPUT_BYTES_MAX, SEEN_BYTES_MAX};
pub(crate) use protected::names_protected;
pub use spill::{OUTPUT_FILE_BYTES_MAX, OUTPUTS_BYTES_MAX};

/// The longest script that is run.
pub const COMMAND_BYTES_MAX: usize = 1024 * 1024;

const DESCRIPTION: &str = "Runs a script with bash in the working directory and returns what it \
     prints (standard output and errors together) and its exit code. Nothing can be typed into \
     it, and everything it starts ends with it. Each call is a new shell: directory changes and \
     variables do not carry over. Simple commands that only read run at once; others may need \
     the user's approval.";

pub struct Bash;

impl Tool for Bash {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "The script to run.",
                },
                "workdir": {
                    "type": "string",
                    "description": "The directory to run it in, relative to the working \
                                    directory; that directory itself by default.",
                },
                "timeout_ms": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Ends the script after this many milliseconds. The server \
                                    has a limit of its own, and that is the default.",
                },
                "description": {
                    "type": "string",
                    "description": "What the script is for, in a few words, for the user.",
                },
            },
            "required": ["command"],
        });
        ToolSpec { name: "bash", description: DESCRIPTION.into(), parameters: parameters.into() }
    }

    fn may_read(&self) -> bool {
        true
    }

    fn starts_processes(&self, _args: &str) -> bool {
        true
    }

    /// An error depends on the arguments alone, so that `run` gives the same one. What depends on
    /// the files is a refusal: they may change before the call runs.
    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>> {
        async move {
            let args = Args::parse(args)?;
            let place = place.clone();
            let judged = tokio::task::spawn_blocking(move || judgement(&args, &place)).await;
            Ok(judged.unwrap_or_else(|_| {
                let why = "bash: could not be judged; this is a fault of the server";
                refused(Effect::Execute, "bash", why)
            }))
        }
        .boxed()
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        process::run(run).boxed()
    }
}

/// The arguments of a call. Unknown fields are ignored, and null is as good as absent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Args {
    script: String,
    workdir: Option<String>,
    time_limit: Option<Duration>,
}

impl Args {
    /// The error is for the model and names the field.
    fn parse(json: &str) -> Result<Args, Text> {
        let fields: serde_json::Map<String, Value> = serde_json::from_str(json)
            .map_err(|error| format!("bash: the arguments are not a JSON object: {error}"))?;
        let text = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.contains('\0') => {
                Err(format!("bash: `{name}` holds a NUL character, which no program can be given"))
            }
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(format!("bash: `{name}` must be a string, not {}", kind(other))),
        };
        let script = text("command")?.filter(|script| !script.trim().is_empty());
        let script = script.ok_or("bash: `command` is missing or empty; give the script to run")?;
        if script.len() > COMMAND_BYTES_MAX {
            let bytes = script.len();
            return Err(format!(
                "bash: `command` has {bytes} bytes, the limit is {COMMAND_BYTES_MAX}; put a part \
                 of it into a file"
            )
            .into());
        }
        text("description")?;
        let workdir = text("workdir")?.filter(|workdir| !workdir.is_empty());
        let time_limit = match fields.get("timeout_ms") {
            None | Some(Value::Null) => None,
            Some(value) => match value.as_u64().filter(|ms| *ms > 0) {
                Some(ms) => Some(Duration::from_millis(ms)),
                None => {
                    return Err(format!(
                        "bash: `timeout_ms` must be a whole number above 0, not {}",
                        kind(value)
                    )
                    .into());
                }
            },
        };
        Ok(Args { script, workdir, time_limit })
    }

    /// Where the script runs, links followed; the error is for the model.
    fn directory(&self, place: &Place) -> Result<PathBuf, String> {
        let Some(workdir) = &self.workdir else { return Ok(place.cwd.clone()) };
        let shown = visible(workdir);
        let real = place
            .cwd
            .join(workdir)
            .canonicalize()
            .map_err(|error| format!("bash: `workdir` {shown}: cannot be entered: {error}"))?;
        if !real.is_dir() {
            return Err(format!("bash: `workdir` {shown}: is not a directory"));
        }
        if is_forbidden(&real, place) {
            return Err(format!("bash: `workdir` {shown}: holds the server's own files"));
        }
        Ok(real)
    }
}

/// A value as it is named in an error.
pub(super) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "true or false".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Blocks while it resolves paths.
fn judgement(args: &Args, place: &Place) -> Judgement {
    let directory = match args.directory(place) {
        Ok(directory) => directory,
        Err(why) => return refused(Effect::Execute, "bash", &why),
    };
    let scope = scope(&directory, place);
    let judged = elsewhere(scope.judge(&args.script), &directory, place);
    // The same decision as for an edit of that path.
    let protected = protected::named(&args.script, &directory, &place.cwd);
    let protected = protected.filter(|_| !judged.safe);
    Judgement {
        effect: Effect::Execute,
        safe: judged.safe,
        confined: false,
        sandbox: place.sandbox && protected.is_none(),
        refusal: None,
        risk: judged.risk,
        reason: match protected {
            Some(path) => {
                format!("names the protected path {}; {}", visible(&path), judged.reason).into()
            }
            None => judged.reason,
        },
        command: judged.command,
        patch: None,
        diff: None,
        plan_file: None,
        covers: judged.covers,
        keys: judged.keys,
        rule: place.rules.of_command(&args.script, &scope, &directory, &place.cwd),
    }
}

/// What a command in this directory is judged by.
fn scope(directory: &Path, place: &Place) -> Scope {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let scope = Scope::new(directory, &place.forbidden).with_path(&path);
    place.rules.close(scope, &place.cwd)
}

/// Adds the directory to what is shown and to what is granted, unless it is the session's own:
/// the same words do something else there.
fn elsewhere(judged: Judged, directory: &Path, place: &Place) -> Judged {
    if directory == place.cwd {
        return judged;
    }
    let outside = !directory.starts_with(&place.cwd);
    let shown = directory.strip_prefix(&place.cwd).unwrap_or(directory);
    let shown = visible(&shown.display().to_string());
    let risk = if outside { Risk::High } else { judged.risk };
    let reason = if outside {
        format!("runs outside the working directory, in {shown}; {}", judged.reason)
    } else {
        format!("{}; runs in {shown}", judged.reason)
    };
    let quoted = Value::from(directory.to_string_lossy()).to_string();
    let there = |key: &Key| {
        let what = key.what.strip_prefix("bash:").unwrap_or(&key.what);
        Key { what: format!("bash@{quoted}:{what}").into(), risk }
    };
    Judged {
        safe: judged.safe && !outside,
        risk,
        reason: reason.into(),
        covers: format!("{}, in {shown}", judged.covers).into(),
        keys: judged.keys.iter().map(there).collect(),
        command: judged.command,
    }
}

/// A call that cannot be done, whoever would allow it: the model is told why.
pub(super) fn refused(effect: Effect, name: &str, why: &str) -> Judgement {
    Judgement {
        effect,
        safe: false,
        confined: false,
        sandbox: false,
        refusal: Some(why.into()),
        risk: Risk::High,
        reason: why.into(),
        command: vec![name.into()],
        patch: None,
        diff: None,
        plan_file: None,
        covers: "".into(),
        keys: Vec::new(),
        rule: None,
    }
}

/// Whether a path, links followed, is one of the server's own files.
pub(crate) fn is_forbidden(real: &Path, place: &Place) -> bool {
    own::holds(&place.forbidden, real)
}
