//! What a tool says of itself, what its arguments look like, and what models are told before a
//! conversation, as JSON that is written once: it goes into every request of every session.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use polyloop_session::Text;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// Cheap to clone and to write.
#[derive(Clone)]
pub struct Schema(Arc<RawValue>);

impl Schema {
    /// Compact.
    pub fn json(&self) -> &str {
        self.0.get()
    }

    pub fn value(&self) -> Value {
        serde_json::from_str(self.json()).unwrap_or_default()
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Schema {
        // A value can always be written.
        Schema(to_raw_value(&value).unwrap_or_default().into())
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Schema) -> bool {
        self.json() == other.json()
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.json())
    }
}

/// A text that is at hand as JSON too. Cheap to clone and to write.
#[derive(Clone)]
pub struct Words {
    text: Text,
    json: Arc<RawValue>,
}

impl Words {
    pub fn text(&self) -> &Text {
        &self.text
    }
}

impl<T: Into<Text>> From<T> for Words {
    fn from(text: T) -> Words {
        let text = text.into();
        // A text can always be written.
        let json = to_raw_value(&*text).unwrap_or_default().into();
        Words { text, json }
    }
}

impl Default for Words {
    fn default() -> Words {
        "".into()
    }
}

impl Deref for Words {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(to)
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Words) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}
