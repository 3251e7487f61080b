//! Cuts any script into commands, roughly: enough to say how risky it looks.
//!
//! No grammar, and never used to call something safe. What stands in comments and here-documents
//! is taken for commands, and a quotation mark there hides what follows.

/// How deep commands inside of words are looked for.
const DEPTH_MAX: usize = 4;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    /// Quotation marks are gone; what bash would expand still stands there.
    pub(super) words: Vec<String>,
    /// What is piped into it comes from another command.
    pub(super) piped: bool,
    /// The files it is told to write by `>`.
    pub(super) writes: Vec<String>,
}

/// Commands of the script, in the order in which they begin.
pub(super) fn commands(script: &str) -> Vec<Command> {
    let mut cut = Cut::default();
    cut.script(script, 0);
    cut.done
}

#[derive(Default)]
struct Cut {
    done: Vec<Command>,
    open: Command,
    word: Option<String>,
    redirected: bool,
}

impl Cut {
    fn script(&mut self, script: &str, depth: usize) {
        let mut chars = script.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' | ';' | '&' | '(' | ')' | '`' => self.end_command(false),
                '|' => {
                    // `||` joins like `;`, and `|&` pipes like `|`.
                    let piped = chars.next_if(|c| matches!(c, '|' | '&')) != Some('|');
                    self.end_command(piped);
                }
                '>' => {
                    // `>>`, `>|` and `>&` write as well.
                    self.end_word();
                    while chars.next_if(|c| matches!(c, '>' | '&' | '|')).is_some() {}
                    self.redirected = true;
                }
                '<' => self.end_word(),
                '\'' => {
                    let text: String = chars.by_ref().take_while(|c| *c != '\'').collect();
                    self.word.get_or_insert_default().push_str(&text);
                }
                '"' => self.double_quoted(&mut chars, depth),
                '\\' => {
                    if let Some(next) = chars.next().filter(|next| *next != '\n') {
                        self.word.get_or_insert_default().push(next);
                    }
                }
                // What is inside of `$(…)`, `$'…'` and `$"…"` is found by itself.
                '$' if matches!(chars.peek(), Some('(' | '\'' | '"')) => {}
                _ => self.word.get_or_insert_default().push(c),
            }
        }
        self.end_command(false);
    }

    fn double_quoted(&mut self, chars: &mut impl Iterator<Item = char>, depth: usize) {
        let mut text = String::new();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => text.extend(chars.next()),
                _ => text.push(c),
            }
        }
        self.word.get_or_insert_default().push_str(&text);
        let runs = text.find("$(").or_else(|| text.find('`'));
        if let (Some(at), true) = (runs, depth < DEPTH_MAX) {
            let mut inner = Cut::default();
            inner.script(text.get(at..).unwrap_or_default(), depth + 1);
            self.done.append(&mut inner.done);
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.redirected) {
            self.open.writes.push(word);
        } else {
            self.open.words.push(word);
        }
    }

    fn end_command(&mut self, next_is_piped: bool) {
        self.end_word();
        self.redirected = false;
        let next = Command { piped: next_is_piped, ..Command::default() };
        let command = std::mem::replace(&mut self.open, next);
        if !command.words.is_empty() || !command.writes.is_empty() {
            self.done.push(command);
        }
    }
}
