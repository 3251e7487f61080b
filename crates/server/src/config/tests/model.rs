//! Which model is chosen, and what is said when it cannot be had.

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
fn with_a_key_only_the_offline_model_is_there() {
    let cases = [
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("google", "GOOGLE_API_KEY"),
        ("google", "GOOGLE_APPLICATION_CREDENTIALS"),
    ];
    for (provider, key) in cases {
        let expected = format!(
            "PROVIDER: \"{provider}\" is not available, this version speaks to the offline model \
             only; use PROVIDER=offline, or try `polyloop demo`"
        );
        let start = Start::bare().env("PROVIDER", provider).env(key, KEY);
        assert_eq!(start.problems(), [expected]);
    }
}

#[test]
fn the_offline_model_is_called_offline() {
    assert!(Start::offline().env("MODEL", "offline").config().warnings.is_empty());
    let config = Start::offline().env("MODEL", "gpt-4").env("OPENAI_API_KEY", KEY).config();
    assert_eq!(config.model.name, "offline");
    assert!(config.model.key.is_none());
    assert_eq!(config.warnings, ["MODEL has no effect with PROVIDER=offline"]);
}
