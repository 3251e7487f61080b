//! Which dialect a connection speaks, decided once, by the first rule that applies.

use crate::agentloop::Agentloop;
use crate::{Dialect, bounded};

/// The dialects this server speaks.
pub static ALL: &[&dyn Dialect] = &[&Agentloop];

/// What a handshake decides.
pub enum Decision {
    Dialect(&'static dyn Dialect),
    /// The first message's `type` will.
    ByFirstMessage,
    /// `?protocol=` names none of them.
    UnknownProtocol,
}

/// The parts of a handshake that can decide.
pub struct Handshake<'a> {
    pub path: &'a str,
    pub subprotocols: &'a [&'a str],
    pub protocol: Option<&'a str>,
}

pub fn by_name(name: &str) -> Option<&'static dyn Dialect> {
    ALL.iter().copied().find(|dialect| dialect.name() == name)
}

pub fn by_subprotocol(offered: &[&str]) -> Option<&'static dyn Dialect> {
    offered
        .iter()
        .find_map(|offer| ALL.iter().copied().find(|dialect| dialect.subprotocol() == *offer))
}

/// The documented client types, matched exactly, never by prefix.
pub fn by_first_message(kind: &str) -> Option<&'static dyn Dialect> {
    ALL.iter().copied().find(|dialect| dialect.client_types().contains(&kind))
}

pub fn decide(handshake: &Handshake<'_>) -> Decision {
    if let Some(dialect) = by_subprotocol(handshake.subprotocols) {
        return Decision::Dialect(dialect);
    }
    if let Some(name) = handshake.protocol {
        return by_name(name).map_or(Decision::UnknownProtocol, Decision::Dialect);
    }
    let first = handshake.path.trim_start_matches('/').split('/').next().unwrap_or("");
    let own_path = by_name(first);
    let with_session = handshake.path.strip_prefix("/ws/").is_some_and(|id| !id.is_empty());
    match own_path {
        Some(dialect) => Decision::Dialect(dialect),
        None if with_session => Decision::Dialect(&Agentloop),
        None => Decision::ByFirstMessage,
    }
}

/// What an undecided connection is told: the shape that the dialects of the bare paths share.
pub fn undecided_error(text: &str) -> String {
    serde_json::json!({"type": "error", "error": bounded(text.to_string())}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(path: &str, subprotocols: &[&str], protocol: Option<&str>) -> &'static str {
        match decide(&Handshake { path, subprotocols, protocol }) {
            Decision::Dialect(dialect) => dialect.name(),
            Decision::ByFirstMessage => "first message",
            Decision::UnknownProtocol => "unknown",
        }
    }

    #[test]
    fn the_first_rule_that_applies_decides() {
        let rows: &[(&str, &[&str], Option<&str>, &str)] = &[
            ("/", &[], None, "first message"),
            ("/ws", &[], None, "first message"),
            ("/ws/", &[], None, "first message"),
            ("/ws/abc", &[], None, "agentloop"),
            ("/agentloop", &[], None, "agentloop"),
            ("/agentloop/abc", &[], None, "agentloop"),
            ("/", &["agentloop.v1"], None, "agentloop"),
            ("/", &["other", "agentloop.v1"], Some("nonsense"), "agentloop"),
            ("/", &["AgentLoop.v1"], None, "first message"),
            ("/", &["other"], None, "first message"),
            ("/", &[], Some("agentloop"), "agentloop"),
            ("/ws/abc", &[], Some("nonsense"), "unknown"),
        ];
        for (path, subprotocols, protocol, want) in rows {
            assert_eq!(decided(path, subprotocols, *protocol), *want, "{path} {protocol:?}");
        }
        assert_eq!(by_first_message("user_input").map(|d| d.name()), Some("agentloop"));
        assert!(by_first_message("user_inputs").is_none());
    }
}
