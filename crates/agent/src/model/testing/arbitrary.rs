//! Any JSON, and any change to a good answer.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;

use crate::model::sse::Event;

/// One of these words, or none.
pub fn word(words: &'static str) -> impl Strategy<Value = String> + Clone {
    let mut all: Vec<&str> = words.split_whitespace().collect();
    all.push("");
    select(all).prop_map(str::to_owned)
}

/// Any JSON, with names and words that mean something more often than not.
pub fn any_json(words: &'static str) -> impl Strategy<Value = Value> + Clone {
    let word = prop_oneof![5 => word(words), 1 => ".{0,6}"];
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => (0_u64..4).prop_map(Value::from),
        2 => word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        let field = (word.clone(), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            prop::collection::vec(field, 0..7)
                .prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

/// A change to a stream of events.
#[derive(Clone, Debug)]
pub enum Change {
    Drop(Index),
    /// Comes again, elsewhere.
    Repeat(Index, Index),
    Swap(Index, Index),
    /// Puts something else at one place of an event, or takes away what is there.
    Put {
        event: Index,
        place: Index,
        value: Option<Value>,
    },
    Cut {
        event: Index,
        at: Index,
    },
}

pub fn any_change(words: &'static str) -> impl Strategy<Value = Change> {
    let one = any::<Index>;
    let two = any::<(Index, Index)>;
    let put = (one(), one(), prop::option::of(any_json(words)));
    prop_oneof![
        1 => one().prop_map(Change::Drop),
        1 => two().prop_map(|(one, to)| Change::Repeat(one, to)),
        1 => two().prop_map(|(one, two)| Change::Swap(one, two)),
        8 => put.prop_map(|(event, place, value)| Change::Put { event, place, value }),
        1 => two().prop_map(|(event, at)| Change::Cut { event, at }),
    ]
}

pub fn change(events: &mut Vec<Event>, change: Change) {
    let count = events.len();
    if count == 0 {
        return;
    }
    match change {
        Change::Drop(at) => drop(events.remove(at.index(count))),
        Change::Repeat(at, to) => {
            let again = at.get(events).clone();
            events.insert(to.index(count + 1), again);
        }
        Change::Swap(one, two) => events.swap(one.index(count), two.index(count)),
        Change::Put { event, place, value } => {
            let data = &mut event.get_mut(events).data;
            if let Ok(mut json) = serde_json::from_slice::<Value>(data) {
                let places = places(&json);
                put(&mut json, &places[place.index(places.len())], value);
                *data = json.to_string().into_bytes();
            }
        }
        Change::Cut { event, at } => {
            let data = &mut event.get_mut(events).data;
            data.truncate(at.index(data.len() + 1));
        }
    }
}

fn put(json: &mut Value, place: &str, value: Option<Value>) {
    let parent = place.rsplit_once('/');
    match (value, parent) {
        (Some(value), _) => *json.pointer_mut(place).unwrap() = value,
        (None, None) => *json = Value::Null,
        (None, Some((parent, name))) => match json.pointer_mut(parent).unwrap() {
            Value::Object(map) => drop(map.remove(&name.replace("~1", "/").replace("~0", "~"))),
            Value::Array(list) => drop(list.remove(name.parse().unwrap())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        },
    }
}

/// Pointers to everything in a value, itself first.
fn places(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let escape = |name: &str| name.replace('~', "~0").replace('/', "~1");
    let inner: Vec<(String, &Value)> = match value {
        Value::Array(list) => list.iter().enumerate().map(|(n, v)| (n.to_string(), v)).collect(),
        Value::Object(map) => map.iter().map(|(name, v)| (escape(name), v)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (name, value) in inner {
        found.extend(places(value).into_iter().map(|place| format!("/{name}{place}")));
    }
    found
}
