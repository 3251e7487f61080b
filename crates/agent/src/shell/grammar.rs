//! What a script is once it has been read: lists of pipelines of commands made of words.
//!
//! Only what the judge can follow has a place here. Functions, background jobs, arrays, `until`,
//! `case`, `select`, `coproc` and `((…))` have none: a script with one of them is not read at all.

/// Pipelines, each with what must have become of the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    pub(super) items: Vec<(Joint, Pipeline)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// `;` or a new line, and before the first one.
    Then,
    And,
    Or,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pipeline {
    pub(super) negated: bool,
    pub(super) commands: Vec<Command>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) body: Body,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Simple(Simple),
    /// `{ …; }`
    Group(List),
    /// `( … )`
    Subshell(List),
    If {
        arms: Vec<(List, List)>,
        otherwise: Option<List>,
    },
    While {
        condition: List,
        body: List,
    },
    For {
        name: String,
        words: Vec<Word>,
        body: List,
    },
    /// `[[ … ]]`, each of its words; grouping and joints are left out.
    Conditional(Vec<Word>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) assignments: Vec<(String, Word)>,
    pub(super) words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// `<`
    Read(Word),
    /// `>`, `>>`, `>|` and `&>`
    Write(Word),
    /// `2>&1`, `2>&-`: one open descriptor takes the place of another.
    Duplicate,
    /// A here-document, or a here-string: text.
    Text(Option<Word>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Stands for itself.
    Quoted(String),
    /// Without quotation marks: patterns, braces and `~` mean something here.
    Bare(String),
    /// `$name`, `${name}`; `changed` if something is done to the value, as in `${name%.rs}`.
    Variable { name: String, changed: bool, quoted: bool },
    /// `$(…)` or `` `…` ``
    Output { script: List, quoted: bool },
    /// `<(…)`
    Process(List),
    /// `$((…))` of numbers alone.
    Number,
}

impl Word {
    /// The text of a word that is nothing but bare characters.
    pub(super) fn bare(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Bare(text)] => Some(text),
            _ => None,
        }
    }
}
