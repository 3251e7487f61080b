//! Tokens and keys: when one is needed, when it is refused, and that none is ever shown.

use super::*;

#[test]
fn beyond_loopback_a_token_is_needed() {
    let hosts = [
        ("0.0.0.0", "0.0.0.0:8080"),
        ("::", "[::]:8080"),
        ("192.168.1.5", "192.168.1.5:8080"),
        ("::ffff:10.0.0.1", "[::ffff:10.0.0.1]:8080"),
    ];
    for (host, addr) in hosts {
        let refused = format!(
            "{addr} can be reached from other machines, which needs a token; set POLYLOOP_TOKEN \
             (`openssl rand -hex 32` makes one) or listen on 127.0.0.1"
        );
        for start in [Start::offline().env("HOST", host), Start::offline().flags(&["--addr", addr])]
        {
            assert_eq!(start.problems().join("\n"), refused);
        }

        let start = Start::offline().env("HOST", host).env("POLYLOOP_TOKEN", TOKEN);
        let lonely = format!(
            "{addr} can be reached from other machines, but only loopback names are answered; \
             set ALLOWED_HOSTS to the names that clients use"
        );
        assert_eq!(start.config().warnings, [lonely]);
        let config = start.env("ALLOWED_HOSTS", "agent.example").config();
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        assert_eq!(config.access.token.unwrap().reveal(), TOKEN);
    }
    for host in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "localhost"] {
        assert!(Start::offline().env("HOST", host).config().warnings.is_empty(), "{host}");
    }
}

#[test]
fn a_weak_token_is_refused_and_not_shown() {
    for token in ["hunter2", "hunter2,hunter2,hunter2", &"hunter2".repeat(100)] {
        for host in ["127.0.0.1", "0.0.0.0"] {
            let start = Start::offline().env("HOST", host).env("POLYLOOP_TOKEN", token);
            assert_eq!(
                start.problems(),
                ["POLYLOOP_TOKEN: the value is not a token; use 16 to 512 letters, digits and \
                  signs other than space, comma, semicolon, backslash and double quote, such as \
                  the output of `openssl rand -hex 32` (from the environment)"]
            );
        }
    }
}

#[test]
fn secrets_are_never_shown() {
    let secrets = settings::ALL.iter().filter(|setting| setting.is_secret());
    let secrets = secrets.map(|setting| setting.name).collect::<Vec<_>>();
    assert_eq!(
        secrets,
        [
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "GOOGLE_API_KEY",
            "HTTPS_PROXY",
            "HTTP_PROXY",
            "STORE",
            "POLYLOOP_TOKEN"
        ]
    );
    let store = format!("nats://u:{TOKEN}@a.example");
    let value = |name| if name == "STORE" { &store } else { TOKEN };
    let all =
        |start| secrets.iter().fold(start, |start: Start, name| start.env(name, value(*name)));

    let config = all(Start::offline()).config();
    let shown = format!("{config:?} {config:#?} {:?}", config.describe());
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("(set, hidden)"), "{shown}");
    assert_eq!(config.access.token.as_ref().map(Secret::reveal), Some(TOKEN));

    let error = all(Start::bare().env("PROVIDER", "nobody")).load().unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    let weak =
        |start| secrets.iter().fold(start, |start: Start, name| start.env(name, "hunter2 ?"));
    let error = weak(Start::offline()).load().unwrap_err();
    assert_eq!(error.problems.len(), secrets.len());
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    for name in secrets {
        let broken = OsString::from_vec(b"hunter2-hunter2-\xff-hunter2".to_vec());
        let start = Start::bare().env("PROVIDER", "google").env(name, broken);
        let error = start.load().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

/// What was put where no secret belongs is not repeated either.
#[test]
fn a_password_in_a_url_is_not_repeated() {
    for url in ["https://u:hunter2@a.example", "https://a.example?key=hunter2", "x://a#hunter2"] {
        let start = Start::offline().env("ANTHROPIC_BASE_URL", url);
        let error = start.load().unwrap_err();
        assert!(error.problems[0].starts_with("ANTHROPIC_BASE_URL: the value is not a base URL"));
        let held = start.examine().held;
        let row = held.iter().find(|held| held.setting.name == "ANTHROPIC_BASE_URL").unwrap();
        assert_eq!(row.value, None);
    }
}

/// The settings as they are found, and where.
#[test]
fn what_is_held_is_told_with_its_source() {
    let start = Start::offline()
        .file(".env", "LOG_LEVEL=debug\nPOLYLOOP_TOKEN=hunter2\n")
        .env("OPENAI_API_KEY", "hunter2")
        .env("MODEL", "it's \u{1b}[2J")
        .flags(&["--port", "9"]);
    let held = start.examine().held;
    let row = |name: &str| {
        let held = held.iter().find(|held| held.setting.name == name)?;
        Some((held.value.as_deref(), held.source.word()))
    };
    assert_eq!(row("PORT"), Some((Some("9"), "flag")));
    assert_eq!(row("PROVIDER"), Some((Some("offline"), "environment")));
    assert_eq!(row("LOG_LEVEL"), Some((Some("debug"), ".env")));
    assert_eq!(row("MODEL"), Some((Some("it's \\u{1b}[2J"), "environment")));
    assert_eq!(row("LOG_FORMAT"), Some((Some("human"), "default")));
    assert_eq!(row("OPENAI_API_KEY"), Some((None, "environment")));
    assert_eq!(row("POLYLOOP_TOKEN"), Some((None, ".env")), "although it is too short");
    assert_eq!(row("ANTHROPIC_API_KEY"), None);
}

#[test]
fn a_proxy_without_a_password_may_be_a_flag() {
    let warnings = |url: &str| Start::offline().flags(&["--http-proxy", url]).config().warnings;
    assert!(warnings("http://proxy.example:3128").is_empty());
    assert_eq!(warnings("http://u:p@proxy.example:3128").len(), 1);
}

#[test]
fn a_secret_in_a_flag_is_warned_of() {
    let config = Start::offline().flags(&["--polyloop-token", TOKEN]).config();
    assert_eq!(config.access.token.as_ref().map(Secret::reveal), Some(TOKEN));
    assert_eq!(
        config.warnings,
        ["--polyloop-token shows the secret to every user who can list processes; set \
          POLYLOOP_TOKEN in the environment or in .env"]
    );
}

#[test]
fn a_dollar_in_a_secret_is_warned_of() {
    let plain = Start::offline().file(".env", "POLYLOOP_TOKEN='pa$$word-pa$$word-pa$$word'\n");
    let config = plain.config();
    assert_eq!(config.access.token.unwrap().reveal(), "pa$$word-pa$$word-pa$$word");
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);

    let file = "POLYLOOP_TOKEN=0123456789-0123456789-pa$$word\nSESSION_STORE_PATH=$x/s\n";
    let config = Start::offline().file(".env", file).config();
    assert_eq!(
        config.warnings,
        [".env sets POLYLOOP_TOKEN to a value with a $, which stands for another variable; put \
          the value in single quotes to keep it as it is"]
    );
}

#[test]
fn unknown_variables_of_ours_are_reported() {
    let start = Start::offline()
        .file(".env", "POLYLOOP_PORT=1\nPOLYLOOP_TOKN=hunter2\nOTHER=1\n")
        .env("POLYLOOP_TOKN", "hunter2")
        .env("POLYLOOP_HOST", "0.0.0.0")
        .env("PATH", "/bin");
    assert_eq!(
        start.config().warnings,
        [
            "POLYLOOP_HOST is not a setting and has no effect; did you mean HOST?",
            "POLYLOOP_PORT is not a setting and has no effect; did you mean PORT?",
            "POLYLOOP_TOKN is not a setting and has no effect; did you mean POLYLOOP_TOKEN?",
        ]
    );
}
