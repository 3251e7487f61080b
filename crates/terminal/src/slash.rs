//! The commands that begin with a slash, and how they are completed.

/// A command with what was written behind it.
#[derive(Debug, PartialEq, Eq)]
pub enum Slash {
    Help,
    Context,
    Compact,
    Interrupt,
    Resume,
    Sessions(String),
    Open(String),
    New,
    Mode(String),
    Model(String),
    Agent(String),
    Title(String),
    Fork,
    Undo,
    Todos,
    Queue,
    Cancel(String),
    Quit,
}

struct Command {
    name: &'static str,
    takes: &'static str,
    says: &'static str,
    make: fn(String) -> Slash,
}

const COMMANDS: &[Command] = &[
    command("help", "", "what can be said here", |_| Slash::Help),
    command("context", "", "how full the model's window is", |_| Slash::Context),
    command("compact", "", "make the conversation shorter now", |_| Slash::Compact),
    command("interrupt", "", "stop what the agent does", |_| Slash::Interrupt),
    command("resume", "", "go on with what was interrupted", |_| Slash::Resume),
    command("sessions", "[search]", "the newest sessions", Slash::Sessions),
    command("open", "ID or number", "go on with another session", Slash::Open),
    command("new", "", "begin a new session", |_| Slash::New),
    command("mode", "[mode]", "what runs without asking", Slash::Mode),
    command("model", "[model]", "which model answers", Slash::Model),
    command("agent", "[agent]", "how a turn is worked", Slash::Agent),
    command("title", "[title]", "what the session is called", Slash::Title),
    command("fork", "", "go on in a copy of this session", |_| Slash::Fork),
    command("undo", "", "take back the file edits of the last turn that made some", |_| {
        Slash::Undo
    }),
    command("todos", "", "what the agent means to do", |_| Slash::Todos),
    command("queue", "", "messages that wait for their turn", |_| Slash::Queue),
    command("cancel", "N", "take a message out of the queue", Slash::Cancel),
    command("quit", "", "leave; the session stays", |_| Slash::Quit),
];

const fn command(
    name: &'static str,
    takes: &'static str,
    says: &'static str,
    make: fn(String) -> Slash,
) -> Command {
    Command { name, takes, says, make }
}

impl Slash {
    /// None for a line that is no command; an error for one that nobody knows. A blank before it
    /// makes a command a message.
    pub fn read(line: &str) -> Option<Result<Slash, String>> {
        let rest = line.strip_prefix('/')?;
        // Paths and comments are messages.
        let name = rest.split(char::is_whitespace).next().unwrap_or_default();
        if name.is_empty() || name.contains('/') || line.contains('\n') {
            return None;
        }
        let argument = rest[name.len()..].trim().to_owned();
        let found = COMMANDS.iter().find(|command| command.name == name);
        Some(match found {
            Some(command) => Ok((command.make)(argument)),
            None => Err(unknown(name)),
        })
    }
}

fn unknown(name: &str) -> String {
    let like = COMMANDS.iter().filter(|command| {
        let beginning: String = name.chars().take(2).collect();
        command.name.starts_with(&beginning)
    });
    let like: Vec<String> = like.map(|command| format!("/{}", command.name)).collect();
    match like.as_slice() {
        [] => format!("/{name} is no command; /help lists them, a blank before it says it"),
        like => format!("/{name} is no command; did you mean {}?", like.join(" or ")),
    }
}

pub fn help() -> Vec<(String, &'static str)> {
    COMMANDS
        .iter()
        .map(|command| (format!("/{} {}", command.name, command.takes), command.says))
        .collect()
}

/// What the words of a command may be, as far as it is known.
#[derive(Debug, Default)]
pub struct Known {
    pub sessions: Vec<String>,
    pub modes: Vec<String>,
    pub models: Vec<String>,
    pub agents: Vec<String>,
}

/// How a line goes on: the line as far as it is certain, and the choices if there are several.
pub fn complete(line: &str, known: &Known) -> (String, Vec<String>) {
    let Some(rest) = line.strip_prefix('/') else { return (line.to_owned(), Vec::new()) };
    let (head, begun, choices) = match rest.split_once(' ') {
        None => {
            let names = COMMANDS.iter().map(|command| command.name.to_owned()).collect();
            ("/".to_owned(), rest, names)
        }
        Some((name, begun)) => {
            let words = match name {
                "open" => &known.sessions,
                "mode" => &known.modes,
                "model" => &known.models,
                "agent" => &known.agents,
                _ => return (line.to_owned(), Vec::new()),
            };
            (format!("/{name} "), begun, words.clone())
        }
    };
    let fitting: Vec<String> =
        choices.into_iter().filter(|choice| choice.starts_with(begun)).collect();
    match fitting.as_slice() {
        [] => (line.to_owned(), Vec::new()),
        [one] => (format!("{head}{one} "), Vec::new()),
        several => (format!("{head}{}", common(several)), fitting),
    }
}

/// What all of them begin with.
fn common(words: &[String]) -> &str {
    let first = words.first().map(String::as_str).unwrap_or_default();
    let shared = |word: &String| {
        first.chars().zip(word.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    };
    let length: usize = words.iter().map(shared).min().unwrap_or(0);
    &first[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        assert_eq!(Slash::read("/mode auto "), Some(Ok(Slash::Mode("auto".into()))));
        assert_eq!(Slash::read("/quit"), Some(Ok(Slash::Quit)));
        assert_eq!(Slash::read("/title a b"), Some(Ok(Slash::Title("a b".into()))));
        for line in ["hello", "/etc/passwd is what?", "/ alone", "/help\nand more", " /help"] {
            assert_eq!(Slash::read(line), None, "{line}");
        }
    }

    #[test]
    fn unknown_ones_get_a_hint() {
        let hint = Slash::read("/modle").unwrap().unwrap_err();
        assert_eq!(hint, "/modle is no command; did you mean /mode or /model?");
        let hint = Slash::read("/xyz").unwrap().unwrap_err();
        assert!(hint.contains("/help"), "{hint}");
    }

    #[test]
    fn lines_are_completed() {
        let known = Known {
            sessions: vec!["demo-1".into(), "demo-2".into(), "other".into()],
            ..Known::default()
        };
        let line = |text: &str| complete(text, &known).0;
        assert_eq!(line("/comp"), "/compact ");
        assert_eq!(line("/mo"), "/mode");
        assert_eq!(complete("/mo", &known).1, ["mode", "model"]);
        assert_eq!(line("/open o"), "/open other ");
        assert_eq!(line("/open d"), "/open demo-");
        assert_eq!(line("hello"), "hello");
        assert_eq!(line("/nothing"), "/nothing");
    }
}
