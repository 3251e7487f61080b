//! A simulated model that plays Game of 24 as well as it is told to. All that it knows it reads in
//! the text of its prompt, and it writes as models do: fenced, in prose, in lists.
//!
//! What it says depends on the prompt and on how often that very prompt came, never on what else
//! was asked before it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use polyloop_agent::model::table::Card;
use polyloop_agent::model::{Chunk, Model, Request, Stop};
use polyloop_session::history::{AssistantPart, Message};
use polyloop_session::item::{ItemKind, Part, Usage};
use serde_json::json;

use super::dice::Dice;
use super::puzzle::{self, Fraction, Left, STEPS, Solver};

static CARD: Card = Card {
    tokens_max: 1_000_000,
    window_known: true,
    output_tokens_max: 10_000,
    price: None,
    images: false,
    reasoning: false,
    native_shell: false,
};

pub const ANSWER_MARK: &str = "Answer: ";
const PUZZLE_MARK: &str = "the numbers ";

pub fn message(numbers: &Left) -> String {
    let numbers: Vec<String> = numbers.iter().map(Fraction::to_string).collect();
    format!(
        "Use {PUZZLE_MARK}{}, each once, with + - * / and brackets, to make 24. End with a line \
         \"{ANSWER_MARK}\" and the expression.",
        numbers.join(" ")
    )
}

/// How a plan looks that it makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plan {
    /// One sub-task that is the whole, tried several times.
    Whole { attempts: u32 },
    /// A sub-task a step, each tried several times.
    Steps { attempts: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skill {
    /// How often a step that it proposes keeps 24 in reach, where one does.
    pub accuracy: f64,
    /// How often a state is judged for what it is not.
    pub error: f64,
    pub plan: Plan,
    pub seed: u64,
}

pub struct Mind {
    skill: Skill,
    solver: Arc<Solver>,
    /// How often each prompt came.
    came: Mutex<HashMap<u64, u64>>,
}

impl Mind {
    pub fn new(skill: Skill, solver: Arc<Solver>) -> Mind {
        Mind { skill, solver, came: Mutex::default() }
    }
}

impl Model for Mind {
    fn name(&self) -> &str {
        "offline"
    }

    fn card(&self) -> &Card {
        &CARD
    }

    fn ask(&self, request: Request) -> BoxStream<'static, Chunk> {
        let texts: Vec<String> = request.prompt.messages.iter().map(text_of).collect();
        let text = self.answer(&texts).into();
        let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
        let chunks = [
            Chunk::Started { block: 0, kind: ItemKind::Text },
            Chunk::Text { block: 0, text },
            Chunk::Ended { block: 0, opaque: None },
            Chunk::Usage(usage),
            Chunk::Done(Stop::End),
        ];
        stream::iter(chunks).boxed()
    }
}

fn text_of(message: &Message) -> String {
    match message {
        Message::User(parts) => parts.iter().map(Part::shown).collect::<Vec<_>>().join("\n"),
        Message::Assistant(parts) => {
            let texts = parts.iter().filter_map(|part| match part {
                AssistantPart::Text { text, .. } => Some(&**text),
                AssistantPart::Reasoning { .. } | AssistantPart::ToolCall { .. } => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Message::ToolResult { output, .. } => output.to_string(),
    }
}

/// Between two marks.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let (_, tail) = text.split_once(from)?;
    tail.split(to).next()
}

/// The lines `1. …`, `2. …` of a text.
fn numbered(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split_once(". "));
    let numbered = lines.filter(|(number, _)| number.parse::<u32>().is_ok());
    numbered.map(|(_, step)| step.to_owned()).collect()
}

impl Mind {
    fn answer(&self, texts: &[String]) -> String {
        let whole = texts.join("\n\n");
        let mut dice = Dice::of(self.skill.seed, &whole);
        let came = {
            let mut came = self.came.lock().unwrap();
            let came = came.entry(dice.next()).or_default();
            *came += 1;
            *came
        };
        let mut dice = Dice::of(self.skill.seed ^ came, &whole);
        let Some(numbers) = texts.first().and_then(|text| puzzle_of(text)) else {
            return "I see no puzzle.".to_owned();
        };
        let asked = texts.last().map_or("", String::as_str);
        let has = |words: &str| asked.contains(words);
        if has("different next steps") {
            self.propose(&numbers, asked, &mut dice)
        } else if has("How promising is this way?") {
            self.judge(&numbers, &numbered(asked), &mut dice)
        } else if has("Which of these ways is the best?") {
            self.vote(asked, &mut dice)
        } else if has("split it into sub-tasks first") {
            self.plan(&numbers, &mut dice)
        } else if has("How good is this result of a sub-task?") {
            let result = between(asked, "The result:\n", "\n\nJudge").unwrap_or("");
            self.judge(&numbers, &numbered(result), &mut dice)
        } else if let Some(task) = between(asked, "Your sub-task: ", "\n\nResult of") {
            self.work(&numbers, task, asked, &mut dice)
        } else if has("The best that was found, step by step:") {
            // What is told of the way that was chosen; the rest is up to itself.
            self.finish(&numbers, numbered(asked), &mut dice)
        } else {
            self.finish(&numbers, Vec::new(), &mut dice)
        }
    }

    /// Different steps from a state, each right as often as it is told to be.
    fn draw(&self, left: &Left, count: usize, dice: &mut Dice) -> Vec<String> {
        let ways = self.solver.ways(left);
        let mut good: Vec<&str> = ways.good.iter().map(|step| &*step.text).collect();
        let mut bad: Vec<&str> = ways.bad.iter().map(|step| &*step.text).collect();
        let mut drawn = Vec::new();
        while drawn.len() < count {
            let (first, second) = match dice.chance(self.skill.accuracy) {
                true => (&mut good, &mut bad),
                false => (&mut bad, &mut good),
            };
            match dice.pick(first).or_else(|| dice.pick(second)) {
                Some(step) => drawn.push(step.to_owned()),
                None => break,
            }
        }
        drawn
    }

    fn propose(&self, numbers: &Left, asked: &str, dice: &mut Dice) -> String {
        let most = between(asked, "Propose up to ", " different");
        let most = most.and_then(|most| most.parse().ok()).unwrap_or(1);
        let left = left_of(numbers, &numbered(asked));
        let steps = self.draw(&left, most, dice);
        written(&steps, dice)
    }

    fn judge(&self, numbers: &Left, steps: &[String], dice: &mut Dice) -> String {
        let reaches = self.solver.reaches(&left_of(numbers, steps));
        let said = reaches != dice.chance(self.skill.error);
        let forms: &[&str] = match said {
            true => &[
                "The numbers that are left work out.\nsure",
                "```json\n{\"value\": \"sure\"}\n```",
                "I tried a few ways and one came to 24.\n\n**Sure**",
                "10/10",
            ],
            false => &[
                "Too small, too large, nothing fits.\nimpossible",
                "{\"value\": 0}",
                "None of the ways I tried came to it.\n\n**Impossible.**",
                "0/10",
            ],
        };
        forms[dice.below(forms.len() as u64) as usize].to_owned()
    }

    /// For one of those that look good; for any where none does.
    fn vote(&self, asked: &str, dice: &mut Dice) -> String {
        let choices = asked.lines().filter(|line| line.starts_with("Choice "));
        let judged: Vec<bool> = choices
            .map(|line| {
                let left = puzzle::left_after(line.rsplit("; then ").next().unwrap_or(line));
                let reaches = left.is_some_and(|left| self.solver.reaches(&left));
                reaches != dice.chance(self.skill.error)
            })
            .collect();
        let mut good: Vec<usize> =
            (1..).zip(&judged).filter(|(_, g)| **g).map(|(n, _)| n).collect();
        let mut all: Vec<usize> = (1..=judged.len()).collect();
        let best = dice.pick(&mut good).or_else(|| dice.pick(&mut all)).unwrap_or(1);
        match dice.below(3) {
            0 => format!("I compared them.\nThe best choice is {best}"),
            1 => format!("{best}"),
            _ => format!("```json\n{{\"best\": {best}}}\n```"),
        }
    }

    fn plan(&self, numbers: &Left, dice: &mut Dice) -> String {
        let numbers: Vec<String> = numbers.iter().map(Fraction::to_string).collect();
        let numbers = numbers.join(" ");
        let nodes = match self.skill.plan {
            Plan::Whole { attempts } => json!([
                { "id": "solve", "task": format!("Make 24 of {numbers}"), "attempts": attempts }
            ]),
            Plan::Steps { attempts } => json!([
                { "id": "one", "task": format!("The first step from {numbers}"),
                  "attempts": attempts },
                { "id": "two", "task": "The step after it", "needs": ["one"],
                  "attempts": attempts },
                { "id": "three", "task": "The last step, and the expression", "needs": ["two"],
                  "attempts": attempts },
            ]),
        };
        let plan = json!({ "nodes": nodes });
        match dice.below(3) {
            0 => plan.to_string(),
            1 => format!("Here is how I would split it:\n```json\n{plan:#}\n```\nShall I go on?"),
            _ => format!("{}", plan["nodes"]),
        }
    }

    /// A sub-task of its own plan.
    fn work(&self, numbers: &Left, task: &str, asked: &str, dice: &mut Dice) -> String {
        let steps = between(asked, "\n\nResult of ", "\n\nResult of ").map(numbered);
        let mut steps = steps.unwrap_or_default();
        if task.starts_with("Make 24") {
            return self.finish(numbers, steps, dice);
        }
        steps.extend(self.draw(&left_of(numbers, &steps), 1, dice));
        match task.starts_with("The last step") {
            true => self.finish(numbers, steps, dice),
            false => listed(&steps),
        }
    }

    /// Takes the steps that are left by itself, and writes the answer.
    fn finish(&self, numbers: &Left, mut steps: Vec<String>, dice: &mut Dice) -> String {
        while steps.len() < STEPS {
            let next = self.draw(&left_of(numbers, &steps), 1, dice);
            if next.is_empty() {
                break;
            }
            steps.extend(next);
        }
        let expression = puzzle::expression(numbers, &steps).unwrap_or_default();
        format!("{}\n{ANSWER_MARK}{expression}", listed(&steps))
    }
}

fn puzzle_of(text: &str) -> Option<Left> {
    between(text, PUZZLE_MARK, ",")?.split(' ').map(Fraction::parse).collect()
}

fn left_of(numbers: &Left, steps: &[String]) -> Left {
    let last = steps.last().and_then(|step| puzzle::left_after(step));
    last.unwrap_or_else(|| numbers.clone())
}

fn listed(steps: &[String]) -> String {
    let lines: Vec<String> = (1..).zip(steps).map(|(n, step)| format!("{n}. {step}")).collect();
    lines.join("\n")
}

/// As models write a list of thoughts.
fn written(steps: &[String], dice: &mut Dice) -> String {
    let thoughts: Vec<_> =
        steps.iter().map(|step| json!({ "thought": step, "final": false })).collect();
    let dashed = || steps.iter().map(|step| format!("- {step}")).collect::<Vec<_>>().join("\n");
    match dice.below(5) {
        0 => json!({ "thoughts": thoughts }).to_string(),
        1 => format!("```json\n{:#}\n```", json!({ "thoughts": thoughts })),
        2 => format!("Let me see. These come to mind:\n\n{}\n\nWhich one?", listed(steps)),
        3 => dashed(),
        _ => format!("Sure! {}", json!(steps)),
    }
}
