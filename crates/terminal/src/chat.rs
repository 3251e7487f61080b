//! With a terminal: a conversation, in a loop over keys, what the server tells, time and signals.
//!
//! Everything that is shown goes through `Story` and `Screen`; nothing else writes to the
//! terminal while this runs.

mod act;
mod answer;
mod command;
mod panel;
mod told;

use std::collections::VecDeque;
use std::io::Stdout;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::address::Address;
use crate::editor::Editor;
use crate::editor::history::History;
use crate::keys::Keys;
use crate::link::{Link, Patience, Told};
use crate::past::Past;
use crate::rest::{self, Trouble};
use crate::screen::Screen;
use crate::slash::{Known, Slash};
use crate::story::{Moment, Story};
use crate::style::{Colours, Line, Style};
use crate::wire::{Event, message};
use crate::{Exit, Options, SIGCONT, SIGHUP, SIGINT, SIGTERM, complain, own_name, tty};

/// The spinner's pace; nothing is drawn more often but for keys.
const TICK: Duration = Duration::from_millis(120);
/// What comes together is drawn together.
const DRAW: Duration = Duration::from_millis(25);
/// A key that was on its way before something was asked does not answer it.
const ARMING: Duration = Duration::from_millis(200);
/// A letter that is followed by another as fast begins a line and is no answer.
const LETTER: Duration = Duration::from_millis(250);
/// Frames of a session's past that are shown when it is opened.
const FRAMES_SHOWN: usize = 200;

pub async fn run(address: Address, options: Options) -> Exit {
    let about = match rest::about(&address).await {
        Ok(about) => about,
        Err(problem) => return complain(Exit::Lost, &problem),
    };
    let opened = match &options.session {
        None => None,
        Some(id) => match Past::read(&address, id, options.new, FRAMES_SHOWN).await {
            Ok(past) => Some((id.clone(), past)),
            Err((exit, problem)) => return complain(exit, &problem),
        },
    };
    // Before the terminal is changed, so that none of them leaves it changed.
    let signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return complain(Exit::Failed, &format!("signals cannot be caught: {error}")),
    };
    let raw = match tty::Raw::enter() {
        Ok(raw) => raw,
        Err(error) => {
            return complain(Exit::Failed, &format!("the terminal cannot be used: {error}"));
        }
    };
    let mut chat = Chat::new(address, &about, raw);
    chat.greet(&about);
    if let Some((id, past)) = opened {
        chat.show(&id, past);
    }
    if !options.message.is_empty() {
        chat.send(&options.message.join(" "));
    }
    let exit = chat.go(signals).await;
    chat.leave().await;
    exit
}

struct Signals {
    resized: Signal,
    ended: Signal,
    hung_up: Signal,
    interrupted: Signal,
    back: Signal,
}

impl Signals {
    fn catch() -> std::io::Result<Signals> {
        Ok(Signals {
            resized: signal(SignalKind::window_change())?,
            ended: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
            interrupted: signal(SignalKind::interrupt())?,
            back: signal(SignalKind::from_raw(SIGCONT))?,
        })
    }
}

/// What came of a request that was made beside the loop.
pub(crate) enum Done {
    Opened {
        id: String,
        past: Past,
    },
    Sessions(Vec<Value>),
    /// Only for completion.
    Known(Vec<Value>),
    Models(Value),
    KnownModels(Value),
    Says(String),
    Nothing,
    Failed(String),
    /// A session for what is to be sent.
    Made(String),
    NotMade(String),
}

/// What a line that is written is for.
#[derive(Debug, Default, PartialEq, Eq)]
enum Writing {
    #[default]
    Message,
    /// The reason of a denial, of the request with this id.
    Reason(String),
    /// What is wrong with a plan.
    Feedback(String),
}

/// How the connection stands.
enum Connection {
    /// No session yet.
    None,
    Connecting,
    Up,
    Down {
        why: String,
        again_at: Instant,
    },
}

pub(crate) struct Chat {
    address: Address,
    session: Option<String>,
    link: Option<Link>,
    connection: Connection,
    story: Story,
    editor: Editor,
    history: History,
    known: Known,
    about: Value,
    /// Ids in the order of the last list.
    listed: Vec<String>,
    keys: Keys,
    screen: Screen<Stdout>,
    raw: Option<tty::Raw>,
    /// Lines that are to go up with the next drawing.
    done: Vec<Line>,
    writing: Writing,
    /// A line that was put aside to answer something.
    kept: String,
    /// Messages that the server has not shown yet, by id.
    outbox: VecDeque<(String, String)>,
    /// Said in the panel until the next key.
    hint: Vec<Line>,
    own: String,
    sent: u64,
    /// Ctrl-C was the last key, on an empty line.
    leaving: bool,
    /// From when on keys answer what is asked.
    armed_at: Option<Instant>,
    /// A letter that answers what is asked, unless more letters follow.
    letter: Option<(char, Instant)>,
    /// A session is being made for what is to be sent.
    making: bool,
    /// What is to be set in it then.
    settings: Vec<Slash>,
    finished: mpsc::UnboundedReceiver<Done>,
    finish: mpsc::UnboundedSender<Done>,
    /// The loop ends with this.
    exit: Option<Exit>,
}

impl Chat {
    fn new(address: Address, about: &Value, raw: tty::Raw) -> Chat {
        let own = own_name();
        let (finish, finished) = mpsc::unbounded_channel();
        let words = |list: &str, word: &str| -> Vec<String> {
            let all = about[list].as_array().cloned().unwrap_or_default();
            all.iter().filter_map(|one| one[word].as_str().map(str::to_owned)).collect()
        };
        let known = Known {
            modes: words("modes", "mode"),
            agents: words("agents", "agent"),
            ..Known::default()
        };
        let directory = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let file = History::file(directory("XDG_STATE_HOME"), directory("HOME"));
        Chat {
            address,
            session: None,
            link: None,
            connection: Connection::None,
            story: Story::new(&own),
            editor: Editor::default(),
            history: History::load(file),
            known,
            about: about.clone(),
            listed: Vec::new(),
            keys: Keys::default(),
            screen: Screen::new(std::io::stdout(), colours(), tty::size()),
            raw: Some(raw),
            done: Vec::new(),
            writing: Writing::default(),
            kept: String::new(),
            outbox: VecDeque::new(),
            hint: Vec::new(),
            own,
            sent: 0,
            leaving: false,
            armed_at: None,
            letter: None,
            making: false,
            settings: Vec::new(),
            finished,
            finish,
            exit: None,
        }
    }

    fn greet(&mut self, about: &Value) {
        let word = |name: &str| about[name].as_str().unwrap_or_default().to_owned();
        self.story.mode = word("permission_mode");
        self.story.model = word("model");
        self.story.agent = word("agent");
        self.story.cwd = word("working_directory");
        let head = format!(" {} at {}", word("version"), self.address.shown());
        self.done.push(Line::of("Polyloop", Style::BOLD).and(&head, Style::DIM));
        if !self.story.cwd.is_empty() {
            let place = format!("works in {}", self.story.cwd);
            self.done.push(Line::of(&place, Style::DIM));
        }
        let help = "Write a message and press Enter; /help lists commands, Ctrl-D leaves.";
        self.done.push(Line::of(help, Style::DIM));
        // Without these Tab completes less.
        let sessions = command::sessions(self.address.clone(), String::new(), Done::Known);
        self.request(async { Ok(sessions.await.unwrap_or(Done::Nothing)) });
        let models = command::models(self.address.clone(), command::Shown::No);
        self.request(async { Ok(models.await.unwrap_or(Done::Nothing)) });
    }

    /// Goes over to a session: what was, then what comes.
    fn show(&mut self, id: &str, past: Past) {
        let Past { frames, is_cut, since } = past;
        self.reset_story();
        self.done.push(Line::new());
        self.done.push(Line::of("session ", Style::DIM).and(id, Style::BOLD));
        if is_cut {
            self.done.push(Line::of("… what was before is not shown", Style::DIM));
        }
        for frame in frames {
            let lines = self.story.take(Event::of(frame), Moment::Before);
            self.done.extend(lines);
        }
        self.armed_at = self.story.is_asked().then(|| Instant::now() + ARMING);
        let link = Link::open(self.address.clone(), id, since, Patience::Endless);
        self.link = Some(link);
        self.session = Some(id.to_owned());
        self.connection = Connection::Connecting;
        self.making = false;
        if self.settings.is_empty() {
            self.say_outbox();
        }
    }

    /// An empty story with the settings of the one before; what was asked is gone with it.
    fn reset_story(&mut self) {
        let before = std::mem::replace(&mut self.story, Story::new(&self.own));
        self.story.mode = before.mode;
        self.story.model = before.model;
        self.story.agent = before.agent;
        if std::mem::take(&mut self.writing) != Writing::Message {
            // It was an answer to what is gone.
            self.editor.set("");
        }
        self.armed_at = None;
        self.letter = None;
    }

    async fn go(&mut self, mut signals: Signals) -> Exit {
        let mut bytes = tty::read_keys();
        let mut draw_at = Some(Instant::now());
        let mut escape_at = None;
        while self.exit.is_none() {
            let tick_at = self.is_moving().then(|| Instant::now() + TICK);
            let arming = self.armed_at.filter(|at| *at > Instant::now());
            tokio::select! {
                biased;
                _ = signals.ended.recv() => return Exit::Signal(SIGTERM),
                _ = signals.hung_up.recv() => return Exit::Signal(SIGHUP),
                _ = signals.interrupted.recv() => return Exit::Signal(SIGINT),
                _ = signals.resized.recv() => self.screen.resize(tty::size()),
                _ = signals.back.recv() => self.come_back(),
                read = bytes.recv() => match read {
                    None => return Exit::Signal(SIGHUP),
                    Some(read) => {
                        let keys = self.keys.push(&read);
                        keys.into_iter().for_each(|key| self.key(key));
                        escape_at = self.keys.patience().map(|time| Instant::now() + time);
                        draw_at = Some(Instant::now());
                    }
                },
                () = until(escape_at) => {
                    escape_at = None;
                    let keys = self.keys.timed_out();
                    keys.into_iter().for_each(|key| self.key(key));
                    draw_at = Some(Instant::now());
                }
                () = until(draw_at) => {
                    draw_at = None;
                    if self.draw().is_err() {
                        return Exit::Signal(SIGHUP);
                    }
                    continue;
                }
                told = next(&mut self.link) => self.told(told),
                Some(done) = self.finished.recv() => self.finished(done),
                () = until(tick_at) => {}
                () = until(arming) => {}
                () = until(self.letter.map(|(_, at)| at)) => self.settle_letter(),
            }
            draw_at = draw_at.or(Some(Instant::now() + DRAW));
        }
        let _ = self.draw();
        self.exit.unwrap_or(Exit::Done)
    }

    /// Whether something on the screen changes with time alone.
    fn is_moving(&self) -> bool {
        self.story.is_working() || matches!(self.connection, Connection::Down { .. })
    }

    async fn leave(&mut self) {
        let _ = self.screen.leave();
        self.raw = None;
        if let Some(session) = &self.session {
            crate::tell(&format!("session: {session} (polyloop chat --session {session})"));
        }
        if let Some(link) = self.link.take() {
            link.close().await;
        }
    }

    fn request(&self, doing: impl Future<Output = Result<Done, Trouble>> + Send + 'static) {
        let (finish, address) = (self.finish.clone(), self.address.clone());
        tokio::spawn(async move {
            let done = match doing.await {
                Ok(done) => done,
                Err(trouble) => Done::Failed(trouble.says(&address)),
            };
            let _ = finish.send(done);
        });
    }

    /// Sends something that needs no echo.
    fn tell(&mut self, kind: &str, fields: Value) {
        self.sent += 1;
        let frame = message(kind, &format!("{}{}", self.own, self.sent), fields);
        match (&self.link, &self.connection) {
            (Some(link), Connection::Up) => link.tell(frame),
            _ => self.hint("not connected; try again in a moment"),
        }
    }

    fn hint(&mut self, text: &str) {
        self.hint = vec![Line::of(text, Style::YELLOW)];
    }
}

fn colours() -> Colours {
    let none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if none || dumb { Colours::Off } else { Colours::On }
}

async fn next(link: &mut Option<Link>) -> Told {
    match link {
        Some(link) => link.next().await,
        None => std::future::pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
