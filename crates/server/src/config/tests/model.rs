//! Which model is chosen, and what is said when it cannot be had.

use polyloop_agent::model::table::Family;

use super::*;

#[test]
fn a_missing_key_is_told_with_the_way_out() {
    let openai: &[(&str, &str)] = &[];
    let cases = [
        (openai, "OPENAI_API_KEY", "openai", "OPENAI_API_KEY"),
        (&[("MODEL", "gpt-4")], "OPENAI_API_KEY", "openai", "OPENAI_API_KEY"),
        (&[("PROVIDER", "anthropic")], "ANTHROPIC_API_KEY", "anthropic", "ANTHROPIC_API_KEY"),
        (
            &[("MODEL", "claude-3-opus"), ("OPENAI_API_KEY", KEY)],
            "ANTHROPIC_API_KEY",
            "anthropic",
            "ANTHROPIC_API_KEY",
        ),
        (
            &[("MODEL", "gemini-1.5-pro"), ("GOOGLE_API_KEY", "")],
            "GOOGLE_API_KEY or GOOGLE_APPLICATION_CREDENTIALS",
            "google",
            "GOOGLE_API_KEY",
        ),
        // What was said counts more than what a name looks like.
        (
            &[("MODEL", "claude-3-opus"), ("PROVIDER", "openai")],
            "OPENAI_API_KEY",
            "openai",
            "OPENAI_API_KEY",
        ),
    ];
    for (given, names, provider, first) in cases {
        let start =
            given.iter().fold(Start::bare(), |start, (name, value)| start.env(name, *value));
        let expected = format!(
            "{names} is not set, and PROVIDER={provider} needs it; run `export {first}=…` or put \
             that line into .env, or try `polyloop demo`, which needs no key"
        );
        assert_eq!(start.problems(), [expected]);
    }
}

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
        ("offline", Provider::Offline),
        ("offline-2", Provider::OpenAi),
    ];
    for (model, provider) in cases {
        assert_eq!(detect(model), provider, "{model}");
    }
    let config = Start::bare().env("MODEL", "offline").config();
    assert_eq!((config.model.provider, config.model.named), (Provider::Offline, false));
}

#[test]
fn every_provider_has_a_model_of_its_own_accord() {
    let cases = [
        ("openai", "OPENAI_API_KEY", "codex-mini-latest"),
        ("anthropic", "ANTHROPIC_API_KEY", "claude-sonnet-5-5"),
        ("google", "GOOGLE_API_KEY", "gemini-3.8-flash"),
        ("offline", "PROVIDER", "offline"),
    ];
    for (provider, key, model) in cases {
        let start = Start::bare().env(key, KEY).env("PROVIDER", provider);
        let config = start.config();
        assert_eq!((config.model.provider.word(), &*config.model.name), (provider, model));
        assert!(config.model.named && config.warnings.is_empty(), "{:?}", config.warnings);
        assert_eq!(start.env("MODEL", "offline").config().model.name, "offline", "as it was named");
        if provider != "offline" {
            let told = settings::MODEL.preset;
            assert!(matches!(told, settings::Preset::Unset(text) if text.contains(model)));
            assert_eq!(detect(model).word(), provider);
        }
    }
    let config = Start::bare().env("OPENAI_API_KEY", KEY).config();
    assert_eq!((config.model.provider, config.model.named), (Provider::OpenAi, false));
}

/// What each provider is reached with, whichever is chosen.
#[test]
fn every_provider_s_key_is_kept() {
    let start = Start::offline()
        .env("OPENAI_API_KEY", "key-of-openai")
        .env("ANTHROPIC_API_KEY", "key-of-anthropic")
        .env("GOOGLE_API_KEY", "key-of-google")
        .env("GOOGLE_APPLICATION_CREDENTIALS", "nowhere.json")
        .env("ANTHROPIC_BASE_URL", "https://a.example/");
    let Model { openai, anthropic, google, .. } = start.config().model;
    let key = |access: &ModelAccess| {
        access.key.as_ref().map(|key| (key.variable, key.value.reveal().to_owned()))
    };
    assert_eq!(key(&openai), Some(("OPENAI_API_KEY", "key-of-openai".to_owned())));
    assert_eq!(key(&anthropic), Some(("ANTHROPIC_API_KEY", "key-of-anthropic".to_owned())));
    assert_eq!(key(&google), Some(("GOOGLE_API_KEY", "key-of-google".to_owned())));
    assert_eq!(anthropic.base_url, "https://a.example");
    assert!(start.config().warnings.is_empty(), "a file that is not needed is not looked at");
}

#[test]
fn a_service_account_s_file_must_be_readable() {
    let google = || Start::bare().env("PROVIDER", "google");
    let variable = "GOOGLE_APPLICATION_CREDENTIALS";
    let start = google().file("account.json", "{}").env(variable, "./account.json");
    let key = start.config().model.google.key.unwrap();
    assert_eq!(key.variable, variable);
    assert_eq!(key.value.reveal(), start.path("account.json").to_str().unwrap());

    for (place, why) in [("nowhere", "No such file"), ("folder", "Is a directory")] {
        let start = google().folder("folder").env(variable, place);
        let expected = format!("{variable}: {} cannot be read: {why}", start.path(place).display());
        let problems = start.problems();
        assert!(problems.len() == 1 && problems[0].starts_with(&expected), "{problems:?}");

        // For another provider it is only reported.
        let start = Start::offline().folder("folder").env(variable, place);
        let warnings = start.config().warnings;
        assert!(warnings.len() == 1 && warnings[0].ends_with("Google's models cannot be used"));
        assert!(start.config().model.google.key.is_none());
    }
    let start = google().env(variable, r#" {"private_key": "hunter2"}"#);
    assert_eq!(
        start.problems(),
        [format!("{variable}: the value is the content of a file; use the file's path")]
    );
}

#[test]
fn a_server_of_one_s_own_needs_no_key() {
    let openai = |url: &str| Start::bare().env("MODEL", "llama").env("OPENAI_BASE_URL", url);
    for url in ["http://localhost:11434/v1", "https://models.example/v1"] {
        let config = openai(url).config();
        assert!(config.model.openai.key.is_none() && config.warnings.is_empty(), "{url}");
    }
    for url in ["https://api.openai.com/v2", "http://API.openai.com:443"] {
        assert!(openai(url).problems()[0].starts_with("OPENAI_API_KEY is not set"), "{url}");
    }
    let start = Start::bare().env("MODEL", "claude-x").env("ANTHROPIC_BASE_URL", "http://[::1]:1");
    assert!(start.problems()[0].starts_with("ANTHROPIC_API_KEY is not set"));
}

#[test]
fn a_key_in_clear_text_is_warned_of() {
    let start = |url: &str| Start::offline().env("OPENAI_BASE_URL", url);
    let far = "http://10.0.0.7:8000/v1";
    let expected = "OPENAI_BASE_URL: 10.0.0.7 is reached by plain http, and everybody on the way \
                    can read what OPENAI_API_KEY gives; use https";
    assert_eq!(start(far).env("OPENAI_API_KEY", KEY).config().warnings, [expected]);
    for silent in [
        start(far),
        start("http://127.0.0.1:8000/v1").env("OPENAI_API_KEY", KEY),
        start("https://10.0.0.7/v1").env("OPENAI_API_KEY", KEY),
    ] {
        assert!(silent.config().warnings.is_empty(), "{:?}", silent.config().warnings);
    }
}

#[test]
fn proxies_are_also_read_in_lower_case() {
    let https = |start: Start| start.config().model.proxy.https.unwrap().reveal().to_owned();
    let lower = || Start::offline().env("https_proxy", "http://lower.example");
    assert_eq!(https(lower()), "http://lower.example");
    assert_eq!(https(lower().env("HTTPS_PROXY", "http://upper.example")), "http://upper.example");
    assert_eq!(https(lower().env("HTTPS_PROXY", "")), "http://lower.example");
    let file = || lower().file(".env", "HTTPS_PROXY=http://file.example\nno_proxy=.example");
    assert_eq!(https(file()), "http://lower.example", "the environment wins over the file");
    assert_eq!(https(file().flags(&["--https-proxy", "flag.example:1"])), "http://flag.example:1");
    assert_eq!(file().config().model.proxy.no_proxy.as_deref(), Some(".example"));
    let http = Start::offline().env("http_proxy", "http://u:p@h.example/").config();
    assert_eq!(http.model.proxy.http.unwrap().reveal(), "http://u:p@h.example");
    assert!(http.model.proxy.https.is_none());
}

#[test]
fn a_file_of_models_is_read_at_start() {
    let start = Start::offline().env("MODELS_FILE", "models.json");
    let path = start.path("models.json");
    let said = |start: &Start| start.problems().join("\n");
    let expected = format!("MODELS_FILE: {}: cannot be read: ", path.display());
    assert!(said(&start).starts_with(&expected), "{}", said(&start));

    let start = start.file("models.json", r#"[{"match": "llama*", "context": "8k"}]"#);
    let expected = format!(
        "MODELS_FILE: {}: row 1 (\"llama*\"): context: \"8k\" is not a whole number of tokens \
         from 1 to 1000000000",
        path.display()
    );
    assert_eq!(said(&start), expected);

    let start = start.file("models.json", r#"[{"match": "llama*", "context": 8192}]"#);
    let model = start.config().model;
    assert_eq!(model.models_file, Some(path));
    let card = model.table().unwrap().card("llama-3", Family::Chat);
    assert_eq!(card.tokens_max, 8192);
    assert!(!Start::offline().config().model.table().unwrap().knows("llama-3"));
}

/// The page about models says what holds, and its example can be used.
#[test]
fn the_page_about_models_is_true() {
    let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/MODELS.md"));
    for name in ["codex-mini-latest", "claude-sonnet-5-5", "gemini-3.8-flash"] {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
    let (_, example) = page.split_once("```json\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let table = Table::with_file(example).unwrap();
    assert_eq!(table.card("qwen3-coder:30b", Family::Chat).tokens_max, 262_144);
    assert_eq!(table.card("gpt-5.5", Family::OpenAi).price.unwrap().cached, 500_000);
}

#[test]
fn the_offline_model_is_called_offline() {
    assert!(Start::offline().env("MODEL", "offline").config().warnings.is_empty());
    let config = Start::offline().env("MODEL", "gpt-4").env("OPENAI_API_KEY", KEY).config();
    assert_eq!(config.model.name, "offline");
    assert!(config.model.access(config.model.provider).is_none());
    assert_eq!(config.warnings, ["MODEL has no effect with PROVIDER=offline"]);
}
