//! Finds a setting's value: the flag, else the environment, else `.env`, else the preset.
//!
//! Never stops at the first problem, so that a user sees all of them at once, and never shows a
//! secret's value.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use super::dotenv::{ENV_FILE_NAME, EnvFile};
use super::settings::{self, Kind, Preset, Setting};

/// How much of a bad value an error repeats.
const SHOWN_CHARS_MAX: usize = 80;
/// Variables of this prefix are ours; an unknown one is a slip of the pen.
const OUR_PREFIX: &str = "POLYLOOP_";

/// The flags given to `polyloop serve`, as they were typed.
#[derive(Clone, Default)]
pub struct ServeArgs {
    values: HashMap<&'static str, OsString>,
}

impl ServeArgs {
    pub fn set(&mut self, setting: &'static Setting, value: impl Into<OsString>) {
        self.values.insert(setting.flag, value.into());
    }

    fn get(&self, setting: &Setting) -> Option<&OsStr> {
        self.values.get(setting.flag).map(OsString::as_os_str)
    }
}

impl fmt::Debug for ServeArgs {
    /// Names the flags only: a value may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys().collect::<BTreeSet<_>>()).finish()
    }
}

/// Where a value was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Flag,
    Environment,
    EnvFile,
    Preset,
}

impl Source {
    pub fn word(self) -> &'static str {
        match self {
            Source::Flag => "flag",
            Source::Environment => "environment",
            Source::EnvFile => ENV_FILE_NAME,
            Source::Preset => "default",
        }
    }
}

/// A setting that has a value, and the value as people may see it.
#[derive(Clone, Debug)]
pub struct Held {
    pub setting: &'static Setting,
    /// None for what must not be shown.
    pub value: Option<String>,
    pub source: Source,
}

struct Found<'a> {
    value: &'a OsStr,
    source: Source,
}

/// Reads settings and collects what is wrong with them.
pub(super) struct Reader<'a> {
    args: &'a ServeArgs,
    environment: HashMap<&'static str, OsString>,
    file: EnvFile,
    /// Why `.env` could not be read; nothing is known then of what it would have set.
    pub(super) file_problems: Vec<String>,
    start_dir: PathBuf,
    pub(super) problems: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl<'a> Reader<'a> {
    /// Reads the flags alone.
    pub(super) fn of_flags(args: &'a ServeArgs, start_dir: &Path) -> Self {
        Self {
            args,
            environment: HashMap::new(),
            file: EnvFile::default(),
            file_problems: Vec::new(),
            start_dir: std::path::absolute(start_dir).unwrap_or_else(|_| start_dir.to_owned()),
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Reads the flags, the environment and the `.env` file of the start directory.
    pub(super) fn new(
        args: &'a ServeArgs,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        start_dir: &Path,
    ) -> Self {
        let mut reader = Self::of_flags(args, start_dir);
        match EnvFile::read(&reader.start_dir) {
            Ok(file) => reader.file = file,
            Err(problems) => reader.file_problems = problems,
        }
        reader.warnings.append(&mut reader.file.warnings);

        let mut unknown = reader.file.names().filter_map(unknown_of_ours).collect::<BTreeSet<_>>();
        let variables = settings::ALL.iter().flat_map(|setting| names(setting));
        let variables = variables.map(|name| (OsStr::new(name), name)).collect::<HashMap<_, _>>();
        for (name, value) in environment {
            if let Some(variable) = variables.get(name.as_os_str()) {
                reader.environment.insert(variable, value);
            } else {
                unknown.extend(name.to_str().and_then(unknown_of_ours));
            }
        }
        reader.warnings.extend(unknown);
        reader.warn_of_exposed_secrets();
        reader
    }

    fn warn_of_exposed_secrets(&mut self) {
        for setting in settings::ALL.iter().filter(|setting| setting.is_secret()) {
            let (name, flag) = (setting.name, setting.flag);
            let Some(found) = self.find(setting) else { continue };
            // Most proxies have no password, nor have stores on one's own network.
            let is_open = matches!(setting.kind, Kind::ProxyUrl | Kind::StoreUrl)
                && !found.value.as_encoded_bytes().contains(&b'@');
            let has_dollar = || names(setting).any(|name| self.file.has_dollar(name));
            match found.source {
                Source::Flag if !is_open => self.warnings.push(format!(
                    "--{flag} shows the secret to every user who can list processes; set {name} \
                     in the environment or in {ENV_FILE_NAME}"
                )),
                Source::EnvFile if has_dollar() => self.warnings.push(format!(
                    "{ENV_FILE_NAME} sets {name} to a value with a $, which stands for another \
                     variable; put the value in single quotes to keep it as it is"
                )),
                Source::Flag | Source::Environment | Source::EnvFile | Source::Preset => {}
            }
        }
    }

    /// An empty value counts as none.
    fn find<'s>(&'s self, setting: &Setting) -> Option<Found<'s>> {
        let preset = match setting.preset {
            Preset::Is(value) => Some(OsStr::new(value)),
            Preset::Unset(_) => None,
        };
        let flag = self.args.get(setting).map(|value| (value, Source::Flag));
        let environment = names(setting).filter_map(|name| {
            Some((self.environment.get(name)?.as_os_str(), Source::Environment))
        });
        let file = names(setting)
            .filter_map(|name| Some((OsStr::new(self.file.get(name)?), Source::EnvFile)));
        let preset = preset.map(|value| (value, Source::Preset));
        flag.into_iter()
            .chain(environment)
            .chain(file)
            .chain(preset)
            .map(|(value, source)| Found { value: trimmed(setting, value), source })
            .find(|found| !found.value.is_empty())
    }

    /// Every setting that has a value, in the table's order.
    pub(super) fn held(&self) -> Vec<Held> {
        let held = |setting: &'static Setting| {
            let Found { value, source } = self.find(setting)?;
            let value = value.to_string_lossy();
            let value = (!setting.hides(&value)).then(|| one_line(&value));
            Some(Held { setting, value, source })
        };
        settings::ALL.iter().filter_map(|setting| held(setting)).collect()
    }

    /// The `.env` file, if there is one.
    pub(super) fn env_file(&self) -> Option<PathBuf> {
        let there = self.file.found || !self.file_problems.is_empty();
        there.then(|| self.start_dir.join(ENV_FILE_NAME))
    }

    pub(super) fn is_set(&self, setting: &Setting) -> bool {
        self.find(setting).is_some()
    }

    /// The value as text, or a problem if it is none.
    fn text(&mut self, setting: &Setting) -> Option<(String, Source)> {
        let Found { value, source } = self.find(setting)?;
        let text = value.to_str().map(str::to_owned);
        if text.is_none() {
            let name = setting.label();
            self.problems.push(format!("{name}: the value is not UTF-8{}", from(setting, source)));
        }
        text.map(|text| (text, source))
    }

    /// The value, or nothing when it is unset or (then a problem is noted) cannot be read.
    pub(super) fn optional<T>(
        &mut self,
        setting: &Setting,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let (text, source) = self.text(setting)?;
        let value = parse(&text);
        if value.is_none() {
            self.problems.push(bad_value(setting, &text, source));
        }
        value
    }

    /// The parts of a comma-separated value; a problem names each that cannot be read.
    pub(super) fn list<T>(
        &mut self,
        setting: &Setting,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Vec<T> {
        let Some((text, source)) = self.text(setting) else { return Vec::new() };
        let mut values = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match parse(part) {
                Some(value) => values.push(value),
                None => self.problems.push(bad_value(setting, part, source)),
            }
        }
        values
    }

    /// The value of a setting that has a preset; nothing only if a problem is noted.
    pub(super) fn required<T>(
        &mut self,
        setting: &Setting,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        if !self.is_set(setting) {
            self.problems.push(format!("{} is not set", setting.label()));
        }
        self.optional(setting, parse)
    }

    /// The same, but a bad value is only reported, and `instead` takes its place.
    pub(super) fn lenient<T>(
        &mut self,
        setting: &Setting,
        parse: impl FnOnce(&str) -> Option<T>,
        instead: T,
        instead_word: &str,
    ) -> T {
        let problems_before = self.problems.len();
        let value = self.required(setting, parse);
        let reports = self.problems.drain(problems_before..);
        self.warnings.extend(reports.map(|report| format!("{report}; using {instead_word}")));
        value.unwrap_or(instead)
    }

    /// A path; a relative one begins where the server was started.
    pub(super) fn path(&self, setting: &Setting) -> Option<PathBuf> {
        let path = self.start_dir.join(self.find(setting)?.value);
        Some(std::path::absolute(&path).unwrap_or(path))
    }

    /// Whether somebody has given a file's content where its path belongs.
    pub(super) fn looks_like_json(&self, setting: &Setting) -> bool {
        self.find(setting)
            .is_some_and(|found| found.value.to_string_lossy().trim_start().starts_with('{'))
    }

    pub(super) fn start_dir(&self) -> &Path {
        &self.start_dir
    }
}

/// What a setting is called in the environment, and what counts first.
fn names(setting: &Setting) -> impl Iterator<Item = &'static str> {
    setting.variable().into_iter().chain(setting.alias())
}

/// A path keeps its spaces, everything else loses those around it.
fn trimmed<'v>(setting: &Setting, value: &'v OsStr) -> &'v OsStr {
    match value.to_str() {
        Some(text) if !setting.kind.is_path() => OsStr::new(text.trim()),
        _ => value,
    }
}

fn bad_value(setting: &Setting, value: &str, source: Source) -> String {
    let (name, what) = (setting.label(), setting.kind.what());
    let value = if setting.hides(value) { "the value".to_owned() } else { shown(value) };
    let (allowed, from) = (setting.kind.allowed(), from(setting, source));
    format!("{name}: {value} is not {what}; use {allowed}{from}")
}

/// A value as an error shows it: quoted, in one line, and not too long.
pub(super) fn shown(value: &str) -> String {
    match value.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{:?}…", &value[..end]),
        None => format!("{value:?}"),
    }
}

/// A text that cannot break out of its line, nor speak to a terminal.
pub fn one_line(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

fn from(setting: &Setting, source: Source) -> String {
    match source {
        Source::Flag if setting.variable().is_some() => format!(" (from --{})", setting.flag),
        Source::Environment => " (from the environment)".to_owned(),
        Source::EnvFile => format!(" (from {ENV_FILE_NAME})"),
        // A setting that is only a flag has said so with its name.
        Source::Flag | Source::Preset => String::new(),
    }
}

/// A warning, if the name looks like one of our variables and is none.
fn unknown_of_ours(name: &str) -> Option<String> {
    let rest = name.strip_prefix(OUR_PREFIX)?;
    let is_setting = |name: &str| settings::ALL.iter().any(|s| s.variable() == Some(name));
    if is_setting(name) {
        return None;
    }
    let meant = if is_setting(rest) { rest } else { settings::POLYLOOP_TOKEN.name };
    Some(format!("{name} is not a setting and has no effect; did you mean {meant}?"))
}
