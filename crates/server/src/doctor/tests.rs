//! What the doctor says of a start, from its settings to its lines.

use std::fs;
use std::path::PathBuf;

use super::report::Status;
use super::*;
use crate::config::settings::Setting;

const SECRET: &str = "hunter2-hunter2-hunter2";

struct Start {
    dir: tempfile::TempDir,
    args: ServeArgs,
    environment: Vec<(OsString, OsString)>,
}

impl Start {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, args: ServeArgs::default(), environment: Vec::new() }.flag(&settings::PORT, "0")
    }

    fn offline() -> Self {
        Self::new().env("PROVIDER", "offline")
    }

    fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    fn flag(mut self, setting: &'static Setting, value: &str) -> Self {
        self.args.set(setting, value);
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn report(&self) -> Report {
        let environment = self.environment.clone();
        let examined = Config::examine(&self.args, environment, self.dir.path());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(report(examined))
    }

    /// What is said of the model before anybody is asked.
    fn model_line(&self, thing: &str) -> Option<(Status, String)> {
        let environment = self.environment.clone();
        let Examined { parts, held, .. } =
            Config::examine(&self.args, environment, self.dir.path());
        let checks = model::checks(&parts.model.unwrap(), &held);
        let found = checks.into_iter().find(|check| check.thing == thing);
        found.map(|check| (check.status, check.text))
    }

    fn lines(&self, thing: &str) -> Vec<(Status, String)> {
        let checks = self.report().checks.into_iter().filter(|check| check.thing == thing);
        checks.map(|check| (check.status, check.text)).collect()
    }

    fn line(&self, thing: &str) -> (Status, String) {
        let [line] = <[_; 1]>::try_from(self.lines(thing)).unwrap();
        line
    }
}

fn names(dir: &Path) -> Vec<OsString> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn a_good_start_has_no_failure_and_leaves_nothing_behind() {
    let start = Start::offline();
    fs::create_dir(start.path("sessions")).unwrap();
    let start = start
        .env("SESSION_STORE_PATH", "sessions")
        .env("TODOS_STORE_PATH", "todos/deep")
        .env("USER_MESSAGE_DB", "lists/messages.db")
        .env("MEMORY_DB", "kept/memories.db")
        .env("POLYLOOP_TOKEN", SECRET);
    let report = start.report();
    let bad = report.checks.iter().filter(|check| check.status == Status::Fail);
    assert_eq!(bad.collect::<Vec<_>>(), Vec::<&Check>::new());
    assert_eq!(names(start.dir.path()), ["sessions"], "nothing was made");
    assert!(names(&start.path("sessions")).is_empty());
    let shown =
        |name: &str, end: &str| (Status::Ok, format!("{}{end}", start.path(name).display()));
    assert_eq!(start.line("session store"), shown("sessions", " can be written"));
    let not_yet = " is not there yet and can be made";
    assert_eq!(start.line("todos store"), shown("todos/deep", not_yet));
    assert_eq!(start.line("message database"), shown("lists/messages.db", not_yet));
    assert_eq!(start.line("memories"), shown("kept/memories.db", not_yet));
    assert_eq!(start.line("sandbox").0, Status::Warn);
    assert_eq!(start.line("token").0, Status::Ok);
    assert_eq!(start.line("endpoint").0, Status::Ok);
}

#[test]
fn every_problem_is_a_line_and_the_rest_is_looked_at() {
    let start = Start::new()
        .env("LOG_LEVEL", "loud")
        .env("WORKING_DIRECTORY", "nowhere")
        .env("SESSION_STORE_PATH", "file");
    fs::write(start.path("file"), "kept").unwrap();
    let problems = start.lines("configuration");
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(problems.iter().all(|(status, _)| *status == Status::Fail));
    let expected = format!(
        "{} is not a directory; change SESSION_STORE_PATH or the permissions",
        start.path("file").display()
    );
    assert_eq!(start.line("session store"), (Status::Fail, expected));
    assert_eq!(fs::read_to_string(start.path("file")).unwrap(), "kept");
    assert_eq!(start.line("port").0, Status::Ok);
    assert_eq!(start.line("provider").1, "openai, because neither PROVIDER nor MODEL is set");
    assert_eq!(start.line("endpoint").1, "not asked, because there is no key");
    assert!(start.lines("working directory").is_empty());
}

#[test]
fn an_env_file_is_told_of() {
    let start = Start::offline();
    assert_eq!(start.line(".env").0, Status::Ok);
    fs::write(start.path(".env"), "LOG_LEVEL=debug\n").unwrap();
    let expected = format!("{} is read", start.path(".env").display());
    assert_eq!(start.line(".env"), (Status::Ok, expected));
    fs::write(start.path(".env"), format!("A=1\nB={SECRET} x\n")).unwrap();
    let (status, text) = start.line(".env");
    assert_eq!(status, Status::Fail);
    assert!(text.contains("line 2: is not NAME=value") && !text.contains(SECRET), "{text}");
    assert!(start.lines("configuration").is_empty(), "the rest is fine");
}

#[test]
fn a_store_in_use_is_not_broken() {
    let start = Start::offline().env("SESSION_STORE_PATH", "sessions");
    fs::create_dir(start.path("sessions")).unwrap();
    let lock = fs::File::create(start.path("sessions/.lock")).unwrap();
    assert_eq!(start.line("session store").0, Status::Ok, "nobody has the lock");
    lock.lock().unwrap();
    let (status, text) = start.line("session store");
    assert_eq!(status, Status::Warn);
    assert!(text.contains("is in use by a server that runs"), "{text}");
    assert_eq!(names(&start.path("sessions")), [".lock"]);
}

#[test]
fn stores_that_cannot_be_had() {
    let start = Start::offline();
    fs::write(start.path("file"), "").unwrap();
    fs::write(start.path("text.db"), "this is no database at all").unwrap();
    fs::write(start.path("empty.db"), "").unwrap();
    fs::create_dir(start.path("folder")).unwrap();
    std::os::unix::fs::symlink("nowhere", start.path("link")).unwrap();
    let cases = [
        ("TODOS_STORE_PATH", "todos store", "file/below", Status::Fail),
        ("TODOS_STORE_PATH", "todos store", "link", Status::Fail),
        ("TODOS_STORE_PATH", "todos store", "/proc/none", Status::Fail),
        ("USER_MESSAGE_DB", "message database", "text.db", Status::Fail),
        ("USER_MESSAGE_DB", "message database", "folder", Status::Fail),
        ("USER_MESSAGE_DB", "message database", "file/below/x.db", Status::Fail),
        ("USER_MESSAGE_DB", "message database", "empty.db", Status::Ok),
        ("USER_MESSAGE_DB", "message database", "folder/new.db", Status::Ok),
        ("MEMORY_DB", "memories", "text.db", Status::Fail),
        ("MEMORY_DB", "memories", "folder", Status::Fail),
        ("MEMORY_DB", "memories", "folder/new.db", Status::Ok),
    ];
    for (name, thing, path, expected) in cases {
        let (status, text) = Start::offline().env(name, start.path(path)).line(thing);
        assert_eq!(status, expected, "{path}: {text}");
        assert!(status == Status::Ok || text.contains(name), "{path}: {text}");
    }
    assert_eq!(fs::read(start.path("text.db")).unwrap(), b"this is no database at all");
}

#[test]
fn a_token_means_what_the_address_makes_of_it() {
    let (status, text) = Start::offline().line("token");
    assert_eq!(status, Status::Warn);
    assert!(text.contains("every program and every user on this machine can connect"), "{text}");
    // Beyond loopback, and of a bad one, the configuration has spoken.
    let outside = Start::offline().env("HOST", "0.0.0.0");
    assert_eq!((outside.lines("token").len(), outside.lines("configuration").len()), (0, 1));
    let short = Start::offline().env("POLYLOOP_TOKEN", "short");
    assert_eq!((short.lines("token").len(), short.lines("configuration").len()), (0, 1));
}

#[test]
fn the_model_and_why_it_is_that() {
    let ok = |text: &str| Some((Status::Ok, text.to_owned()));
    let start = Start::new().env("MODEL", "claude-sonnet-4-5");
    let expected = "anthropic, told from MODEL (claude-sonnet-4-5); PROVIDER would win over it";
    assert_eq!(start.model_line("provider"), ok(expected));
    let expected = "claude-sonnet-4-5, spoken to at https://api.anthropic.com";
    assert_eq!(start.model_line("model"), ok(expected));
    let expected = "window of 200000 tokens, answers of up to 64000, images, reasoning, $3 for a \
                    million tokens in ($0.3 from the cache), $15 out";
    assert_eq!(start.model_line("model card"), ok(expected));
    assert_eq!(start.model_line("key"), None, "a missing one has been said");

    let start = Start::new().env("PROVIDER", "openai").env("OPENAI_API_KEY", SECRET);
    assert_eq!(start.model_line("provider"), ok("openai, as PROVIDER says"));
    let expected = "codex-mini-latest, because MODEL is not set, spoken to by the responses \
                    interface at https://api.openai.com/v1";
    assert_eq!(start.model_line("model"), ok(expected));
    assert_eq!(start.model_line("key"), ok("OPENAI_API_KEY is set"));

    let start = Start::new()
        .env("MODEL", "llama")
        .env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        .env("OPENAI_WIRE_API", "chat");
    let (status, text) = start.model_line("model card").unwrap();
    assert_eq!(status, Status::Warn);
    assert!(text.starts_with("llama is not in the table of models"), "{text}");
    assert_eq!(start.model_line("key").unwrap().0, Status::Ok);
}

#[test]
fn it_is_the_same_in_json() {
    let start = Start::offline().env("OPENAI_API_KEY", SECRET);
    let report = start.report();
    let json: serde_json::Value = serde_json::from_str(&print::json(&report)).unwrap();
    assert_eq!(json["ok"], true);
    assert_eq!(json["model"]["provider"], "offline");
    assert_eq!(json["model"]["provider_from"], "PROVIDER");
    assert_eq!(json["model"]["card"]["context"], 128_000);
    assert_eq!(json["checks"].as_array().unwrap().len(), report.checks.len());
    let settings = json["settings"].as_array().unwrap();
    let key = settings.iter().find(|row| row["name"] == "OPENAI_API_KEY").unwrap();
    let expected = serde_json::json!({
        "name": "OPENAI_API_KEY", "value": "set", "source": "environment", "hidden": true
    });
    assert_eq!(*key, expected);
    let text = print::text(&report, print::Colours::None);
    assert!(!text.contains(SECRET) && !text.contains('\u{1b}'), "{text}");
    for check in &report.checks {
        let line = text.lines().find(|line| line.ends_with(&check.text));
        assert!(line.is_some_and(|line| line.contains(check.thing)), "{check:?}\n{text}");
    }
    let coloured = print::text(&report, print::Colours::Ansi);
    assert!(coloured.contains("\u{1b}[32mok  \u{1b}[0m"), "{coloured}");
}

#[test]
fn secrets_of_others_texts_are_hidden_and_lines_stay_lines() {
    let checks = vec![Check::fail("a", format!("said {SECRET}\n\u{1b}[2Jand more"))];
    let report =
        Report::new(Vec::new(), None, checks).without(&[SECRET.to_owned(), "a".to_owned()]);
    assert_eq!(report.checks[0].text, "said ***\\n\\u{1b}[2Jand more");
    assert!(report.has_failed());

    let start = Start::offline()
        .env("HTTPS_PROXY", format!("http://user:{SECRET}@proxy.example:1"))
        .env("ANTHROPIC_API_KEY", "sk-ant-secret")
        .env("POLYLOOP_TOKEN", SECRET);
    let examined = Config::examine(&start.args, start.environment.clone(), start.dir.path());
    let found = secrets(&examined.parts);
    assert_eq!(found, [SECRET, "sk-ant-secret", &format!("user:{SECRET}")]);
}
