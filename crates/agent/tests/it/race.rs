//! Two clients answer one request at the same time: one wins, and what was asked for happens once
//! or not at all.

use std::sync::Arc;

use polyloop_agent::actor::{CommandError, Recorded};
use polyloop_session::command::WaitReply;
use polyloop_session::wait::{Answer, Then, Who};
use polyloop_session::{Command, Event, Refusal, WaitRef};
use tokio::sync::Barrier;

use super::client::Client;
use super::make::{approve, deny};
use super::model::{acting, adding};
use super::rig::{Rig, in_time};

const SESSIONS: usize = 10;
const ROUNDS: usize = 100;

struct Race {
    /// Who is put on the road first.
    first: usize,
    replies: [WaitReply; 2],
}

impl Race {
    /// Both orders; approval against approval, approval against denial.
    fn round(n: usize) -> Race {
        let against = if n % 4 < 2 { approve() } else { deny(Then::Continue) };
        Race { first: n % 2, replies: [approve(), against] }
    }

    /// Whether each was the one whose answer counted.
    async fn run(self, client: &Client) -> [bool; 2] {
        let wait = WaitRef::Id(client.wait().unwrap());
        let start = Arc::new(Barrier::new(2));
        let racer = |who: usize, reply: WaitReply| {
            let (start, handle) = (start.clone(), client.handle.clone());
            let by =
                Who { via: "test".into(), name: Some(format!("racer {who}").into()), from: None };
            tokio::spawn(async move {
                start.wait().await;
                handle.command(Command::Settle { wait, reply, by }).await
            })
        };
        let [one, two] = self.replies;
        let (one, two) = if self.first == 0 {
            let one = racer(0, one);
            (one, racer(1, two))
        } else {
            let two = racer(1, two);
            (racer(0, one), two)
        };
        let one = in_time("an answer", one).await.unwrap();
        let two = in_time("an answer", two).await.unwrap();
        [won(one, 1), won(two, 0)]
    }
}

fn won(done: Result<Recorded, CommandError>, other: usize) -> bool {
    match done {
        Ok(_) => true,
        Err(CommandError::Refused(Refusal::AlreadySettled { by })) => {
            assert_eq!(by, format!("racer {other} (test)"));
            false
        }
        // The whole turn is over already.
        Err(CommandError::Refused(Refusal::NoPendingApproval)) => false,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_answers_exactly_one_counts() {
    let mut wins = [0, 0];
    for session in 0..SESSIONS {
        let file = "counted.txt";
        let rig = Rig::new(|setup| setup.model(acting(vec![("apply_patch", adding(file, "ran"))])));
        rig.countable(file);
        let mut client = rig.client("s").await;
        let mut approved = 0;
        for n in 0..ROUNDS {
            client.send("go").await.unwrap();
            client.until("the request", |c| c.wait().is_some()).await.unwrap();
            let race = Race::round(session * ROUNDS + n);
            let approves = race.replies.clone().map(|r| matches!(r, WaitReply::Approve { .. }));
            let won = race.run(&client).await;
            let winner = match won {
                [true, false] => 0,
                [false, true] => 1,
                both => panic!("round {n}: {both:?}"),
            };
            wins[winner] += 1;
            approved += usize::from(approves[winner]);
            client.until_idle().await.unwrap();
        }
        assert_eq!(rig.count(file, "ran"), approved);
        check_log(&client, approved);
    }
    assert_eq!(wins.iter().sum::<usize>(), SESSIONS * ROUNDS);
    assert!(wins[0] > 0 && wins[1] > 0, "always the same wins: {wins:?}");
}

fn check_log(client: &Client, approved: usize) {
    let count =
        |what: fn(&Event) -> bool| client.entries.iter().filter(|entry| what(&entry.event)).count();
    assert_eq!(count(|event| matches!(event, Event::WaitOpened { .. })), ROUNDS);
    assert_eq!(count(|event| matches!(event, Event::WaitSettled { .. })), ROUNDS);
    let is_approval = |event: &Event| {
        let Event::WaitSettled { answer, .. } = event else { return false };
        matches!(answer, Answer::Approved { .. })
    };
    assert_eq!(count(is_approval), approved);
    assert_eq!(count(|event| matches!(event, Event::ToolStarted { .. })), approved);
}
