//! A person may send another patch in place of the one that was proposed.

use polyloop_session::wait::Answer;
use polyloop_session::{Event, Refusal, WaitRef};
use serde_json::Value;

use super::client::{Client, refusal};
use super::make::{approve, who};
use super::model::{acting, adding};
use super::rig::{Rig, in_time};

const FILE: &str = "counted.txt";

fn patch(line: &str) -> String {
    let args: Value = serde_json::from_str(&adding(FILE, line)).unwrap();
    args["patch"].as_str().unwrap().to_owned()
}

async fn asked(rig: &Rig) -> Client {
    rig.countable(FILE);
    let mut client = rig.client("s").await;
    client.send("go").await.unwrap();
    client.until("the request", |c| c.wait().is_some()).await.unwrap();
    client
}

fn rig() -> Rig {
    Rig::new(|setup| setup.model(acting(vec![("apply_patch", adding(FILE, "theirs"))])))
}

#[tokio::test]
async fn what_a_person_sends_runs_in_its_place() {
    let rig = rig();
    let mut client = asked(&rig).await;
    let wait = WaitRef::Presented;
    let settled = client.handle.settle_with_patch(wait, patch("mine").into(), false, who());
    in_time("the answer", settled).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!((rig.count(FILE, "mine"), rig.count(FILE, "theirs")), (1, 0));
    assert!(client.state.grants().is_empty());
}

#[tokio::test]
async fn a_patch_that_does_not_apply_leaves_the_request_open() {
    let rig = rig();
    let mut client = asked(&rig).await;
    let wait = WaitRef::Id(client.wait().unwrap());
    let before = client.entries.len();
    let elsewhere = patch("mine").replace(" start", " another start");
    for bad in ["no patch at all", &elsewhere, &patch("mine").replace(FILE, "../out.txt")] {
        let settled = client.handle.settle_with_patch(wait, bad.into(), false, who());
        let refused = refusal(in_time("the answer", settled).await);
        assert!(matches!(refused, Refusal::Refused { .. }), "{refused:?}");
    }
    client.handle.context_info().await.unwrap();
    assert_eq!(client.entries.len(), before);
    client.settle(approve()).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!((rig.count(FILE, "mine"), rig.count(FILE, "theirs")), (0, 1));
}

/// Clients may send the proposed patch back as it was: that is an approval.
#[tokio::test]
async fn the_same_patch_is_an_approval() {
    let rig = rig();
    let mut client = asked(&rig).await;
    let wait = WaitRef::Id(client.wait().unwrap());
    let settled = client.handle.settle_with_patch(wait, patch("theirs").into(), true, who());
    in_time("the answer", settled).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(rig.count(FILE, "theirs"), 1);
    let instead = client.entries.iter().find_map(|entry| match &entry.event {
        Event::WaitSettled { answer: Answer::Approved { instead, .. }, .. } => Some(instead),
        _ => None,
    });
    assert_eq!(instead, Some(&None));
    // Always: the next one is not asked about.
    client.send("again").await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(rig.count(FILE, "theirs"), 2);
    let late = client.handle.settle_with_patch(wait, patch("mine").into(), false, who());
    let late = refusal(in_time("the answer", late).await);
    assert!(matches!(late, Refusal::AlreadySettled { .. }), "{late:?}");
}
