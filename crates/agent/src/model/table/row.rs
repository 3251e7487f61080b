//! One line of the table, and how it is read. A slip in a line is an error that names it: a price
//! or a window that silently does not count would be noticed late.

use serde_json::{Map, Value};

use super::{Card, Price};

/// No model has a larger window, and no sum of these can overflow.
const TOKENS_MAX: u64 = 1_000_000_000;
const PRICE_USD_MAX: f64 = 1_000_000.0;
const MICROS_PER_USD: f64 = 1_000_000.0;
/// How much of a bad value an error repeats.
const SHOWN_CHARS_MAX: usize = 40;

/// What a line says; what it does not say is `None`.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// A model's name, or with `is_prefix` the beginning of names.
    name: String,
    is_prefix: bool,
    tokens_max: Option<u64>,
    output_tokens_max: Option<u64>,
    price: Option<Price>,
    images: Option<bool>,
    reasoning: Option<bool>,
    native_shell: Option<bool>,
}

/// How well a line fits a name; the greater, the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    Prefix { bytes: usize },
    Exact,
}

impl Row {
    pub fn fit(&self, model: &str) -> Option<Fit> {
        match self.is_prefix {
            true => {
                model.starts_with(&*self.name).then_some(Fit::Prefix { bytes: self.name.len() })
            }
            false => (model == self.name).then_some(Fit::Exact),
        }
    }

    /// The one model that the line is about.
    pub fn model(&self) -> Option<&str> {
        (!self.is_prefix).then_some(&*self.name)
    }

    /// Puts down what the line knows.
    pub fn write(&self, card: &mut Card) {
        card.tokens_max = self.tokens_max.unwrap_or(card.tokens_max);
        card.window_known |= self.tokens_max.is_some();
        card.output_tokens_max = self.output_tokens_max.unwrap_or(card.output_tokens_max);
        card.price = self.price.or(card.price);
        card.images = self.images.unwrap_or(card.images);
        card.reasoning = self.reasoning.unwrap_or(card.reasoning);
        card.native_shell = self.native_shell.unwrap_or(card.native_shell);
    }
}

/// Reads a JSON array of lines.
pub(super) fn rows(text: &str) -> Result<Vec<Row>, String> {
    let values: Vec<Value> = match serde_json::from_str(text) {
        Ok(Value::Array(values)) => values,
        Ok(_) => return Err("is not a list; use a JSON array of objects".to_owned()),
        Err(error) => return Err(format!("is not JSON: {error}")),
    };
    let mut rows: Vec<Row> = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let place = place(at + 1, value);
        let row = read(value).map_err(|problem| format!("{place}: {problem}"))?;
        let same = |other: &Row| other.name == row.name && other.is_prefix == row.is_prefix;
        if let Some(before) = rows.iter().position(same) {
            return Err(format!("{place}: match: is the same as in row {}", before + 1));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// `row 3 ("gpt-4o*")`.
fn place(number: usize, row: &Value) -> String {
    match row.get("match") {
        Some(name) => format!("row {number} ({})", shown(name)),
        None => format!("row {number}"),
    }
}

fn read(value: &Value) -> Result<Row, String> {
    let Value::Object(fields) = value else {
        return Err(format!("{} is not an object", shown(value)));
    };
    let mut row = Row::default();
    for (name, value) in fields {
        let bad = |what: &str| format!("{name}: {} is not {what}", shown(value));
        let tokens = || tokens(value).ok_or_else(|| bad(TOKENS));
        let switch = || value.as_bool().ok_or_else(|| bad("true or false"));
        match name.as_str() {
            "match" => (row.name, row.is_prefix) = pattern(value).ok_or_else(|| bad(PATTERN))?,
            "context" => row.tokens_max = Some(tokens()?),
            "output" => row.output_tokens_max = Some(tokens()?),
            "images" => row.images = Some(switch()?),
            "reasoning" => row.reasoning = Some(switch()?),
            "native_shell" => row.native_shell = Some(switch()?),
            "input_usd" | "output_usd" | "cached_usd" | "cache_write_usd" => {
                micros(value).ok_or_else(|| bad(DOLLARS))?;
            }
            _ => return Err(format!("{name}: there is no such field; there are {FIELDS}")),
        }
    }
    if !fields.contains_key("match") {
        return Err("match: is missing".to_owned());
    }
    if let (Some(window), Some(output)) = (row.tokens_max, row.output_tokens_max)
        && output > window
    {
        return Err(format!("output: {output} is more than the context of {window}"));
    }
    row.price = price(fields)?;
    Ok(row)
}

const FIELDS: &str = "match, context, output, input_usd, output_usd, cached_usd, \
                      cache_write_usd, images, reasoning and native_shell";
const PATTERN: &str = "a model's name or the beginning of names with a * behind it";
const TOKENS: &str = "a whole number of tokens from 1 to 1000000000";
const DOLLARS: &str = "a number of dollars from 0 to 1000000";

fn pattern(value: &Value) -> Option<(String, bool)> {
    let text = value.as_str().filter(|text| !text.is_empty() && text.trim() == *text)?;
    let (name, is_prefix) = match text.strip_suffix('*') {
        Some(prefix) => (prefix, true),
        None => (text, false),
    };
    (!name.contains('*')).then(|| (name.to_owned(), is_prefix))
}

fn tokens(value: &Value) -> Option<u64> {
    value.as_u64().filter(|tokens| (1..=TOKENS_MAX).contains(tokens))
}

/// Dollars as millionths of one.
fn micros(value: &Value) -> Option<u64> {
    let usd = value.as_f64().filter(|usd| (0.0..=PRICE_USD_MAX).contains(usd))?;
    Some((usd * MICROS_PER_USD).round() as u64)
}

/// Input and output together, or no price. Input from the cache or to it counts as any other
/// where a line does not say what it costs: a sum that is too high is better than one too low.
fn price(fields: &Map<String, Value>) -> Result<Option<Price>, String> {
    let field = |name| fields.get(name).and_then(micros);
    let (input, output) = match (field("input_usd"), field("output_usd")) {
        (Some(input), Some(output)) => (input, output),
        (Some(_), None) => return Err("output_usd: is missing beside input_usd".to_owned()),
        (None, Some(_)) => return Err("input_usd: is missing beside output_usd".to_owned()),
        (None, None) => {
            let alone = ["cached_usd", "cache_write_usd"]
                .into_iter()
                .find(|name| fields.contains_key(*name));
            return alone
                .map_or(Ok(None), |name| Err(format!("input_usd: is missing beside {name}")));
        }
    };
    let cached = field("cached_usd").unwrap_or(input);
    let cache_written = field("cache_write_usd").unwrap_or(input);
    Ok(Some(Price { input, output, cached, cache_written }))
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
