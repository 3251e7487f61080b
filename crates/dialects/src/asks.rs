//! What is asked of people, as dialects without forms put it.

use polyloop_session::policy::Judgement;
use polyloop_session::shown;
use polyloop_session::wait::Question;

/// A question or plan that reached somebody: dialects show it as such, not as a tool call.
pub(crate) fn is_asked(judgement: &Judgement, answerable: bool) -> bool {
    judgement.effect.asks() && judgement.refusal.is_none() && answerable
}

/// The code of the notice that says so.
pub(crate) const SANDBOX_CODE: &str = "sandbox_refused";

/// What the sandbox did, where it stopped a call.
pub(crate) fn stopped(reason: &str) -> String {
    format!("The sandbox stopped the command: {}", shown::sentence(reason))
}

/// Why somebody is asked about a call that was stopped.
pub(crate) fn outside(reason: &str) -> String {
    format!("Run it outside the sandbox? It was stopped there: {}", shown::sentence(reason))
}

/// Questions with their options numbered, so that a number is an answer.
pub(crate) fn question(questions: &[Question]) -> String {
    let one = |question: &Question| {
        let mut text = question.question.to_string();
        for (option, number) in question.options.iter().zip(1..) {
            text.push_str(&format!("\n{number}. {}", option.label));
            let description = option.description.as_deref().unwrap_or("").trim();
            if !description.is_empty() {
                text.push_str(&format!(": {description}"));
            }
        }
        if question.multi {
            text.push_str("\n(several may be chosen, with commas between)");
        }
        text
    };
    let all: Vec<String> = questions.iter().map(one).collect();
    shown::prose(&all.join("\n\n"))
}
