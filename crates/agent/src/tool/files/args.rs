//! The arguments of a call. Unknown fields are ignored, and null is as good as absent.
//!
//! Every error names the tool and the field; it depends on the arguments alone.

use polyloop_session::Text;
use serde_json::{Map, Value};

use crate::tool::bash::kind;

pub(crate) struct Args {
    tool: &'static str,
    fields: Map<String, Value>,
}

impl Args {
    pub(crate) fn parse(tool: &'static str, json: &str) -> Result<Args, Text> {
        let fields = serde_json::from_str(json)
            .map_err(|error| format!("{tool}: the arguments are not a JSON object: {error}"))?;
        Ok(Args { tool, fields })
    }

    /// The same for an object among the arguments, called `name` in errors.
    pub(crate) fn inner(tool: &'static str, name: &str, value: &Value) -> Result<Args, Text> {
        match value {
            Value::Object(fields) => Ok(Args { tool, fields: fields.clone() }),
            other => Err(format!("{tool}: {name} must be an object, not {}", kind(other)).into()),
        }
    }

    /// A person gave leave for a patch of their own in place of this call.
    pub(crate) fn is_patch(&self) -> bool {
        self.fields.len() == 1 && matches!(self.fields.get("patch"), Some(Value::String(_)))
    }

    /// By any of its names; the first is the one in the schema.
    fn get(&self, names: &[&str]) -> Option<&Value> {
        names.iter().find_map(|name| self.fields.get(*name)).filter(|value| !value.is_null())
    }

    /// Whatever it is; the tool looks at it itself.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.get(&[name])
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(&[name]).is_some()
    }

    fn unfit(&self, names: &[&str], wanted: &str, found: &Value) -> Text {
        let (tool, name) = (self.tool, names.first().copied().unwrap_or_default());
        format!("{tool}: `{name}` must be {wanted}, not {}", kind(found)).into()
    }

    pub(crate) fn text(&self, names: &[&str]) -> Result<Option<String>, Text> {
        match self.get(names) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.unfit(names, "a string", other)),
        }
    }

    pub(crate) fn required(&self, names: &[&str], what: &str) -> Result<String, Text> {
        let missing = || {
            let (tool, name) = (self.tool, names.first().copied().unwrap_or_default());
            format!("{tool}: `{name}` is missing; give {what}").into()
        };
        self.text(names)?.ok_or_else(missing)
    }

    pub(crate) fn path(&self) -> Result<String, Text> {
        self.required(&["path", "file_path"], "the path")
    }

    pub(crate) fn directory(&self) -> Result<String, Text> {
        Ok(self.text(&["path"])?.filter(|path| !path.is_empty()).unwrap_or_else(|| ".".to_owned()))
    }

    pub(crate) fn flag(&self, names: &[&str], preset: bool) -> Result<bool, Text> {
        match self.get(names) {
            None => Ok(preset),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.unfit(names, "true or false", other)),
        }
    }

    pub(crate) fn count(&self, name: &str, preset: usize) -> Result<usize, Text> {
        match self.get(&[name]) {
            None => Ok(preset),
            Some(value) => match value.as_u64() {
                Some(count) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
                None => Err(self.unfit(&[name], "a whole number, 0 or more", value)),
            },
        }
    }

    /// A number of results: never none, and never more than `max`.
    pub(crate) fn limit(&self, preset: usize, max: usize) -> Result<usize, Text> {
        Ok(self.count("limit", preset)?.clamp(1, max))
    }

    pub(crate) fn list(&self, name: &str) -> Result<&[Value], Text> {
        match self.get(&[name]) {
            None => Ok(&[]),
            Some(Value::Array(values)) => Ok(values),
            Some(other) => Err(self.unfit(&[name], "a list", other)),
        }
    }

    /// A list of strings; one string is as good as a list of one.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Text> {
        if let Some(Value::String(text)) = self.get(&[name]) {
            return Ok(vec![text.clone()]);
        }
        let text = |value: &Value| match value {
            Value::String(text) => Ok(text.clone()),
            other => Err(self.unfit(&[name], "a list of strings", other)),
        };
        self.list(name)?.iter().map(text).collect()
    }
}
