//! Without a terminal: one message, and its answer on standard output.
//!
//! Never waits for a person: what is asked is denied, the model is told why, and the exit status
//! tells the script.

mod behind;
mod message;

use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::address::Address;
use crate::link::{Link, Patience, Told};
use crate::past::{Past, make_session};
use crate::text::{clean, escaped, lines};
use crate::wire::{Event, message as frame};
use crate::{
    Exit, Options, SIGINT, SIGPIPE, SIGTERM, complain, own_name, rest, tell, too_long, tty,
};

const NOBODY: &str = "Nobody could be asked: this client runs without a terminal. Go on without \
                      it, or say what would be needed.";
/// How long an interrupted turn may take to end.
const INTERRUPT_TIME_MAX: Duration = Duration::from_secs(5);
const REASON: &str = "stopped by the user of polyloop chat";

pub async fn run(address: Address, options: Options) -> Exit {
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
        return complain(Exit::Failed, "signals cannot be caught");
    };
    let message = tokio::select! {
        message = message::read(&options.message) => message,
        _ = interrupt.recv() => return Exit::Signal(SIGINT),
        _ = terminate.recv() => return Exit::Signal(SIGTERM),
    };
    let message = match message {
        Ok(message) => message,
        Err(problem) => return complain(Exit::Usage, &problem),
    };
    let about = match rest::about(&address).await {
        Ok(about) => about,
        Err(problem) => return complain(Exit::Lost, &problem),
    };
    if let Some(problem) = too_long(&message, &about) {
        return complain(Exit::Usage, &problem);
    }
    let (session, since) = match session(&address, &options).await {
        Ok(session) => session,
        Err((exit, problem)) => return complain(exit, &problem),
    };
    tell(&format!("session: {session}"));
    let link = Link::open(address, &session, since, Patience::For(options.reconnect));
    let id = format!("{}1", own_name());
    link.say(&id, &message);
    let mut pipe = Pipe::new(link, id, options.json);
    let exit = pipe.follow(&mut interrupt, &mut terminate).await;
    pipe.link.close().await;
    exit
}

/// The session that the message goes to, and the place to begin at.
async fn session(address: &Address, options: &Options) -> Result<(String, String), (Exit, String)> {
    match &options.session {
        Some(id) => {
            let past = Past::read(address, id, options.new, 1).await?;
            Ok((id.clone(), past.since))
        }
        None => {
            let made = make_session(address, json!({})).await;
            let id = made.map_err(|trouble| (Exit::Lost, trouble.says(address)))?;
            Ok((id, "0".to_owned()))
        }
    }
}

/// How far the message has come.
#[derive(PartialEq, Eq)]
enum Stage {
    Sent,
    /// It waits, under this name.
    Queued(String),
    Running,
}

struct Pipe {
    link: Link,
    /// The message's id.
    id: String,
    json: bool,
    stage: Stage,
    /// What the model has written since it last did something else.
    answer: String,
    /// One message of it is over: another begins in a new line.
    ended: bool,
    denied: bool,
    /// Requests of the turn before ours that nobody has answered yet, by id and tool.
    open: Vec<(String, String)>,
    /// The message waits behind one of them and was taken back.
    withdrawn: bool,
    /// A signal came, and the turn is asked to end by then.
    stopped: Option<(u8, Instant)>,
    lost: bool,
}

impl Pipe {
    fn new(link: Link, id: String, json: bool) -> Pipe {
        Pipe {
            link,
            id,
            json,
            stage: Stage::Sent,
            answer: String::new(),
            ended: false,
            denied: false,
            open: Vec::new(),
            withdrawn: false,
            stopped: None,
            lost: false,
        }
    }

    async fn follow(&mut self, interrupt: &mut Signal, terminate: &mut Signal) -> Exit {
        loop {
            let patience = self.stopped.map(|(_, until)| until);
            let told = tokio::select! {
                told = self.link.next() => told,
                _ = interrupt.recv() => match self.stop(SIGINT) {
                    Some(exit) => return exit,
                    None => continue,
                },
                _ = terminate.recv() => match self.stop(SIGTERM) {
                    Some(exit) => return exit,
                    None => continue,
                },
                () = until(patience) => return self.signal(),
            };
            if let Some(exit) = self.told(told) {
                return exit;
            }
        }
    }

    /// Asks the turn to end; the second signal does not wait for it.
    fn stop(&mut self, number: u8) -> Option<Exit> {
        if self.stopped.is_some() {
            return Some(self.signal());
        }
        self.stopped = Some((number, Instant::now() + INTERRUPT_TIME_MAX));
        match self.stage {
            Stage::Running => self.send("interrupt", json!({ "reason": REASON })),
            Stage::Sent | Stage::Queued(_) => {
                self.take_back();
                return Some(self.signal());
            }
        }
        None
    }

    fn signal(&self) -> Exit {
        Exit::Signal(self.stopped.map_or(SIGINT, |(number, _)| number))
    }

    fn told(&mut self, told: Told) -> Option<Exit> {
        match told {
            Told::Frame(frame) => {
                if self.json
                    && let Err(exit) = print_frame(&frame)
                {
                    return Some(exit);
                }
                self.event(Event::read(&frame))
            }
            Told::Up => {
                if std::mem::take(&mut self.lost) {
                    tell("connected again");
                }
                if self.withdrawn {
                    // The first may have been lost with the connection.
                    self.take_back();
                }
                None
            }
            Told::Anew => {
                let problem = "the server no longer has this session; it was started anew without \
                               what was said, so no answer comes";
                Some(complain(Exit::Lost, problem))
            }
            Told::Lost { why, .. } => {
                if !std::mem::replace(&mut self.lost, true) {
                    tell(&format!("the connection is lost ({why}); trying again"));
                }
                None
            }
            Told::GaveUp { why } => {
                let problem = format!("the connection to the server is lost for good: {why}");
                Some(complain(Exit::Lost, &problem))
            }
        }
    }

    fn event(&mut self, event: Event) -> Option<Exit> {
        self.note_request(&event);
        let own = |id: &Option<String>| id.as_ref() == Some(&self.id);
        match event {
            Event::TurnStarted(started) if own(&started.client_ref) => self.stage = Stage::Running,
            Event::MessageQueued { message_id, client_ref, .. } if own(&client_ref) => {
                tell("the session is busy; the message waits for its turn");
                self.stage = Stage::Queued(message_id);
                self.wait_for_nobody();
            }
            Event::MessageDropped { message_id, .. }
                if self.withdrawn && self.stage == Stage::Queued(message_id.clone()) =>
            {
                return Some(complain(Exit::Denied, &self.waits_for()));
            }
            Event::MessageDropped { message_id, .. }
                if self.stage == Stage::Queued(message_id.clone()) =>
            {
                return Some(complain(Exit::Interrupted, "the message was taken out elsewhere"));
            }
            Event::SessionInfo(facts) if facts.status.as_deref() == Some("paused") => {
                if let Stage::Queued(_) = self.stage {
                    // It would wait until somebody goes on.
                    self.take_back();
                    let problem = "the session was interrupted elsewhere; the message was not said";
                    return Some(complain(Exit::Interrupted, problem));
                }
            }
            Event::Error { message, client_ref, is_fatal } => {
                if own(&client_ref) || is_fatal {
                    return Some(complain(Exit::Failed, &message));
                }
                tell(&format!("error: {message}"));
            }
            event if self.stage == Stage::Running => return self.turn(event),
            _ => {}
        }
        None
    }

    /// An event of the turn that the message began.
    fn turn(&mut self, event: Event) -> Option<Exit> {
        match event {
            Event::AssistantMessage { text, is_final } => self.write(&text, is_final),
            Event::ToolStarted { tool_name, arguments, .. } => {
                self.put_aside();
                tell(&format!("● {tool_name}{}", crate::story::summary(&tool_name, &arguments)));
            }
            Event::ToolCompleted { success: false, error, .. } => {
                tell_all("  ✗ ", &error.unwrap_or_default());
            }
            Event::ControlRequest(request) => {
                self.put_aside();
                self.deny(&format!("{}: denied, because nobody could be asked", request.tool_name));
                let fields = json!({ "request_id": request.request_id, "decision": "deny",
                                     "explanation": NOBODY });
                self.send("permission_response", fields);
            }
            Event::AskUserQuestion { request_id, questions } => {
                self.put_aside();
                for question in &questions {
                    self.deny(&format!(
                        "not asked, because nobody is there: {}",
                        question.question
                    ));
                }
                let answer = |at| json!({ "question_index": at, "selected": [NOBODY] });
                let answers: Vec<Value> = (0..questions.len()).map(answer).collect();
                let fields = json!({ "request_id": request_id, "answers": answers });
                self.send("user_question_response", fields);
            }
            Event::ExitPlanMode { request_id, plan, .. } => {
                self.put_aside();
                tell_all("  ", &plan);
                self.deny("the plan was sent back, because nobody could approve it");
                let fields =
                    json!({ "request_id": request_id, "approved": false, "feedback": NOBODY });
                self.send("plan_approval_response", fields);
            }
            Event::Notice { text, code, .. } => {
                if matches!(code.as_str(), "retry" | "compacting") {
                    // What the failed attempt wrote is no part of the answer.
                    self.answer.clear();
                }
                tell_all("", &text);
            }
            Event::TurnCompleted { .. } => return Some(self.completed()),
            Event::TurnFailed { error, code } => return Some(self.failed(&error, &code)),
            _ => {}
        }
        None
    }

    fn write(&mut self, text: &str, is_final: bool) {
        if std::mem::take(&mut self.ended) && !self.answer.is_empty() && !text.is_empty() {
            self.answer.push('\n');
        }
        self.answer.push_str(text);
        self.ended = is_final;
    }

    /// What was written before a tool was called is no answer yet.
    fn put_aside(&mut self) {
        tell_all("", &std::mem::take(&mut self.answer));
    }

    fn deny(&mut self, why: &str) {
        self.denied = true;
        tell(why);
    }

    fn completed(&mut self) -> Exit {
        if let Err(exit) = self.print_answer() {
            return exit;
        }
        match (self.stopped, self.denied) {
            (Some(_), _) => self.signal(),
            (None, true) => Exit::Denied,
            (None, false) => Exit::Done,
        }
    }

    fn failed(&mut self, error: &str, code: &str) -> Exit {
        if let Err(exit) = self.print_answer() {
            return exit;
        }
        let exit = match (self.stopped, code) {
            (Some(_), _) => self.signal(),
            (None, "interrupted") => Exit::Interrupted,
            (None, _) => Exit::Failed,
        };
        complain(exit, error)
    }

    fn print_answer(&mut self) -> Result<(), Exit> {
        let answer = std::mem::take(&mut self.answer);
        let answer = answer.trim_end_matches('\n');
        if self.json || answer.is_empty() {
            return Ok(());
        }
        if tty::output_is_terminal() {
            return lines(answer).try_for_each(|line| print(&clean(line)));
        }
        print(answer)
    }

    fn send(&self, kind: &str, fields: Value) {
        self.link.tell(frame(kind, &format!("{}-{kind}", self.id), fields));
    }
}

/// On a terminal nothing in it is obeyed; it is the same JSON.
fn print_frame(frame: &str) -> Result<(), Exit> {
    if tty::output_is_terminal() { print(&escaped(frame)) } else { print(frame) }
}

/// A line on standard output; an error is the exit of who cannot write.
fn print(line: &str) -> Result<(), Exit> {
    let mut out = io::stdout().lock();
    let written = out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n"));
    match written.and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // Whoever reads has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Exit::Signal(SIGPIPE)),
        Err(error) => {
            Err(complain(Exit::Failed, &format!("standard output cannot be written: {error}")))
        }
    }
}

fn tell_all(lead: &str, text: &str) {
    if !text.trim().is_empty() {
        lines(text.trim_end()).for_each(|line| tell(&format!("{lead}{line}")));
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
