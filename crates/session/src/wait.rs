//! Waiting is data: an approval, a question or a plan is open in the log, not parked in a channel,
//! so the server may restart while one is open. The first answer wins.

use serde::{Deserialize, Serialize};

use crate::id::Text;
use crate::policy::{Effect, Judgement, Key};

mod answer;

pub use answer::{PLAN_APPROVED_TEXT, Reading, read};
pub(crate) use answer::{told, typed};

/// Who did something: through which door, and under which name if one was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    pub via: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// The address it came from, for as long as that means something: it is not kept.
    #[serde(skip)]
    pub from: Option<Text>,
}

impl Who {
    pub fn via(via: &str) -> Who {
        Who { via: via.into(), name: None, from: None }
    }

    pub fn describe(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} ({})", self.via),
            None if &*self.via == TIMEOUT_VIA => "the time limit".to_string(),
            None => format!("a client of {}", self.via),
        }
    }
}

/// Who settles what nobody answered in time.
pub const TIMEOUT_VIA: &str = "timeout";

/// What is asked of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ask {
    /// May this tool call run? What would run stands in the item's judgement.
    Approval,
    /// May this call, which the sandbox stopped, run outside it?
    Outside {
        /// What the sandbox did not let it do.
        reason: Text,
    },
    Question {
        questions: Vec<Question>,
    },
    /// Is this plan good? `path` is the file that holds it.
    Plan {
        plan: Text,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<Text>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Text>,
    pub question: Text,
    #[serde(default)]
    pub options: Vec<Choice>,
    /// Several options may be chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not", alias = "multiSelect")]
    pub multi: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub label: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Text>,
}

impl Ask {
    /// Asks for leave to run a call.
    pub fn for_leave(&self) -> bool {
        match self {
            Ask::Approval | Ask::Outside { .. } => true,
            Ask::Question { .. } | Ask::Plan { .. } => false,
        }
    }

    /// What a call that was judged asks; `None` when its arguments do not say.
    pub fn of(judgement: &Judgement, args: &str) -> Option<Ask> {
        #[derive(Deserialize)]
        struct Questions {
            questions: Vec<Question>,
        }
        #[derive(Deserialize)]
        struct Plan {
            plan: Text,
        }
        match judgement.effect {
            Effect::Question => {
                let Questions { questions } = serde_json::from_str(args).ok()?;
                (!questions.is_empty()).then_some(Ask::Question { questions })
            }
            Effect::Plan => {
                let Plan { plan } = serde_json::from_str(args).ok()?;
                Some(Ask::Plan { plan, path: judgement.plan_file.clone() })
            }
            Effect::Read | Effect::Edit | Effect::Execute | Effect::Network => Some(Ask::Approval),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Answer {
    Approved {
        /// "Always": these keys need no approval for the rest of the session.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        grants: Vec<Key>,
        /// Run this in place of what was proposed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instead: Option<Box<Instead>>,
        /// What was said with the yes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Text>,
        /// "Always" was said, also where there was no key to grant.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
    },
    Denied {
        message: Text,
        then: Then,
    },
    /// One for each question, in their order.
    Answered {
        answers: Vec<Given>,
        /// The words as they were said, where they were not chosen from a form.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<Text>,
    },
}

/// What was answered to one question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selected: Vec<Text>,
    /// The user's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Text>,
}

/// What follows a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// The model is told and goes on.
    Continue,
    /// The turn ends without another model call.
    EndTurn,
}

/// Arguments that a person put in place of the model's, with their own judgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instead {
    pub args: Text,
    pub judgement: Judgement,
}
