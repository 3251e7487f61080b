//! Which model would be asked, why that one, and what is known of it.

use polyloop_agent::model::table::{Card, Price};
use serde_json::{Value, json};

use super::report::Check;
use crate::config::settings;
use crate::config::{Held, Model, Provider};
use crate::models::family;

const MICROS_PER_USD: f64 = 1_000_000.0;

/// What would be used, for programs.
pub(super) struct Told {
    provider: &'static str,
    why: &'static str,
    name: String,
    /// None where there is no choice.
    wire_api: Option<&'static str>,
    /// None where nothing is asked for over the network.
    base_url: Option<String>,
    /// None if MODELS_FILE cannot be used.
    card: Option<Card>,
}

pub(super) fn told(model: &Model, held: &[Held]) -> Told {
    let table = model.table().ok();
    Told {
        provider: model.provider.word(),
        why: match (model.named, is_held(held, settings::MODEL.name)) {
            (true, _) => settings::PROVIDER.name,
            (false, true) => settings::MODEL.name,
            (false, false) => "default",
        },
        name: model.name.clone(),
        wire_api: (model.provider == Provider::OpenAi).then(|| model.wire.word()),
        base_url: model.access(model.provider).map(|access| access.base_url.clone()),
        card: table.map(|table| table.card(&model.name, family(model, model.provider))),
    }
}

impl Told {
    pub fn json(&self) -> Value {
        let card = self.card.as_ref().map(|card| {
            let price = card.price.map(|price| {
                json!({
                    "input_usd": usd(price.input),
                    "output_usd": usd(price.output),
                    "cached_usd": usd(price.cached),
                    "cache_write_usd": usd(price.cache_written),
                })
            });
            json!({
                "context": card.tokens_max,
                "output": card.output_tokens_max,
                "price": price,
                "images": card.images,
                "reasoning": card.reasoning,
                "native_shell": card.native_shell,
            })
        });
        json!({
            "provider": self.provider,
            "provider_from": self.why,
            "name": self.name,
            "wire_api": self.wire_api,
            "base_url": self.base_url,
            "card": card,
        })
    }
}

fn is_held(held: &[Held], name: &str) -> bool {
    held.iter().any(|held| held.setting.name == name)
}

pub(super) fn checks(model: &Model, held: &[Held]) -> Vec<Check> {
    let is_named = is_held(held, settings::MODEL.name);
    let word = model.provider.word();
    let why = match (model.named, is_named) {
        (true, _) => "as PROVIDER says".to_owned(),
        (false, true) => format!("told from MODEL ({}); PROVIDER would win over it", model.name),
        (false, false) => "because neither PROVIDER nor MODEL is set".to_owned(),
    };
    let mut checks = vec![Check::ok("provider", format!("{word}, {why}"))];
    let by_default = if is_named { "" } else { ", because MODEL is not set" };
    let place = match (model.access(model.provider), model.provider) {
        (Some(access), Provider::OpenAi) => {
            format!(", spoken to by the {} interface at {}", model.wire.word(), access.base_url)
        }
        (Some(access), _) => format!(", spoken to at {}", access.base_url),
        (None, _) => ", which is built in".to_owned(),
    };
    checks.push(Check::ok("model", format!("{}{by_default}{place}", model.name)));
    checks.extend(card(model));
    checks.extend(key(model));
    checks
}

/// Nothing if MODELS_FILE cannot be used, which has been said.
fn card(model: &Model) -> Option<Check> {
    let table = model.table().ok()?;
    let card = table.card(&model.name, family(model, model.provider));
    let able = |is: bool, what: &str| format!(", {}{what}", if is { "" } else { "no " });
    let price = match (&card.price, model.provider) {
        (Some(price), _) => format!(", {}", priced(price)),
        (None, Provider::Offline) => String::new(),
        (None, _) => ", price not known, so costs are not told".to_owned(),
    };
    let text = format!(
        "window of {} tokens, answers of up to {}{}{}{price}",
        card.tokens_max,
        card.output_tokens_max,
        able(card.images, "images"),
        able(card.reasoning, "reasoning"),
    );
    if table.knows(&model.name) || model.provider == Provider::Offline {
        return Some(Check::ok("model card", text));
    }
    let text = format!(
        "{} is not in the table of models, so this is assumed: {text}; say better with MODELS_FILE",
        model.name
    );
    Some(Check::warn("model card", text))
}

fn priced(price: &Price) -> String {
    format!(
        "${} for a million tokens in (${} from the cache), ${} out",
        usd(price.input),
        usd(price.cached),
        usd(price.output)
    )
}

fn usd(micros: u64) -> f64 {
    micros as f64 / MICROS_PER_USD
}

/// Nothing where a missing key is a problem, which has been said.
fn key(model: &Model) -> Option<Check> {
    let access = model.access(model.provider)?;
    match (&access.key, model.provider) {
        (Some(key), _) => Some(Check::ok("key", format!("{} is set", key.variable))),
        (None, Provider::OpenAi) if model.needs_no_key() => {
            let text =
                "none is set; OPENAI_BASE_URL is not OpenAI's own, so perhaps none is needed";
            Some(Check::ok("key", text))
        }
        (None, _) => None,
    }
}
