//! Waiting is data: an approval, a question or a plan is open in the log, not parked in a channel,
//! so the server may restart while one is open. The first answer wins.

use serde::{Deserialize, Serialize};

use crate::id::Text;
use crate::policy::{Judgement, Key};

/// Who did something: through which door, and under which name if one was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    pub via: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
}

impl Who {
    pub fn via(via: &str) -> Who {
        Who { via: via.into(), name: None }
    }

    pub fn describe(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} ({})", self.via),
            None => format!("a client of {}", self.via),
        }
    }
}

/// What is asked of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ask {
    /// May this tool call run? What would run stands in the item's judgement.
    Approval,
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
    },
    Denied {
        message: Text,
        then: Then,
    },
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
