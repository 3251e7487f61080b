//! Who could answer: without anybody nothing is asked, and the model is told so.

use std::sync::Arc;

use polyloop_agent::model::offline::Offline;
use polyloop_agent::subscriber::{Power, Presence};
use polyloop_session::command::Send;
use polyloop_session::event::Origin;
use polyloop_session::policy::{NOBODY_ADVICE, NOBODY_ANSWERS_ADVICE};
use polyloop_session::{Command, Event};

use super::client::{CLIENT, Client};
use super::make::{message, who};
use super::model::Noted;
use super::rig::Rig;

/// What a script asks for, and what the model is told if nobody can be asked.
const APPROVAL: (&str, &str) = ("run: touch file", NOBODY_ADVICE);
const QUESTION: (&str, &str) = ("ask: Well? | yes | no", NOBODY_ANSWERS_ADVICE);
const PLAN: (&str, &str) = ("plan: do it", NOBODY_ANSWERS_ADVICE);

fn from(text: &str, can_approve: bool, can_answer: bool) -> Command {
    let origin = Origin { who: who(), can_approve, can_answer };
    Command::Send(Box::new(Send { origin, ..message(text) }))
}

struct Case {
    /// Whoever sends the message can approve, can answer.
    origin: (bool, bool),
    power: Power,
    presence: Presence,
    asked: [bool; 3],
}

/// Whether each of the three is asked, with one subscriber who can do so much.
#[tokio::test]
async fn what_is_asked_depends_on_who_could_answer() {
    let case = |origin, power, asked| Case { origin, power, presence: CLIENT, asked };
    let cases = [
        case((false, false), Power::Watch, [false, false, false]),
        case((false, false), Power::Answer, [false, true, true]),
        case((false, false), Power::Approve, [true, true, true]),
        case((false, true), Power::Watch, [false, true, true]),
        case((true, false), Power::Watch, [true, true, true]),
        Case {
            origin: (false, false),
            power: Power::Answer,
            presence: Presence::Onlooker,
            asked: [false, true, true],
        },
    ];
    for (n, case) in cases.into_iter().enumerate() {
        for ((script, advice), asked) in [APPROVAL, QUESTION, PLAN].into_iter().zip(case.asked) {
            let (model, noted) = Noted::around(Arc::new(Offline));
            let rig = Rig::new(|setup| setup.model(model));
            let handle = rig.handle("s");
            let attaching = Client::attach_as(handle, rig.kind, case.power, case.presence);
            let mut client = attaching.await.unwrap();
            let (approves, answers) = case.origin;
            let text = format!("{script}\nsay: on with it");
            client.command(from(&text, approves, answers)).await.unwrap();
            let what = "the request, or the end";
            client.until(what, |c| c.wait().is_some() || c.is_idle()).await.unwrap();
            assert_eq!(client.wait().is_some(), asked, "case {n}: {script}");
            if !asked {
                assert_eq!(noted.told(), (advice.into(), true), "case {n}: {script}");
                assert_eq!(client.texts(), ["on with it"]);
                let opened = |event: &Event| matches!(event, Event::WaitOpened { .. });
                assert_eq!(client.count(opened), 0);
            }
        }
    }
}

/// One who can answer but has left counts for nothing.
#[tokio::test]
async fn who_has_left_cannot_answer() {
    let rig = Rig::offline();
    let mut watcher =
        Client::attach_as(rig.handle("s"), rig.kind, Power::Watch, CLIENT).await.unwrap();
    drop(rig.client("s").await);
    watcher.command(from("ask: Well? | yes\nsay: on with it", false, false)).await.unwrap();
    watcher.until_idle().await.unwrap();
    assert_eq!(watcher.texts(), ["on with it"]);
    // With nobody at all who watches, one who sent it and can answer is enough.
    drop(watcher);
    rig.handle("s").command(from("ask: Well? | yes", false, true)).await.unwrap();
    let mut client = rig.client("s").await;
    client.until("the question", |c| c.wait().is_some()).await.unwrap();
}
