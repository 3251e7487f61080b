//! Plans: proposed in every mode, kept as a file, agreed to or sent back.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polyloop_agent::model::offline::Offline;
use polyloop_agent::tool::exit_plan_mode::PLAN_BYTES_MAX;
use polyloop_session::command::WaitReply;
use polyloop_session::decide::PLAN_BACK_TEXT;
use polyloop_session::policy::{Mode, PLAN_ADVICE};
use polyloop_session::wait::{Ask, PLAN_APPROVED_TEXT, Then};
use polyloop_session::{Command, Delivery, Event, Refusal, WaitRef};
use serde_json::json;

use super::client::{Client, refusal};
use super::make::{approve, deliver, deny, settle, who};
use super::model::{Noted, acting, adding};
use super::rig::{Rig, Setup, temp_dir};

const PLAN: &str = "# Plan\n1. Look\n2. Change";
/// The same, and a word when it was answered.
const SCRIPT: &str = "plan: # Plan\\n1. Look\\n2. Change\nsay: so be it";
const COUNTED: &str = "counted.txt";

fn offline(change: impl FnOnce(Setup) -> Setup) -> (Rig, Noted) {
    let (model, noted) = Noted::around(Arc::new(Offline));
    (Rig::new(|setup| change(setup).model(model)), noted)
}

async fn proposed(client: &mut Client, script: &str) -> (String, Option<PathBuf>) {
    client.send(script).await.unwrap();
    client.until("the plan", |c| c.wait().is_some()).await.unwrap();
    match client.asked() {
        Some(Ask::Plan { plan, path }) => {
            (plan.to_string(), path.as_deref().map(|path| Path::new(path).to_path_buf()))
        }
        other => panic!("no plan: {other:?}"),
    }
}

/// A client of a session in plan mode, with a plan before them.
async fn in_plan_mode(rig: &Rig) -> Client {
    let mut client = rig.client("s").await;
    client.command(Command::SetMode { mode: Mode::Plan, by: who() }).await.unwrap();
    proposed(&mut client, SCRIPT).await;
    client
}

fn bits(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn is_asked(event: &Event) -> bool {
    matches!(event, Event::WaitOpened { .. })
}

#[tokio::test]
async fn a_plan_is_kept_as_a_file_that_is_named_where_it_is_asked_about() {
    let modes =
        [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto, Mode::Bypass, Mode::Plan, Mode::DontAsk];
    for mode in modes {
        let store = temp_dir();
        let plans = store.path().join("not/there/yet");
        let (rig, _) = offline(|setup| Setup { mode, plans: Some(plans.clone()), ..setup });
        let mut client = rig.client("s").await;
        let (plan, path) = proposed(&mut client, SCRIPT).await;
        let path = path.expect("a file");
        assert_eq!((plan.as_str(), path.parent()), (PLAN, Some(&*plans.join("s"))), "{mode:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), PLAN);
        assert_eq!((bits(&path), bits(&plans.join("s")), bits(&plans)), (0o600, 0o700, 0o700));
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("plan-") && name.ends_with(".md"), "{name}");
        let judged = client.entries.iter().find_map(|entry| match &entry.event {
            Event::ToolProposed { judgement, .. } => judgement.plan_file.as_deref(),
            _ => None,
        });
        assert_eq!(judged.map(Path::new), Some(&*path));
        assert_eq!(client.count(|event| matches!(event, Event::ToolStarted { .. })), 0);

        // The same plan is the same file; another is another, in another session's own folder.
        client.settle(approve()).await.unwrap();
        client.until_idle().await.unwrap();
        assert_eq!(proposed(&mut client, SCRIPT).await.1, Some(path.clone()));
        client.settle(approve()).await.unwrap();
        client.until_idle().await.unwrap();
        let other = proposed(&mut client, "plan: another").await.1.unwrap();
        assert_eq!(std::fs::read_dir(plans.join("s")).unwrap().count(), 2);
        let elsewhere = proposed(&mut rig.client("t").await, "plan: another").await.1.unwrap();
        assert_eq!(
            (other.file_name(), plans.join("t")),
            (elsewhere.file_name(), elsewhere.parent().unwrap().to_path_buf())
        );
    }
}

#[tokio::test]
async fn a_plan_is_asked_about_also_where_no_file_can_be() {
    let (rig, _) = offline(|setup| setup);
    assert_eq!(proposed(&mut rig.client("s").await, SCRIPT).await, (PLAN.into(), None));
    assert_eq!(std::fs::read_dir(rig.dir.path()).unwrap().count(), 0);

    let store = temp_dir();
    let taken = store.path().join("plans");
    std::fs::write(&taken, "no directory").unwrap();
    let (rig, _) = offline(|setup| Setup { plans: Some(taken.clone()), ..setup });
    assert_eq!(proposed(&mut rig.client("s").await, SCRIPT).await, (PLAN.into(), None));
    assert_eq!(std::fs::read_to_string(taken).unwrap(), "no directory");
}

#[tokio::test]
async fn consent_ends_plan_mode() {
    for before in [Mode::Suggest, Mode::AutoEdit, Mode::Bypass, Mode::DontAsk] {
        let (rig, noted) = offline(|setup| Setup { mode: before, ..setup });
        let mut client = in_plan_mode(&rig).await;
        assert_eq!(client.state.mode(), Mode::Plan);
        client.settle(approve()).await.unwrap();
        client.until_idle().await.unwrap();
        assert_eq!(noted.told(), (PLAN_APPROVED_TEXT.into(), false));
        assert_eq!((client.state.mode(), client.texts()), (before, vec!["so be it"]));
        assert_eq!(client.handle.look().await.unwrap().mode, before);
    }
    // In any other mode it changes nothing but the model's mind.
    let (rig, noted) = offline(|setup| Setup { mode: Mode::AutoEdit, ..setup });
    let mut client = rig.client("s").await;
    proposed(&mut client, SCRIPT).await;
    client.settle(WaitReply::Approve { message: Some(" be quick ".into()) }).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(noted.told().0, format!("{PLAN_APPROVED_TEXT} They added: be quick"));
    assert_eq!(client.count(|event| matches!(event, Event::ModeSet { .. })), 0);
}

/// A session that began in plan mode goes on to ask about everything.
#[tokio::test]
async fn a_session_that_began_with_a_plan_goes_on_to_ask() {
    let (rig, _) = offline(|setup| Setup { mode: Mode::Plan, ..setup });
    let mut client = rig.client("s").await;
    proposed(&mut client, SCRIPT).await;
    client.settle(approve()).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(client.state.mode(), Mode::Suggest);
}

#[tokio::test]
async fn a_plan_that_is_sent_back_stays_a_plan() {
    let feedback = WaitReply::Deny { message: Some("smaller steps".into()), then: Then::Continue };
    for (reply, told) in [(feedback, "smaller steps"), (deny(Then::Continue), PLAN_BACK_TEXT)] {
        let (rig, noted) = offline(|setup| setup);
        let mut client = in_plan_mode(&rig).await;
        client.settle(reply).await.unwrap();
        client.until_idle().await.unwrap();
        assert_eq!(noted.told(), (told.into(), true));
        assert_eq!((client.state.mode(), client.texts()), (Mode::Plan, vec!["so be it"]));
    }
    let (rig, noted) = offline(|setup| setup);
    let mut client = in_plan_mode(&rig).await;
    client.settle(deny(Then::EndTurn)).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!((client.state.mode(), noted.calls(), client.texts().len()), (Mode::Plan, 1, 0));
}

#[tokio::test]
async fn a_message_may_agree_or_send_back() {
    let agreed = format!("{PLAN_APPROVED_TEXT} They added: yes, but smaller");
    let rows = [
        (Delivery::Answer { consents: true }, agreed.as_str(), false, Mode::Suggest),
        (Delivery::Answer { consents: false }, "yes, but smaller", true, Mode::Plan),
    ];
    for (delivery, told, is_error, mode) in rows {
        let (rig, noted) = offline(|setup| setup);
        let mut client = in_plan_mode(&rig).await;
        let recorded = client.try_command(deliver("yes, but smaller", delivery)).await.unwrap();
        assert_eq!(recorded.message, None);
        client.until("the end", |c| c.is_idle() && !c.texts().is_empty()).await.unwrap();
        assert_eq!((noted.told(), client.state.mode()), ((told.into(), is_error), mode));
    }
    // One that answers questions alone says nothing about a plan.
    let (rig, _) = offline(|setup| setup);
    let mut client = in_plan_mode(&rig).await;
    let recorded = client.try_command(deliver("say: hm", Delivery::AnswerQuestion)).await.unwrap();
    assert!(recorded.message.is_some());
    client.until("the message", |c| c.state.queue().len() == 1).await.unwrap();
    assert!(matches!(client.asked(), Some(Ask::Plan { .. })));
}

#[tokio::test]
async fn a_plan_is_no_form_and_no_patch() {
    let (rig, _) = offline(|setup| setup);
    let mut client = in_plan_mode(&rig).await;
    let wait = WaitRef::Id(client.wait().unwrap());
    let form = WaitReply::Answer { answers: vec![(0, vec!["yes".into()])] };
    let refused = refusal(client.try_command(settle(wait, form)).await);
    assert!(matches!(refused, Refusal::BadAnswer { .. }), "{refused:?}");
    rig.countable(COUNTED);
    let args: serde_json::Value = serde_json::from_str(&adding(COUNTED, "ran")).unwrap();
    let patch = args["patch"].as_str().unwrap();
    let settled = client.handle.settle_with_patch(wait, patch.into(), false, who()).await;
    assert_eq!(refusal(settled), Refusal::NotAnEdit);
    assert_eq!(rig.count(COUNTED, "ran"), 0);
    // It can be explained, and is still open then.
    client.settle(WaitReply::Explain).await.unwrap();
    client.until("an explanation", |c| c.can_decide() && !c.texts().is_empty()).await.unwrap();
    assert!(matches!(client.asked(), Some(Ask::Plan { .. })));
}

#[tokio::test]
async fn nothing_is_changed_in_plan_mode() {
    let calls = vec![
        ("apply_patch", adding(COUNTED, "ran")),
        ("bash", json!({ "command": format!("echo ran >>{COUNTED}") }).to_string()),
    ];
    let (model, noted) = Noted::around(acting(calls));
    let rig = Rig::new(|setup| Setup { mode: Mode::Plan, ..setup }.model(model));
    rig.countable(COUNTED);
    let mut client = rig.client("s").await;
    client.send("go").await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(noted.told(), (PLAN_ADVICE.into(), true));
    assert_eq!((client.count(is_asked), rig.count(COUNTED, "ran")), (0, 0));
    assert_eq!(client.count(|event| matches!(event, Event::ToolStarted { .. })), 0);
}

/// From plan to deed: what was denied before is done after.
#[tokio::test]
async fn after_consent_the_edit_is_made() {
    let edit = format!("tool: apply_patch {}", adding(COUNTED, "ran"));
    let (rig, _) = offline(|setup| Setup { mode: Mode::AutoEdit, ..setup });
    rig.countable(COUNTED);
    let mut client = rig.client("s").await;
    client.command(Command::SetMode { mode: Mode::Plan, by: who() }).await.unwrap();
    proposed(&mut client, &format!("{edit}\nplan: add a line\n{edit}\nsay: done")).await;
    assert_eq!(rig.count(COUNTED, "ran"), 0);
    client.settle(approve()).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!((rig.count(COUNTED, "ran"), client.count(is_asked)), (1, 1));
}

#[tokio::test]
async fn a_bad_plan_is_told_to_the_model_and_kept_nowhere() {
    let long = json!({ "plan": "x".repeat(PLAN_BYTES_MAX + 1) }).to_string();
    let bad = [
        ("", "missing"),
        ("{}", "missing"),
        ("7", "not a JSON object"),
        (r#"{"plan": 7}"#, "must be a string"),
        (r#"{"plan": " \n"}"#, "is empty"),
        (&long, "the limit is"),
    ];
    for (args, why) in bad {
        let store = temp_dir();
        let plans = store.path().join("plans");
        let (model, noted) = Noted::around(acting(vec![("exit_plan_mode", args.to_owned())]));
        let rig = Rig::new(|setup| Setup { plans: Some(plans.clone()), ..setup }.model(model));
        let mut client = rig.client("s").await;
        client.send("go").await.unwrap();
        client.until_idle().await.unwrap();
        let (told, is_error) = noted.told();
        let shown: String = args.chars().take(40).collect();
        assert!(is_error && told.contains(why), "{shown}: {told}");
        assert_eq!((client.count(is_asked), plans.exists()), (0, false), "{shown}");
    }
}
