//! What a person is asked: an approval, questions, or a plan.
//!
//! Says how each is shown and what an answer to it is on the wire; who presses which key is
//! `chat`'s to know.

use serde_json::{Value, json};

use super::tool::{diff_lines, summary};
use crate::markdown::Markdown;
use crate::style::{Line, Style};
use crate::text::lines;
use crate::wire::{ControlRequest, Question};

#[derive(Debug)]
pub struct Wait {
    pub id: String,
    pub kind: Kind,
    /// An answer is on its way.
    pub answered: bool,
}

#[derive(Debug)]
pub enum Kind {
    Approval(ControlRequest),
    Question {
        questions: Vec<Question>,
        /// Answers so far, question by question.
        answers: Vec<Vec<String>>,
    },
    Plan {
        plan: String,
        file: Option<String>,
    },
}

impl Wait {
    pub fn approval(request: ControlRequest) -> Wait {
        Wait { id: request.request_id.clone(), kind: Kind::Approval(request), answered: false }
    }

    pub fn question(id: String, questions: Vec<Question>) -> Wait {
        Wait { id, kind: Kind::Question { questions, answers: Vec::new() }, answered: false }
    }

    pub fn plan(id: String, plan: String, file: Option<String>) -> Wait {
        Wait { id, kind: Kind::Plan { plan, file }, answered: false }
    }

    /// What is asked, as it goes into the history.
    pub fn lines(&self, cwd: &str) -> Vec<Line> {
        match &self.kind {
            Kind::Approval(request) => approval_lines(request, cwd),
            Kind::Question { questions, answers } => {
                questions.get(answers.len()).map(question_lines).unwrap_or_default()
            }
            Kind::Plan { plan, file } => plan_lines(plan, file.as_deref()),
        }
    }

    /// Which keys answer it, in the first line, and what they mean.
    pub fn keys(&self) -> Vec<Line> {
        match &self.kind {
            Kind::Approval(request) => vec![
                keys(&[
                    ("y", "allow"),
                    ("a", "always"),
                    ("n", "deny"),
                    ("r", "deny with a reason"),
                ])
                .plus(keys_more(&[("s", "stop"), ("e", "explain")])),
                Line::of(&format!("  always covers {}", request.context.covers), Style::DIM)
                    .hang(2),
            ],
            Kind::Question { questions, answers } => {
                let multi = questions.get(answers.len()).is_some_and(|question| question.multi);
                let how = if multi {
                    "? answer with numbers (1 3) or in your own words, then Enter"
                } else {
                    "? answer with a number or in your own words, then Enter"
                };
                vec![Line::of(how, Style::YELLOW)]
            }
            Kind::Plan { .. } => vec![keys(&[("y", "approve the plan"), ("r", "send it back")])],
        }
    }

    /// Takes the answer to the next question; `Ok(Some)` is the whole answer, when it was the last.
    pub fn answer(&mut self, text: &str) -> Result<Option<Value>, String> {
        let Kind::Question { questions, answers } = &mut self.kind else { return Ok(None) };
        let Some(question) = questions.get(answers.len()) else { return Ok(None) };
        answers.push(chosen(question, text)?);
        if answers.len() < questions.len() {
            return Ok(None);
        }
        let answers: Vec<Value> = answers
            .iter()
            .enumerate()
            .map(|(at, selected)| json!({ "question_index": at, "selected": selected }))
            .collect();
        Ok(Some(json!({ "request_id": self.id, "answers": answers })))
    }

    /// Begins the answers to its questions again.
    pub fn forget(&mut self) {
        if let Kind::Question { answers, .. } = &mut self.kind {
            answers.clear();
        }
    }
}

/// Numbers are options; everything else is the user's own words.
fn chosen(question: &Question, text: &str) -> Result<Vec<String>, String> {
    let text = text.trim();
    let words: Vec<&str> = text.split([',', ' ', ';']).filter(|word| !word.is_empty()).collect();
    let numbers: Option<Vec<usize>> = words.iter().map(|word| word.parse().ok()).collect();
    let numbers = match numbers {
        Some(numbers) if !numbers.is_empty() && !question.options.is_empty() => numbers,
        _ => return Ok(vec![text.to_owned()]),
    };
    if numbers.len() > 1 && !question.multi {
        return Err("only one of these can be chosen; give one number, or your own words".into());
    }
    let label = |number: &usize| {
        let choice = number.checked_sub(1).and_then(|at| question.options.get(at));
        choice.map(|choice| choice.label.clone())
    };
    let labels: Option<Vec<String>> = numbers.iter().map(label).collect();
    labels.ok_or_else(|| format!("give a number from 1 to {}", question.options.len()))
}

fn keys(pairs: &[(&str, &str)]) -> Line {
    Line::of("?", Style::YELLOW.bold()).plus(keys_more(pairs))
}

fn keys_more(pairs: &[(&str, &str)]) -> Vec<crate::style::Span> {
    let span = crate::style::Span::new;
    let one = |(key, means): &(&str, &str)| {
        [span(&format!("  {key}"), Style::YELLOW.bold()), span(&format!(" {means}"), Style::PLAIN)]
    };
    pairs.iter().flat_map(one).collect()
}

fn approval_lines(request: &ControlRequest, cwd: &str) -> Vec<Line> {
    let context = &request.context;
    let risk = match context.risk_level.as_str() {
        "high" => Style::RED.bold(),
        "medium" => Style::YELLOW,
        _ => Style::GREEN,
    };
    let head = format!("{} needs your leave", request.tool_name);
    let mut shown = vec![
        Line::of("? ", Style::YELLOW.bold())
            .and(&head, Style::BOLD)
            .and("  risk: ", Style::DIM)
            .and(&context.risk_level, risk),
    ];
    shown.extend(what_runs(request));
    let place = request.input["workdir"].as_str().unwrap_or(cwd);
    if !place.is_empty() {
        shown.push(Line::of("  in ", Style::DIM).and(place, Style::PLAIN).hang(2));
    }
    let reasons = std::iter::once(&context.description).chain(&context.reasons);
    for reason in reasons.filter(|reason| !reason.is_empty()) {
        let reason =
            lines(reason).map(|line| Line::of("  ", Style::PLAIN).and(line, Style::PLAIN).hang(2));
        shown.extend(reason);
    }
    shown
}

/// What would run, whole: nobody can allow what is not shown.
fn what_runs(request: &ControlRequest) -> Vec<Line> {
    let framed = |text: &str| -> Vec<Line> {
        let line = |line| Line::of("  │ ", Style::DIM).and(line, Style::CYAN).unwrapped();
        lines(text).map(line).collect()
    };
    match request.context.command.as_slice() {
        [program, patch] if program == "apply_patch" => {
            let diff: Vec<String> = lines(patch).map(str::to_owned).collect();
            diff_lines(&diff, usize::MAX)
        }
        _ => match request.input["command"].as_str() {
            Some(command) => framed(command),
            None => {
                let about = summary(&request.tool_name, &request.input);
                let mut shown = framed(about.trim_start());
                let all = request.input.to_string();
                if all.len() > about.len() + 16 {
                    shown.extend(framed(&all));
                }
                shown
            }
        },
    }
}

fn question_lines(question: &Question) -> Vec<Line> {
    let head = Line::of("? ", Style::YELLOW.bold()).and(&question.question, Style::BOLD).hang(2);
    let mut shown = vec![head];
    for (at, choice) in question.options.iter().enumerate() {
        let line =
            Line::of(&format!("  {} ", at + 1), Style::YELLOW).and(&choice.label, Style::PLAIN);
        let line = match choice.description.as_str() {
            "" => line,
            description => line.and(&format!("  {description}"), Style::DIM),
        };
        shown.push(line.hang(4));
    }
    shown
}

fn plan_lines(plan: &str, file: Option<&str>) -> Vec<Line> {
    let mut shown = vec![Line::of("? ", Style::YELLOW.bold()).and("The plan", Style::BOLD)];
    let mut markdown = Markdown::default();
    shown.push(Line::new());
    shown.extend(markdown.push(plan));
    shown.extend(markdown.end());
    if let Some(file) = file {
        shown.push(Line::of(&format!("  kept in {file}"), Style::DIM));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(multi: bool) -> Wait {
        let value = json!([{ "question": "Which?", "multiSelect": multi, "options": [
            {"label": "red", "description": "warm"}, {"label": "blue"}] }]);
        Wait::question("req-1".into(), serde_json::from_value(value).unwrap())
    }

    fn selected(answer: Option<Value>) -> Value {
        answer.unwrap()["answers"][0]["selected"].clone()
    }

    #[test]
    fn numbers_choose_and_words_are_words() {
        assert_eq!(selected(question(false).answer("2").unwrap()), json!(["blue"]));
        assert_eq!(selected(question(true).answer("1, 2").unwrap()), json!(["red", "blue"]));
        let own = question(false).answer(" green, please ").unwrap();
        assert_eq!(selected(own), json!(["green, please"]));
    }

    #[test]
    fn a_number_that_is_no_option_is_refused() {
        assert!(question(false).answer("3").unwrap_err().contains("1 to 2"));
        assert!(question(false).answer("0").is_err());
        assert!(question(false).answer("1 2").unwrap_err().contains("only one"));
    }

    #[test]
    fn several_questions_come_one_by_one() {
        let value = json!([{"question": "A?", "options": []}, {"question": "B?", "options": []}]);
        let mut wait = Wait::question("req-2".into(), serde_json::from_value(value).unwrap());
        assert!(wait.lines("")[0].plain().contains("A?"));
        assert_eq!(wait.answer("1").unwrap(), None);
        assert!(wait.lines("")[0].plain().contains("B?"));
        let answer = wait.answer("two").unwrap().unwrap();
        assert_eq!(answer["answers"][0]["selected"], json!(["1"]));
        assert_eq!(answer["answers"][1]["selected"], json!(["two"]));
    }

    #[test]
    fn an_approval_shows_all_that_runs() {
        let request: ControlRequest = serde_json::from_value(json!({
            "request_id": "req-3", "tool_name": "Bash", "input": {"command": "rm -rf x\ntrue"},
            "context": {"description": "`rm` deletes", "risk_level": "high",
                        "covers": "this command alone", "command": ["rm"]}
        }))
        .unwrap();
        let wait = Wait::approval(request);
        let shown: Vec<String> = wait.lines("/w").iter().map(Line::plain).collect();
        assert_eq!(
            shown,
            [
                "? Bash needs your leave  risk: high",
                "  │ rm -rf x",
                "  │ true",
                "  in /w",
                "  `rm` deletes",
            ]
        );
        assert!(wait.keys()[1].plain().contains("this command alone"));
    }

    #[test]
    fn a_patch_is_shown_whole() {
        let lines: String = (0..2000).map(|n| format!("+line {n}\n")).collect();
        let patch = format!("*** Begin Patch\n*** Add File: a\n{lines}*** End Patch");
        let request: ControlRequest = serde_json::from_value(json!({
            "request_id": "req-4", "tool_name": "ApplyPatch",
            "context": {"command": ["apply_patch", patch]}
        }))
        .unwrap();
        let shown: Vec<String> =
            Wait::approval(request).lines("").iter().map(Line::plain).collect();
        assert!(shown.contains(&"  │ +line 1999".to_owned()), "{:?}", shown.last());
        assert!(!shown.iter().any(|line| line.contains("more lines")));
    }
}
