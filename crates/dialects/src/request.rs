//! What a request for approval shows of a call, in every dialect: nothing hidden, nothing that
//! looks like something else (`session::shown`).
//!
//! Only requests are worded here. What records a call tells it as it is.

use std::borrow::Cow;

use polyloop_session::policy::Judgement;
use polyloop_session::shown;
use polyloop_session::wait::{Choice, Question};
use serde_json::value::RawValue;

use crate::to_json;

/// How the texts below a field of a call's arguments are shown.
#[derive(Clone, Copy)]
enum Form {
    Command,
    Patch,
    Content,
    Prose,
}

impl Form {
    /// What a field holds goes by its name, unless its parent said it already.
    fn below(self, field: &str) -> Form {
        match (self, field) {
            (Form::Command, "patch") => Form::Patch,
            (Form::Command, "content" | "oldString" | "newString") => Form::Content,
            (Form::Command, "questions" | "plan" | "todos" | "description") => Form::Prose,
            (form, _) => form,
        }
    }

    fn show(self, text: &str) -> String {
        match self {
            Form::Command => shown::command(text),
            Form::Patch => shown::patch(text),
            Form::Content => shown::content(text),
            Form::Prose => shown::prose(text),
        }
    }
}

/// What would run, word by word.
pub(crate) fn command(judgement: &Judgement) -> Vec<String> {
    let is_patch = |word| judgement.patch.as_ref() == Some(word);
    let show = |word| if is_patch(word) { shown::patch(word) } else { shown::command(word) };
    judgement.command.iter().map(show).collect()
}

pub(crate) fn questions(questions: &[Question]) -> Vec<Question> {
    let choice = |choice: &Choice| Choice {
        label: shown::prose(&choice.label).into(),
        description: choice.description.as_deref().map(|text| shown::prose(text).into()),
    };
    let question = |question: &Question| Question {
        header: question.header.as_deref().map(|text| shown::prose(text).into()),
        question: shown::prose(&question.question).into(),
        options: question.options.iter().map(choice).collect(),
        multi: question.multi,
    };
    questions.iter().map(question).collect()
}

/// A call's arguments: the JSON that it is, with every text in it shown, names of fields too; or,
/// where it is none, a command.
pub(crate) fn arguments(args: &str) -> String {
    if serde_json::from_str::<&RawValue>(args).is_err() {
        return shown::command(args);
    }
    let mut json = String::with_capacity(args.len());
    let mut open: Vec<Open> = Vec::new();
    let mut rest = args;
    while let Some(c) = rest.chars().next() {
        let length = if c == '"' { literal_bytes(rest) } else { c.len_utf8() };
        let (now, later) = rest.split_at(length);
        let inside = open.last().map_or(Form::Command, |open| open.below);
        match c {
            '"' => {
                let text = text_of(now);
                let names = open.last().is_some_and(|open| open.names_next);
                let form = if names { Form::Command } else { inside };
                json.push_str(&to_json(&form.show(&text)));
                if let Some(open) = open.last_mut().filter(|_| names) {
                    open.below = open.form.below(&text);
                }
            }
            // A blank; in a text it would not be one.
            '\r' => json.push(' '),
            _ => json.push(c),
        }
        match c {
            '{' | '[' => open.push(Open::new(inside, c == '{')),
            '}' | ']' => drop(open.pop()),
            ':' | ',' => {
                if let Some(open) = open.last_mut() {
                    open.goes_on(c);
                }
            }
            _ => {}
        }
        rest = later;
    }
    json
}

/// An object or a list that is being read.
struct Open {
    /// Of itself, and of what comes next in it.
    form: Form,
    below: Form,
    is_object: bool,
    names_next: bool,
}

impl Open {
    fn new(form: Form, is_object: bool) -> Open {
        Open { form, below: form, is_object, names_next: is_object }
    }

    fn goes_on(&mut self, sign: char) {
        self.names_next = self.is_object && sign == ',';
        if sign == ',' {
            self.below = self.form;
        }
    }
}

/// The length of the JSON string that a text begins with, both quotation marks included.
fn literal_bytes(text: &str) -> usize {
    let mut escaped = true; // The first quotation mark.
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// What a JSON string says; one that no text can say is taken as it is written.
fn text_of(literal: &str) -> Cow<'_, str> {
    match serde_json::from_str::<String>(literal) {
        Ok(text) => text.into(),
        Err(_) => literal.trim_matches('"').into(),
    }
}

#[cfg(test)]
mod tests;
