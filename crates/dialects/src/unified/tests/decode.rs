//! Client messages: each example of the protocol's documents, and the additions.

use polyloop_session::command::{Send, WaitReply};
use polyloop_session::event::{Agent, Setting};
use polyloop_session::item::Part;
use polyloop_session::policy::Mode;
use polyloop_session::wait::Then;
use polyloop_session::{Command, Delivery, ItemId, Seq, SessionId, Target, WaitId, WaitRef};
use serde_json::{Value, json};

use super::make::{client, session, who};
use crate::unified::Unified;
use crate::{Ask, Asked, Complaint, Dialect, Name, Start};

pub fn decode(frame: &str) -> Result<Asked, Complaint> {
    Unified.decode(frame, &client(None))
}

/// Reads one message to session-456.
pub fn read(kind: &str, fields: Value) -> Result<Asked, Complaint> {
    let mut message = json!({"type": kind, "id": "msg-001", "session_id": "session-456"});
    message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    decode(&message.to_string())
}

fn command(kind: &str, fields: Value) -> Command {
    let asked = read(kind, fields).unwrap_or_else(|complaint| panic!("{kind}: {complaint:?}"));
    assert_eq!(asked.session, SessionId::parse("session-456").ok());
    assert!(asked.names.is_empty() || kind == "set_permission_mode");
    match asked.ask {
        Ask::Command(command) => command,
        other => panic!("{kind}: {other:?}"),
    }
}

/// What is settled and how, as the types print themselves.
fn settles(kind: &str, fields: Value) -> (WaitRef, String) {
    match command(kind, fields) {
        Command::Settle { wait, reply, by } if by == who() => (wait, format!("{reply:?}")),
        other => panic!("{kind}: {other:?}"),
    }
}

fn shown(reply: WaitReply) -> String {
    format!("{reply:?}")
}

fn wait(seq: u64) -> WaitRef {
    WaitRef::Id(WaitId(Seq(seq)))
}

#[test]
fn session_start() {
    let frame = r#"{
        "type": "session_start", "id": "msg-001", "session_id": "session-456",
        "permission_mode": "manual", "max_turns": 10,
        "metadata": {"user_id": "user-123", "project": "my-project", "size": 1.50}
    }"#;
    let asked = decode(frame).unwrap();
    assert_eq!(asked.session, SessionId::parse("session-456").ok());
    let names = [Name::Mode(Mode::Suggest, "manual"), Name::Client("user-123".into())];
    assert_eq!(asked.names, names);
    let Ask::Start(start) = asked.ask else { panic!("{:?}", asked.ask) };
    let metadata = r#"{"user_id": "user-123", "project": "my-project", "size": 1.50}"#;
    let want = Start {
        mode: Some(Mode::Suggest),
        calls_max: Some(10),
        metadata: Some(metadata.into()),
        ..Start::default()
    };
    assert_eq!(start, want);

    for bare in [json!({}), json!({"permission_mode": null, "max_turns": null, "metadata": null})] {
        let asked = read("session_start", bare).unwrap();
        assert!(asked.names.is_empty());
        assert!(matches!(asked.ask, Ask::Start(start) if start == Start::default()));
    }
    let asked = read("session_start", json!({"metadata": {"user_id": " \u{7}\n "}})).unwrap();
    assert!(asked.names.is_empty());
    let asked = read("session_start", json!({"metadata": {"user_id": 7}})).unwrap();
    assert!(asked.names.is_empty());
}

#[test]
fn modes() {
    let rows = [
        ("manual", Mode::Suggest),
        ("auto", Mode::FullAuto),
        ("bypass", Mode::Bypass),
        ("plan", Mode::Plan),
        ("default", Mode::Suggest),
        ("acceptEdits", Mode::AutoEdit),
        ("bypassPermissions", Mode::Bypass),
        ("dontAsk", Mode::DontAsk),
    ];
    for (word, want) in rows {
        let asked = read("set_permission_mode", json!({"mode": word})).unwrap();
        assert_eq!(asked.names, [Name::Mode(want, word)]);
        let Ask::Command(Command::SetMode { mode, by }) = asked.ask else { panic!("{word}") };
        assert_eq!((mode, by), (want, who()));
        let asked = read("session_start", json!({"permission_mode": word})).unwrap();
        assert!(matches!(asked.ask, Ask::Start(Start { mode: Some(mode), .. }) if mode == want));
    }
}

#[test]
fn user_message() {
    let fields = json!({"content": "Please help me debug this code", "parent_tool_use_id": null});
    let Command::Send(send) = command("user_message", fields) else { panic!("not sent") };
    let Send { content, origin, client_ref, delivery, tokens, run } = *send;
    assert_eq!(content, [Part::Text { text: "Please help me debug this code".into() }]);
    assert!(origin.who == who() && origin.can_approve && origin.can_answer);
    assert_eq!((client_ref.as_deref(), delivery), (Some("msg-001"), Delivery::Queue));
    assert!(tokens > 0 && run.is_none());

    let unnamed = r#"{"type":"user_message","session_id":"s","content":"hi"}"#;
    let Ask::Command(Command::Send(send)) = decode(unnamed).unwrap().ask else { panic!() };
    assert_eq!(send.client_ref, None);
}

/// It answers a question, and can never be taken for leave to run something.
#[test]
fn a_user_message_with_a_parent_answers_it() {
    let rows = [("req-7", wait(7)), ("tool-5", WaitRef::Item(ItemId(Seq(5))))];
    for (parent, named) in rows {
        let fields = json!({"content": "The first", "parent_tool_use_id": parent});
        let answer = WaitReply::Answer { answers: vec![(0, vec!["The first".into()])] };
        assert_eq!(settles("user_message", fields), (named, shown(answer)));
    }
    for (content, parent, code) in [
        ("x", "toolu_1", "no_such_request"),
        ("x", "req-", "no_such_request"),
        (" ", "req-7", "empty_message"),
    ] {
        let fields = json!({"content": content, "parent_tool_use_id": parent});
        assert_eq!(read("user_message", fields).unwrap_err().code, code, "{parent}");
    }
}

#[test]
fn permission_response() {
    let said = || Some("This operation is safe".into());
    let rows = [
        ("allow", WaitReply::Approve { message: said() }),
        ("allow_always", WaitReply::ApproveAlways),
        ("deny", WaitReply::Deny { message: said(), then: Then::Continue }),
        ("deny_stop", WaitReply::Deny { message: said(), then: Then::EndTurn }),
        ("explain", WaitReply::Explain),
    ];
    for (decision, reply) in rows {
        let fields = json!({
            "request_id": "req-001", "decision": decision, "explanation": "This operation is safe"
        });
        assert_eq!(settles("permission_response", fields), (wait(1), shown(reply)));
    }
    let fields = json!({"request_id": "tool-9", "decision": "allow"});
    let reply = WaitReply::Approve { message: None };
    assert_eq!(
        settles("permission_response", fields),
        (WaitRef::Item(ItemId(Seq(9))), shown(reply))
    );
}

#[test]
fn answers_to_questions_and_plans_name_them_by_either_key() {
    let answers = json!([{"question_index": 0, "selected": ["Option A: Fast but less flexible"]}]);
    let reply =
        WaitReply::Answer { answers: vec![(0, vec!["Option A: Fast but less flexible".into()])] };
    let rows = [
        (json!({"tool_id": "tool-890"}), WaitRef::Item(ItemId(Seq(890)))),
        (json!({"tool_id": "req-890"}), wait(890)),
        (json!({"request_id": "req-890"}), wait(890)),
        (json!({"request_id": "req-890", "tool_id": null}), wait(890)),
        (json!({"request_id": "req-890", "tool_id": "req-890"}), wait(890)),
    ];
    for (named, want) in rows {
        let mut fields = named.clone();
        fields["answers"] = answers.clone();
        assert_eq!(settles("user_question_response", fields), (want, shown(reply.clone())));
        for approved in [true, false] {
            let mut fields = named.clone();
            fields["approved"] = approved.into();
            fields["feedback"] = "Looks good, proceed with implementation".into();
            let message = Some("Looks good, proceed with implementation".into());
            let reply = match approved {
                true => WaitReply::Approve { message },
                false => WaitReply::Deny { message, then: Then::Continue },
            };
            assert_eq!(settles("plan_approval_response", fields), (want, shown(reply)));
        }
    }
    let bare = settles("plan_approval_response", json!({"tool_id": "req-1", "approved": true}));
    assert_eq!(bare.1, shown(WaitReply::Approve { message: None }));
}

#[test]
fn control() {
    let rows = [
        (json!({"reason": "Too slow"}), "Too slow"),
        (json!({"reason": null}), "User requested stop"),
        (json!({"reason": "  "}), "User requested stop"),
        (json!({}), "User requested stop"),
    ];
    for (fields, want) in rows {
        let Command::Interrupt { turn: None, reason, .. } = command("interrupt", fields) else {
            panic!("no interrupt")
        };
        assert_eq!(&*reason, want);
    }
    assert!(matches!(command("session_end", json!({})), Command::Close { by } if by == who()));
    assert!(matches!(command("resume", json!({})), Command::Resume { by } if by == who()));
    assert!(matches!(command("compact", json!({})), Command::Compact { by } if by == who()));
    assert!(matches!(read("get_context", json!({})).unwrap().ask, Ask::ContextInfo));
    let asked = read("set_model", json!({"model": "gpt-5"})).unwrap();
    assert!(matches!(asked.ask, Ask::SetModel { model, .. } if &*model == "gpt-5"));
    for (name, want) in
        [("react", Agent::React), ("dup", Agent::Dup), ("tot", Agent::Tot), ("got", Agent::Got)]
    {
        let set = command("set_agent", json!({"agent": name}));
        let Command::Set { setting: Setting::Agent { agent }, .. } = set else { panic!("{set:?}") };
        assert_eq!(agent, want);
    }
    let rows = [
        ("msg-004", Target::ClientRef("msg-004".into())),
        ("req-12", Target::Wait(WaitId(Seq(12)))),
        ("req-x", Target::ClientRef("req-x".into())),
        ("", Target::ClientRef("".into())),
    ];
    for (id, want) in rows {
        let cancel = command("cancel", json!({"target_id": id}));
        let Command::Cancel { target, .. } = cancel else { panic!("{cancel:?}") };
        assert_eq!(target, want);
    }
}

/// The session is the one that is named, else the connection's own.
#[test]
fn sessions() {
    let bare = r#"{"type":"resume"}"#;
    assert_eq!(decode(bare).unwrap_err().code, "no_session");
    assert!(decode(bare).unwrap_err().error.starts_with("session_id: "));
    let own = client(Some(session()));
    assert_eq!(Unified.decode(bare, &own).unwrap().session, Some(session()));
    let null = r#"{"type":"resume","session_id":null}"#;
    assert_eq!(Unified.decode(null, &own).unwrap().session, Some(session()));
    let other = r#"{"type":"resume","session_id":"other"}"#;
    assert_eq!(Unified.decode(other, &own).unwrap().session, SessionId::parse("other").ok());
    for bad in ["", ".hidden", "../etc", "a/b", "ä"] {
        let frame = json!({"type": "resume", "session_id": bad}).to_string();
        let complaint = Unified.decode(&frame, &own).unwrap_err();
        assert_eq!(complaint.code, "bad_session_id", "{bad}");
        assert!(complaint.error.contains("Invalid session ID format"), "{}", complaint.error);
    }
}
