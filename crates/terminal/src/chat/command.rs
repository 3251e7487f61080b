//! What the commands with a slash do. Requests are made beside the loop, so that keys never wait.

use serde_json::{Value, json};

use super::{Chat, Done};
use crate::Exit;
use crate::address::{Address, is_session_id, query};
use crate::past::{Past, make_session};
use crate::rest::{self, Trouble};
use crate::slash::{Slash, help};
use crate::story::todo_lines;
use crate::style::{Line, Style};
use crate::text::{count, one_line};

const SESSIONS_LISTED: usize = 20;
const PREVIEW_COLUMNS: usize = 50;

/// Whether a list is for people or for completion alone.
pub(super) enum Shown {
    Yes,
    No,
}

impl Chat {
    pub(super) fn command(&mut self, command: Slash) {
        let address = self.address.clone();
        if matches!(command, Slash::New | Slash::Open(_) | Slash::Fork) && !self.outbox.is_empty() {
            return self.hint("a message is still being sent; it would be lost with the session");
        }
        match command {
            Slash::Quit => self.exit = Some(Exit::Done),
            Slash::Help => self.help(),
            Slash::New => self.forget_session(),
            Slash::Sessions(search) => self.request(sessions(address, search, Done::Sessions)),
            Slash::Open(which) => self.open(&which),
            Slash::Model(model) if model.is_empty() => self.request(models(address, Shown::Yes)),
            Slash::Mode(mode) if mode.is_empty() => self.choices("modes", "mode"),
            Slash::Agent(agent) if agent.is_empty() => self.choices("agents", "agent"),
            Slash::Todos => {
                let lines = todo_lines(self.story.todos());
                self.done.extend(lines);
            }
            Slash::Queue => self.list_queue(),
            command if self.session.is_none() => self.without_session(command),
            Slash::Context => self.tell("get_context", json!({})),
            Slash::Compact => self.tell("compact", json!({})),
            Slash::Interrupt => self.interrupt(),
            Slash::Resume => self.tell("resume", json!({})),
            Slash::Mode(mode) => self.tell("set_permission_mode", json!({ "mode": mode })),
            Slash::Model(model) => self.tell("set_model", json!({ "model": model })),
            Slash::Agent(agent) => self.tell("set_agent", json!({ "agent": agent })),
            Slash::Cancel(number) => self.cancel(&number),
            Slash::Title(title) => self.title(title),
            Slash::Fork => self.request(fork(address, self.session.clone().unwrap_or_default())),
            Slash::Undo => self.request(undo(address, self.session.clone().unwrap_or_default())),
        }
    }

    /// There is nothing yet that it could be about; a setting makes the session.
    fn without_session(&mut self, command: Slash) {
        let fields = match &command {
            Slash::Mode(mode) => json!({ "permission_mode": mode }),
            Slash::Model(model) => json!({ "model": model }),
            Slash::Agent(agent) => json!({ "agent": agent }),
            Slash::Title(title) if !title.is_empty() => json!({ "title": title }),
            _ => return self.hint("there is no session yet; send a message first"),
        };
        if self.making {
            // It is on its way without this; the setting follows when it is there.
            return self.settings.push(command);
        }
        self.make(fields);
    }

    /// Makes a session beside the loop.
    pub(super) fn make(&mut self, fields: Value) {
        self.making = true;
        let (finish, address) = (self.finish.clone(), self.address.clone());
        tokio::spawn(async move {
            let done = match make_session(&address, fields).await {
                Ok(id) => Done::Made(id),
                Err(trouble) => Done::NotMade(trouble.says(&address)),
            };
            let _ = finish.send(done);
        });
    }

    /// What was set while the session was being made; it takes settings when it is connected.
    pub(super) fn say_settings(&mut self) {
        if self.settings.is_empty() {
            return;
        }
        for command in std::mem::take(&mut self.settings) {
            self.command(command);
        }
        self.say_outbox();
    }

    fn help(&mut self) {
        self.done.push(Line::new());
        for (command, says) in help() {
            let line = Line::of(&format!("  {command:<22}"), Style::CYAN).and(says, Style::PLAIN);
            self.done.push(line.hang(24));
        }
        let keys = "Alt-Enter or \\ Enter: a new line · Up, Ctrl-R: earlier lines · \
                    Tab: completes · Esc, Ctrl-C: interrupts · Ctrl-D: leaves";
        self.done.push(Line::of(keys, Style::DIM).hang(2));
    }

    fn forget_session(&mut self) {
        self.link = None;
        self.session = None;
        self.connection = super::Connection::None;
        self.story = crate::story::Story::new(&self.own);
        let about = self.about.clone();
        let word = |name: &str| about[name].as_str().unwrap_or_default().to_owned();
        self.story.mode = word("permission_mode");
        self.story.model = word("model");
        self.story.agent = word("agent");
        self.making = false;
        self.settings.clear();
        self.done.push(Line::new());
        self.done.push(Line::of("a new session; it begins with your message", Style::DIM));
    }

    fn open(&mut self, which: &str) {
        let by_number =
            which.parse::<usize>().ok().and_then(|n| self.listed.get(n.wrapping_sub(1)));
        let id = by_number.cloned().unwrap_or_else(|| which.to_owned());
        if !is_session_id(&id) {
            return self.hint("/open needs the id of a session, or its number in /sessions");
        }
        let address = self.address.clone();
        self.request(async move {
            let past = Past::page(&address, &id, super::FRAMES_SHOWN).await?;
            Ok(Done::Opened { id, past })
        });
    }

    fn choices(&mut self, list: &str, word: &str) {
        let now = if word == "mode" { self.story.mode.clone() } else { self.story.agent.clone() };
        let all = self.about[list].as_array().cloned().unwrap_or_default();
        self.done.push(Line::of(&format!("the {word} is {now}"), Style::BOLD));
        for one in &all {
            let name = one[word].as_str().unwrap_or_default();
            let says = one["says"].as_str().unwrap_or_default();
            let line = Line::of(&format!("  {name:<12}"), Style::CYAN).and(says, Style::PLAIN);
            self.done.push(line.hang(14));
        }
    }

    fn list_queue(&mut self) {
        if self.story.queue().is_empty() {
            return self.hint("no message waits");
        }
        for (at, queued) in self.story.queue().iter().enumerate() {
            let text = format!("  {} {}", at + 1, one_line(&queued.message, PREVIEW_COLUMNS));
            let by = queued.by.as_ref().map(|by| format!("  {by}")).unwrap_or_default();
            self.done.push(Line::of(&text, Style::PLAIN).and(&by, Style::DIM));
        }
    }

    fn cancel(&mut self, number: &str) {
        let queue = self.story.queue();
        let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        match at.and_then(|at| queue.get(at)).map(|queued| queued.id.clone()) {
            Some(id) => self.tell("cancel", json!({ "target_id": id })),
            None if queue.is_empty() => self.hint("no message waits"),
            None => {
                self.hint(&format!("give a number from 1 to {}; /queue lists them", queue.len()))
            }
        }
    }

    fn title(&mut self, title: String) {
        if title.is_empty() {
            let title = self.story.title.clone().unwrap_or_else(|| "(none)".to_owned());
            return self.hint(&format!("the title is: {title}"));
        }
        let (address, id) = (self.address.clone(), self.session.clone().unwrap_or_default());
        self.request(async move {
            // All clients are told by an event.
            rest::patch(&address, &format!("/sessions/{id}"), json!({ "title": title })).await?;
            Ok(Done::Nothing)
        });
    }

    pub(super) fn finished(&mut self, done: Done) {
        match done {
            Done::Opened { id, past } => self.opened(&id, past),
            Done::Known(sessions) => self.known.sessions = ids(&sessions),
            Done::Sessions(sessions) => self.list(&sessions),
            Done::Models(models) => self.list_models(&models),
            Done::KnownModels(models) => self.known.models = names(&models),
            Done::Nothing => {}
            Done::Says(text) => {
                let lines = self.story.note(&text);
                self.done.extend(lines);
            }
            Done::Made(id) if self.making => self.show(&id, Past::none()),
            // Another was opened meanwhile.
            Done::Made(_) => {}
            Done::Failed(problem) => {
                let lines = self.story.complain(&problem);
                self.done.extend(lines);
            }
            Done::NotMade(problem) => {
                self.making = false;
                self.settings.clear();
                let lines = self.story.complain(&problem);
                self.done.extend(lines);
                self.take_back();
            }
        }
    }

    /// Goes over to it, unless a message was written meanwhile that is not there yet.
    fn opened(&mut self, id: &str, past: Past) {
        if self.outbox.is_empty() {
            self.settings.clear();
            return self.show(id, past);
        }
        let says = format!("{id} was not opened: a message is still being sent; /open it later");
        let lines = self.story.note(&says);
        self.done.extend(lines);
    }

    /// What could not be sent for want of a session stands in the line again, before what has been
    /// written since.
    pub(super) fn take_back(&mut self) {
        if self.link.is_some() || self.outbox.is_empty() {
            return;
        }
        let mut unsent: Vec<String> = self.outbox.drain(..).map(|(_, text)| text).collect();
        unsent.extend(Some(self.editor.take()).filter(|line| !line.is_empty()));
        self.editor.set(&unsent.join("\n"));
    }

    fn list(&mut self, sessions: &[Value]) {
        self.listed = ids(sessions);
        self.known.sessions = self.listed.clone();
        if sessions.is_empty() {
            return self.hint("no such session");
        }
        self.done.push(Line::new());
        for (at, session) in sessions.iter().enumerate() {
            let word = |name: &str| session[name].as_str().unwrap_or_default();
            let id = word("id");
            let title = if word("title").is_empty() { word("preview") } else { word("title") };
            let here = if self.session.as_deref() == Some(id) { " (this one)" } else { "" };
            let style = match word("status") {
                "running" => Style::GREEN,
                "waiting" => Style::YELLOW,
                _ => Style::DIM,
            };
            self.done.push(
                Line::of(&format!("  {:>2} ", at + 1), Style::CYAN)
                    .and(id, Style::BOLD)
                    .and(&format!("  {}{here}", word("status")), style)
                    .and(&format!("  {}", one_line(title, PREVIEW_COLUMNS)), Style::PLAIN)
                    .hang(5),
            );
        }
        self.done.push(Line::of("  /open goes on with one, by number or id", Style::DIM));
    }

    fn list_models(&mut self, models: &Value) {
        self.known.models = names(models);
        self.done.push(Line::of(&format!("the model is {}", self.story.model), Style::BOLD));
        for model in models["models"].as_array().into_iter().flatten() {
            let name = model["model"].as_str().unwrap_or_default();
            let window = model["context_window"].as_u64().unwrap_or(0);
            let about = format!(
                "  {}, {} tokens",
                model["provider"].as_str().unwrap_or_default(),
                count(window)
            );
            self.done.push(Line::of(&format!("  {name}"), Style::CYAN).and(&about, Style::DIM));
        }
    }
}

fn ids(sessions: &[Value]) -> Vec<String> {
    sessions.iter().filter_map(|session| session["id"].as_str().map(str::to_owned)).collect()
}

fn names(models: &Value) -> Vec<String> {
    let all = models["models"].as_array().into_iter().flatten();
    all.filter_map(|model| model["model"].as_str().map(str::to_owned)).collect()
}

pub(super) async fn sessions(
    address: Address,
    search: String,
    done: fn(Vec<Value>) -> Done,
) -> Result<Done, Trouble> {
    let search = query(&search);
    let path = format!("/sessions?limit={SESSIONS_LISTED}&search={search}");
    let answer = rest::get(&address, &path).await?;
    Ok(done(answer["sessions"].as_array().cloned().unwrap_or_default()))
}

pub(super) async fn models(address: Address, shown: Shown) -> Result<Done, Trouble> {
    let models = rest::get(&address, "/models").await?;
    Ok(match shown {
        Shown::Yes => Done::Models(models),
        Shown::No => Done::KnownModels(models),
    })
}

async fn fork(address: Address, id: String) -> Result<Done, Trouble> {
    let made = rest::post(&address, &format!("/sessions/{id}:fork"), None).await?;
    let id = made["id"].as_str().unwrap_or_default().to_owned();
    let past = Past::page(&address, &id, super::FRAMES_SHOWN).await?;
    Ok(Done::Opened { id, past })
}

async fn undo(address: Address, id: String) -> Result<Done, Trouble> {
    let undone = rest::post(&address, &format!("/sessions/{id}:undo"), None).await?;
    let mut told = vec!["the file edits were taken back:".to_owned()];
    for (list, says) in [("files", "as before"), ("made", "made again"), ("removed", "removed")] {
        let files = undone[list].as_array().into_iter().flatten();
        told.extend(files.map(|file| format!("{}: {says}", text_of(file))));
    }
    told.extend(undone["note"].as_str().map(str::to_owned));
    Ok(Done::Says(told.join("\n")))
}

/// A path, or an object that has one.
fn text_of(value: &Value) -> String {
    let path = value.as_str().or_else(|| value["path"].as_str());
    path.map_or_else(|| value.to_string(), str::to_owned)
}
