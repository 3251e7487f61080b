//! What a tool says of itself, what its arguments look like, and what models are told before a
//! conversation, as JSON that is written once: it goes into every request of every session.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use polyloop_session::Text;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// Compact JSON. Cheap to clone and to write.
#[derive(Clone)]
pub struct Written(Arc<RawValue>);

impl Written {
    /// `null` for what cannot be written, which no type of ours is.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Written {
        Written(to_raw_value(value).unwrap_or_default().into())
    }

    pub fn json(&self) -> &str {
        self.0.get()
    }
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

/// Cheap to clone and to write.
#[derive(Clone, Serialize)]
#[serde(transparent)]
pub struct Schema(Written);

impl Schema {
    /// Compact.
    pub fn json(&self) -> &str {
        self.0.json()
    }

    pub fn value(&self) -> Value {
        serde_json::from_str(self.json()).unwrap_or_default()
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Schema {
        Schema(Written::of(&value))
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
    json: Written,
}

impl Words {
    pub fn text(&self) -> &Text {
        &self.text
    }

    pub fn written(&self) -> &Written {
        &self.json
    }
}

impl<T: Into<Text>> From<T> for Words {
    fn from(text: T) -> Words {
        let text = text.into();
        let json = Written::of(&*text);
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
