//! Which dialect a connection speaks, decided once, by the first rule that applies.

use crate::agentloop::Agentloop;
use crate::chat::Chat;
use crate::loom::Loom;
use crate::unified::Unified;
use crate::{Dialect, bounded};

/// The dialects this server speaks.
pub static ALL: &[&dyn Dialect] = &[&Agentloop, &Unified, &Loom, &Chat];

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
    /// The query names a session.
    pub names_session: bool,
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
    let on_ws = matches!(handshake.path, "/ws" | "/ws/");
    match own_path {
        Some(dialect) => Decision::Dialect(dialect),
        None if with_session => Decision::Dialect(&Agentloop),
        None if on_ws && handshake.names_session => Decision::Dialect(&Unified),
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
        let (path, names_session) = match path.split_once("?session_id=") {
            Some((path, _)) => (path, true),
            None => (path, false),
        };
        match decide(&Handshake { path, subprotocols, protocol, names_session }) {
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
            ("/", &["unified.v1"], None, "unified"),
            ("/agentloop", &["loom.v1", "chat.v1"], None, "loom"),
            ("/ws/abc", &["chat.v1"], Some("loom"), "chat"),
            ("/ws/abc", &[], Some("unified"), "unified"),
            ("/chat", &[], Some("loom"), "loom"),
            ("/", &[], Some("chat"), "chat"),
            ("/unified", &[], None, "unified"),
            ("/unified?session_id=abc", &[], None, "unified"),
            ("/loom", &[], None, "loom"),
            ("/chat", &[], None, "chat"),
            ("/chat?session_id=abc", &[], None, "chat"),
            ("/ws?session_id=abc", &[], None, "unified"),
            ("/ws/?session_id=abc", &[], None, "unified"),
            ("/ws/abc?session_id=abc", &[], None, "agentloop"),
            ("/?session_id=abc", &[], None, "first message"),
            ("/ws?session_id=abc", &[], Some("chat"), "chat"),
            ("/ws?session_id=abc", &["loom.v1"], None, "loom"),
        ];
        for (path, subprotocols, protocol, want) in rows {
            assert_eq!(decided(path, subprotocols, *protocol), *want, "{path} {protocol:?}");
        }
    }

    /// Twenty types decide, each one dialect, and nothing near them does.
    #[test]
    fn the_first_message_decides() {
        let rows = [
            ("agentloop", "user_input approval_response get_context_info manual_compact"),
            (
                "unified",
                "session_start session_end set_permission_mode user_message permission_response \
                 user_question_response plan_approval_response interrupt resume cancel",
            ),
            ("loom", "run tools_list tool_show user_messages ping"),
            ("chat", "chat"),
        ];
        let mut kinds = 0;
        for (name, types) in rows {
            for kind in types.split_whitespace() {
                assert_eq!(by_first_message(kind).map(|d| d.name()), Some(name), "{kind}");
                assert!(by_first_message(&format!("{kind}x")).is_none(), "{kind}x");
                assert!(by_first_message(&kind.to_uppercase()).is_none(), "{kind}");
                kinds += 1;
            }
        }
        assert_eq!(kinds, 20);
        for addition in ["cancel_run", "tool_approval_response", "compact", "get_context", ""] {
            assert!(by_first_message(addition).is_none(), "{addition}");
        }
    }
}
