//! Which provider runs which model, and with which key.
//!
//! Never speaks to a provider.

use super::settings::{self, Setting};
use super::source::Reader;
use super::value::{Provider, Secret};
use super::{Model, ModelKey};

const OPENAI_MODEL: &str = "codex-mini-latest";
const OFFLINE_MODEL: &str = "offline";

/// Settles provider, key and model, in this order; notes a problem and gives nothing if one of
/// them cannot be had.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<Model> {
    let name = reader.optional(&settings::MODEL, |text| Some(text.to_owned()));
    let problems_before = reader.problems.len();
    let named =
        reader.optional(&settings::PROVIDER, |text| Provider::parse(&text.to_ascii_lowercase()));
    if reader.problems.len() > problems_before {
        return None;
    }
    let provider = named.unwrap_or_else(|| detect(name.as_deref().unwrap_or(OPENAI_MODEL)));

    let settled = key(reader, provider).and_then(|key| {
        available(provider)?;
        Ok(Model { provider, name: model_name(reader, provider, name)?, key })
    });
    settled.map_err(|problem| reader.problems.push(problem)).ok()
}

/// Tells the provider from a model's name.
fn detect(model: &str) -> Provider {
    if model.starts_with("claude-") || model.contains("anthropic") {
        Provider::Anthropic
    } else if model.starts_with("gemini-") || model.contains("google") {
        Provider::Google
    } else {
        Provider::OpenAi
    }
}

/// The first key of the provider that is set.
fn key(reader: &mut Reader<'_>, provider: Provider) -> Result<Option<ModelKey>, String> {
    let variables: &[&'static Setting] = match provider {
        Provider::OpenAi => &[&settings::OPENAI_API_KEY],
        Provider::Anthropic => &[&settings::ANTHROPIC_API_KEY],
        Provider::Google => &[&settings::GOOGLE_API_KEY, &settings::GOOGLE_APPLICATION_CREDENTIALS],
        Provider::Offline => return Ok(None),
    };
    for setting in variables {
        if let Some(value) = reader.optional(setting, |text| Some(Secret::new(text))) {
            return Ok(Some(ModelKey { variable: setting.name, value }));
        }
    }
    let names = variables.iter().map(|setting| setting.name).collect::<Vec<_>>();
    Err(format!(
        "{} is not set, and PROVIDER={} needs it; run `export {}=…` or put that line into .env, \
         or try `polyloop demo`, which needs no key",
        names.join(" or "),
        provider.word(),
        names[0],
    ))
}

/// Refuses the providers that this version cannot speak to yet.
fn available(provider: Provider) -> Result<(), String> {
    match provider {
        Provider::Offline => Ok(()),
        Provider::OpenAi | Provider::Anthropic | Provider::Google => Err(format!(
            "PROVIDER: {:?} is not available, this version speaks to the offline model only; use \
             PROVIDER=offline, or try `polyloop demo`",
            provider.word()
        )),
    }
}

/// The model's name; only OpenAI has one that goes without saying.
fn model_name(
    reader: &mut Reader<'_>,
    provider: Provider,
    name: Option<String>,
) -> Result<String, String> {
    match (provider, name) {
        (Provider::Offline, name) => {
            if name.is_some_and(|name| name != OFFLINE_MODEL) {
                reader.warnings.push("MODEL has no effect with PROVIDER=offline".to_owned());
            }
            Ok(OFFLINE_MODEL.to_owned())
        }
        (_, Some(name)) => Ok(name),
        (Provider::OpenAi, None) => Ok(OPENAI_MODEL.to_owned()),
        (Provider::Anthropic | Provider::Google, None) => Err(format!(
            "MODEL is not set, and PROVIDER={} has no model of its own accord; set MODEL to the \
             name of one of its models",
            provider.word()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServeArgs;

    #[test]
    fn providers_are_told_from_the_model() {
        let cases = [
            ("claude-3-5-sonnet-20241022", Provider::Anthropic),
            ("eu.anthropic.claude", Provider::Anthropic),
            ("gemini-1.5-pro", Provider::Google),
            ("models/google-x", Provider::Google),
            ("gpt-4", Provider::OpenAi),
            ("codex-mini-latest", Provider::OpenAi),
            ("my-claude-3", Provider::OpenAi),
            ("claude", Provider::OpenAi),
        ];
        for (model, provider) in cases {
            assert_eq!(detect(model), provider, "{model}");
        }
    }

    /// Beyond `available`, which lets only the offline model through today.
    #[test]
    fn models_have_names() {
        let args = ServeArgs::default();
        let mut reader = Reader::of_flags(&args, std::path::Path::new("/")).unwrap();
        let mut name = |provider, name: Option<&str>| {
            model_name(&mut reader, provider, name.map(str::to_owned))
        };
        assert_eq!(name(Provider::OpenAi, None).unwrap(), "codex-mini-latest");
        assert_eq!(name(Provider::OpenAi, Some("gpt-4")).unwrap(), "gpt-4");
        assert_eq!(name(Provider::Google, Some("gemini-x")).unwrap(), "gemini-x");
        for provider in [Provider::Anthropic, Provider::Google] {
            let expected = format!(
                "MODEL is not set, and PROVIDER={} has no model of its own accord; set MODEL to \
                 the name of one of its models",
                provider.word()
            );
            assert_eq!(name(provider, None).unwrap_err(), expected);
        }
    }

    /// The key that is selected when several are set.
    #[test]
    fn each_provider_has_its_key() {
        let cases: [(Provider, &[&'static Setting], Option<&str>); 6] = [
            (Provider::OpenAi, &[&settings::OPENAI_API_KEY], Some("OPENAI_API_KEY")),
            (
                Provider::Anthropic,
                &[&settings::OPENAI_API_KEY, &settings::ANTHROPIC_API_KEY],
                Some("ANTHROPIC_API_KEY"),
            ),
            (Provider::Google, &[&settings::GOOGLE_API_KEY], Some("GOOGLE_API_KEY")),
            (
                Provider::Google,
                &[&settings::GOOGLE_APPLICATION_CREDENTIALS, &settings::GOOGLE_API_KEY],
                Some("GOOGLE_API_KEY"),
            ),
            (
                Provider::Google,
                &[&settings::GOOGLE_APPLICATION_CREDENTIALS],
                Some("GOOGLE_APPLICATION_CREDENTIALS"),
            ),
            (Provider::Offline, &[&settings::OPENAI_API_KEY], None),
        ];
        for (provider, set, expected) in cases {
            let mut args = ServeArgs::default();
            for &setting in set {
                args.set(setting, format!("value of {}", setting.name));
            }
            let mut reader = Reader::of_flags(&args, std::path::Path::new("/")).unwrap();
            let key = key(&mut reader, provider).unwrap();
            assert_eq!(key.as_ref().map(|key| key.variable), expected, "{provider:?}");
            if let Some(key) = key {
                assert_eq!(key.value.reveal(), format!("value of {}", key.variable));
            }
        }
    }
}
