//! Reads what people answer, and says it to the model.

use super::{Answer, Ask, Given, Question};
use crate::id::Text;
use crate::item::End;
use crate::shown::prose;

pub const PLAN_APPROVED_TEXT: &str = "The user approved the plan. Go ahead with it.";
const NO_ANSWER_TEXT: &str = "(no answer)";

/// Answers as they come from a form: the question's place, and labels or own words.
pub type Reading = Vec<(u64, Vec<Text>)>;

/// Takes answers from a form; the error is for the one who answered.
pub fn read(questions: &[Question], reading: &Reading) -> Result<Vec<Given>, String> {
    if reading.is_empty() {
        return Err("answers: give at least one".into());
    }
    let mut given: Vec<Option<Given>> = vec![None; questions.len()];
    for (index, words) in reading {
        let at = usize::try_from(*index).ok().filter(|at| *at < questions.len());
        let Some(at) = at else {
            let last = questions.len().saturating_sub(1);
            return Err(format!("question_index: {index} is no question; use 0 to {last}"));
        };
        let answer = sort(&questions[at], words);
        if answer.selected.len() > 1 && !questions[at].multi {
            return Err(format!("selected: question {index} takes one option"));
        }
        if given[at].replace(answer).is_some() {
            return Err(format!("question_index: question {index} is answered twice"));
        }
    }
    Ok(given.into_iter().map(Option::unwrap_or_default).collect())
}

/// Parts labels from own words.
fn sort(question: &Question, words: &[Text]) -> Given {
    let mut given = Given::default();
    let mut own: Vec<&str> = Vec::new();
    for word in words {
        match label(question, word) {
            Some(label) if !given.selected.contains(&label) => given.selected.push(label),
            Some(_) => {}
            None if word.trim().is_empty() => {}
            None => own.push(word.trim()),
        }
    }
    given.text = (!own.is_empty()).then(|| own.join("\n").into());
    given
}

fn label(question: &Question, word: &str) -> Option<Text> {
    let word = word.trim();
    let labels = || question.options.iter().map(|option| &option.label);
    let exact = labels().find(|label| label.trim() == word);
    // As a form showed it.
    let shown = || labels().find(|label| prose(label).trim() == word);
    let near = || labels().find(|label| label.trim().to_lowercase() == word.to_lowercase());
    exact.or_else(shown).or_else(near).cloned()
}

/// Reads an answer that was typed: labels or numbers of options, else the user's own words. With
/// several questions, each line answers one if there are as many lines.
pub(crate) fn typed(questions: &[Question], text: &str) -> Vec<Given> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut given: Vec<Given> = if lines.len() == questions.len() {
        questions.iter().zip(lines).map(|(question, line)| choose(question, line)).collect()
    } else {
        questions.first().map(|question| choose(question, text)).into_iter().collect()
    };
    given.resize(questions.len(), Given::default());
    given
}

fn choose(question: &Question, text: &str) -> Given {
    let one = |word: &str| label(question, word).or_else(|| numbered(question, word));
    if let Some(label) = one(text) {
        return Given { selected: vec![label], text: None };
    }
    let words: Vec<&str> = text.split([',', ';']).filter(|word| !word.trim().is_empty()).collect();
    let chosen: Option<Vec<Text>> = words.iter().map(|word| one(word)).collect();
    match chosen {
        Some(chosen) if question.multi && !chosen.is_empty() => {
            let mut selected: Vec<Text> = Vec::new();
            for label in chosen {
                if !selected.contains(&label) {
                    selected.push(label);
                }
            }
            Given { selected, text: None }
        }
        _ => Given { selected: Vec::new(), text: Some(text.trim().into()) },
    }
}

fn numbered(question: &Question, word: &str) -> Option<Text> {
    let number: usize = word.trim().trim_end_matches(['.', ')']).parse().ok()?;
    let option = question.options.get(number.checked_sub(1)?)?;
    Some(option.label.clone())
}

/// How the call ends, and what the model is told.
pub(crate) fn told(ask: &Ask, answer: &Answer) -> (End, Text) {
    match (ask, answer) {
        (_, Answer::Denied { message, then: _ }) => (End::Denied, message.clone()),
        (_, Answer::Approved { message: None, .. }) => (End::Whole, PLAN_APPROVED_TEXT.into()),
        (_, Answer::Approved { message: Some(message), .. }) => {
            (End::Whole, format!("{PLAN_APPROVED_TEXT} They added: {message}").into())
        }
        (Ask::Question { questions }, Answer::Answered { answers, said }) => {
            (End::Whole, answered(questions, answers, said.as_deref()).into())
        }
        (Ask::Approval | Ask::Outside { .. } | Ask::Plan { .. }, Answer::Answered { said, .. }) => {
            (End::Whole, said.clone().unwrap_or_else(|| NO_ANSWER_TEXT.into()))
        }
    }
}

fn answered(questions: &[Question], answers: &[Given], said: Option<&str>) -> String {
    if let ([_], [only]) = (questions, answers) {
        return format!("The user answered: {}", words(only));
    }
    let understood = answers.iter().filter(|given| **given != Given::default()).count();
    if let Some(said) = said.filter(|_| understood < questions.len()) {
        return format!("The user answered: {}", said.trim());
    }
    let mut text = String::from("The user answered:");
    for (question, given) in questions.iter().zip(answers) {
        text.push_str(&format!("\n- {} {}", question.question, words(given)));
    }
    text
}

/// An answer in one line.
fn words(given: &Given) -> String {
    let chosen = given.selected.iter().map(|label| &**label);
    let all: Vec<&str> = chosen.chain(given.text.as_deref()).collect();
    if all.is_empty() { NO_ANSWER_TEXT.to_string() } else { all.join(", ") }
}

impl Answer {
    /// What was answered or decided, in words for people who watch.
    pub fn describe(&self) -> String {
        match self {
            Answer::Approved { always: false, message: None, .. } => "approved".into(),
            Answer::Approved { always: true, .. } => "approved for the session".into(),
            Answer::Approved { message: Some(message), .. } => format!("approved: {message}"),
            Answer::Denied { message, .. } => format!("denied: {message}"),
            Answer::Answered { said: Some(said), .. } => format!("answered: {}", said.trim()),
            Answer::Answered { answers, said: None } => {
                let all: Vec<String> = answers.iter().map(words).collect();
                format!("answered: {}", all.join("; "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::Choice;

    fn question(multi: bool) -> Question {
        let option = |label: &str| Choice { label: label.into(), description: None };
        let options = vec![option("Red"), option("Dark blue"), option("7")];
        Question { header: None, question: "Colour?".into(), options, multi }
    }

    fn given(selected: &[&str], text: Option<&str>) -> Given {
        let selected = selected.iter().map(|label| Text::from(*label)).collect();
        Given { selected, text: text.map(Into::into) }
    }

    #[test]
    fn typed_answers() {
        let rows: &[(bool, &str, Given)] = &[
            (false, "red", given(&["Red"], None)),
            (false, " 2. ", given(&["Dark blue"], None)),
            (false, "7", given(&["7"], None)),
            (false, "4", given(&[], Some("4"))),
            (false, "0", given(&[], Some("0"))),
            (false, "something else", given(&[], Some("something else"))),
            (false, "1, 2", given(&[], Some("1, 2"))),
            (true, "1, dark BLUE", given(&["Red", "Dark blue"], None)),
            (true, "1, 2, red", given(&["Red", "Dark blue"], None)),
            (true, "1 and 2", given(&[], Some("1 and 2"))),
        ];
        for (multi, text, want) in rows {
            assert_eq!(typed(&[question(*multi)], text), std::slice::from_ref(want), "{text}");
        }
        let two = [question(false), question(false)];
        assert_eq!(typed(&two, "1\n\nred"), [given(&["Red"], None), given(&["Red"], None)]);
        assert_eq!(typed(&two, "1"), [given(&["Red"], None), Given::default()]);
    }

    #[test]
    fn form_answers() {
        let ask = [question(false), question(true)];
        let form = |index: u64, words: &[&str]| -> Reading {
            vec![(index, words.iter().map(|word| Text::from(*word)).collect())]
        };
        assert_eq!(
            read(&ask, &form(1, &["Red", "my own", "red"])),
            Ok(vec![Given::default(), given(&["Red"], Some("my own"))])
        );
        for bad in [form(2, &["Red"]), form(0, &["Red", "7"]), Vec::new()] {
            assert!(read(&ask, &bad).is_err(), "{bad:?}");
        }
        let twice = [form(0, &["Red"]), form(0, &["Red"])].concat();
        assert!(read(&ask, &twice).is_err());
    }

    #[test]
    fn what_the_model_is_told() {
        let ask = Ask::Question { questions: vec![question(false)] };
        let answer = Answer::Answered { answers: vec![given(&["Red"], None)], said: None };
        assert_eq!(told(&ask, &answer), (End::Whole, "The user answered: Red".into()));
        let both = Ask::Question { questions: vec![question(false), question(false)] };
        let answers = vec![given(&["Red"], None), Given::default()];
        let answer = Answer::Answered { answers: answers.clone(), said: None };
        let text = "The user answered:\n- Colour? Red\n- Colour? (no answer)";
        assert_eq!(told(&both, &answer), (End::Whole, text.into()));
        let answer = Answer::Answered { answers, said: Some("red\nand then?\n".into()) };
        let text = "The user answered: red\nand then?";
        assert_eq!(told(&both, &answer), (End::Whole, text.into()));
    }
}
