//! Several servers of one store: who has a session, who lives, and what they say to each other.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use polyloop_session::{Growth, ItemId, Seq, SessionId, Stream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::super::super::conformance::{PlainCodec, created, entry, id, queued};
use super::super::super::{Flush, Log, Occasion, OpenMode};
use super::super::Nats;
use super::Server;
use crate::peers::{Claim, Lease, News, Peers, Question, ServerId, Unanswered};

/// Generous: a server falls in three seconds.
const FALL_TIME_MAX: Duration = Duration::from_secs(60);

struct Member {
    log: Nats,
    peers: Arc<dyn Peers>,
}

async fn member(server: &Server) -> Member {
    let log = server.connect(Arc::new(PlainCodec)).await;
    let peers = log.peers().await.unwrap();
    Member { log, peers }
}

impl Member {
    async fn claimed(&self, name: &str) -> Lease {
        match self.peers.claim(&id(name)).await.unwrap() {
            Claim::Ours(lease) => lease,
            Claim::Theirs(server) => panic!("{server:?} has it"),
        }
    }

    async fn refused(&self, name: &str) -> ServerId {
        match self.peers.claim(&id(name)).await.unwrap() {
            Claim::Ours(_) => panic!("it was free"),
            Claim::Theirs(server) => server,
        }
    }

    fn here(&self) -> ServerId {
        self.peers.here().clone()
    }
}

/// The next news that are of a session.
async fn next(news: &mut mpsc::UnboundedReceiver<News>) -> News {
    timeout(FALL_TIME_MAX, news.recv()).await.expect("no news").unwrap()
}

fn taken(name: &str, by: &ServerId) -> News {
    News::Taken { id: id(name), by: by.clone() }
}

fn free(name: &str) -> News {
    News::Free { id: id(name) }
}

fn fallen(name: &str, was: &ServerId) -> News {
    News::Fallen { id: id(name), was: was.clone() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_claim_a_session_one_has_it() {
    const SESSIONS: usize = 20;
    let server = Server::start();
    let members = [member(&server).await, member(&server).await, member(&server).await];
    for n in 0..SESSIONS {
        let name = format!("s{n}");
        let claims =
            members.iter().map(|member| async { member.peers.claim(&id(&name)).await.unwrap() });
        let claims = join_all(claims).await;
        let mut winners = Vec::new();
        for (member, claim) in members.iter().zip(&claims) {
            if matches!(claim, Claim::Ours(_)) {
                winners.push(member.here());
            }
        }
        assert_eq!(winners.len(), 1, "{name}");
        for claim in &claims {
            if let Claim::Theirs(server) = claim {
                assert_eq!(*server, winners[0]);
            }
        }
        // Some are let go, and claimed again by all.
        for claim in claims {
            if let Claim::Ours(lease) = claim {
                lease.let_go().await;
            }
        }
        let again =
            members.iter().map(|member| async { member.peers.claim(&id(&name)).await.unwrap() });
        let again = join_all(again).await;
        let ours = again.iter().filter(|claim| matches!(claim, Claim::Ours(_))).count();
        assert_eq!(ours, 1, "{name}");
    }
}

#[tokio::test]
async fn what_is_let_go_is_free_and_everybody_hears_of_it() {
    let server = Server::start();
    let (here, there) = (member(&server).await, member(&server).await);
    let (mut at_here, mut at_there) = (here.peers.news().unwrap(), there.peers.news().unwrap());
    assert!(here.peers.news().is_none());
    let lease = here.claimed("a.b").await;
    assert_eq!(here.peers.owner(&id("a.b")), Some(here.here()));
    assert_eq!(next(&mut at_there).await, taken("a.b", &here.here()));
    assert_eq!(there.peers.owner(&id("a.b")), Some(here.here()));
    assert_eq!(there.refused("a.b").await, here.here());
    assert_eq!(next(&mut at_here).await, taken("a.b", &here.here()));
    lease.let_go().await;
    assert_eq!(next(&mut at_there).await, free("a.b"));
    assert_eq!(next(&mut at_here).await, free("a.b"));
    assert_eq!(here.peers.owner(&id("a.b")), None);
    let lease = there.claimed("a.b").await;
    assert_eq!(next(&mut at_here).await, taken("a.b", &there.here()));
    // To drop a lease is to let go.
    drop(lease);
    assert_eq!(next(&mut at_here).await, free("a.b"));
    // Whoever comes later hears of what is there.
    let _lease = here.claimed("c").await;
    let late = member(&server).await;
    assert_eq!(late.peers.owner(&id("c")), Some(here.here()));
    assert_eq!(next(&mut late.peers.news().unwrap()).await, taken("c", &here.here()));
}

/// A lease that is let go late is not somebody else's.
#[tokio::test]
async fn a_session_that_was_taken_over_is_not_let_go_by_who_had_it() {
    let server = Server::start();
    let (here, there) = (member(&server).await, member(&server).await);
    let old = here.claimed("s").await;
    here.peers.leave().await;
    let mut news = there.peers.news().unwrap();
    assert_eq!(next(&mut news).await, taken("s", &here.here()));
    assert_eq!(next(&mut news).await, fallen("s", &here.here()));
    let _new = there.claimed("s").await;
    assert_eq!(next(&mut news).await, taken("s", &there.here()));
    old.let_go().await;
    let late = member(&server).await;
    assert_eq!(late.peers.owner(&id("s")), Some(there.here()));
}

#[tokio::test]
async fn a_server_that_goes_silent_has_fallen() {
    let server = Server::start();
    let (one, two, gone) = (member(&server).await, member(&server).await, member(&server).await);
    let was = gone.here();
    let lease = gone.claimed("s").await;
    let (mut at_one, mut at_two) = (one.peers.news().unwrap(), two.peers.news().unwrap());
    // Nothing of it runs any more, and nothing was said.
    std::mem::forget(lease);
    drop(gone);
    for news in [&mut at_one, &mut at_two] {
        assert_eq!(next(news).await, taken("s", &was));
        assert_eq!(next(news).await, fallen("s", &was));
    }
    assert_eq!(one.peers.owner(&id("s")), None);
    // One of those who live has it then, and is the one who was to mind it or not.
    let minders = [&one, &two].map(|member| member.peers.is_ours_to_mind(&id("s")));
    assert_eq!(minders.iter().filter(|is_ours| **is_ours).count(), 1);
    let _lease = two.claimed("s").await;
    assert_eq!(one.refused("s").await, two.here());
    assert_eq!(next(&mut at_one).await, taken("s", &two.here()));
}

/// Who comes when nobody knows of it any more must find out as well.
#[tokio::test]
async fn what_a_server_left_behind_is_free_for_a_later_one() {
    let server = Server::start();
    let (gone, log) = (member(&server).await, server.connect(Arc::new(PlainCodec)).await);
    let was = gone.here();
    std::mem::forget(gone.claimed("s").await);
    drop(gone);
    let owners = log.store.streams.owners().await.unwrap();
    owners.stream.purge().filter(format!("$KV.test-owners.server.{}", was.0)).await.unwrap();
    let late = member(&server).await;
    let mut news = late.peers.news().unwrap();
    assert_eq!(next(&mut news).await, taken("s", &was));
    assert_eq!(late.refused("s").await, was);
    assert_eq!(next(&mut news).await, fallen("s", &was));
    drop(late.claimed("s").await);
}

/// Takes as long as a server takes to fall.
async fn somebody_falls() {
    let server = Server::start();
    let (here, gone) = (member(&server).await, member(&server).await);
    let (was, mut news) = (gone.here(), here.peers.news().unwrap());
    std::mem::forget(gone.claimed("s").await);
    drop(gone);
    while next(&mut news).await != fallen("s", &was) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_falls_while_nats_is_down() {
    let mut server = Server::start();
    let (here, there) = (member(&server).await, member(&server).await);
    let (mut at_here, mut at_there) = (here.peers.news().unwrap(), there.peers.news().unwrap());
    let _lease = here.claimed("s").await;
    for news in [&mut at_here, &mut at_there] {
        assert_eq!(next(news).await, taken("s", &here.here()));
    }
    server.kill();
    // What must not happen can only be waited for: three times as long as others take to fall.
    for _ in 0..3 {
        somebody_falls().await;
    }
    assert_eq!(there.peers.owner(&id("s")), Some(here.here()));
    server.start_again();
    // Both go on: what is claimed after it is seen there, and nothing was lost before.
    let _other = there.claimed("t").await;
    loop {
        match next(&mut at_here).await {
            news if news == taken("t", &there.here()) => break,
            // The watch may have begun again.
            news => assert_eq!(news, taken("s", &here.here())),
        }
    }
    assert_eq!(there.refused("s").await, here.here());
    // And whoever goes silent then has fallen.
    let was = here.here();
    std::mem::forget(_lease);
    drop(here);
    while next(&mut at_there).await != fallen("s", &was) {}
}

async fn answering(mut questions: mpsc::Receiver<Question>) -> Vec<Bytes> {
    let mut heard = Vec::new();
    while let Some(Question { body, answer }) = questions.recv().await {
        if body.is_empty() {
            break; // This one gets no answer.
        }
        let mut told = b"re: ".to_vec();
        told.extend_from_slice(&body);
        answer.send(told.into()).unwrap();
        heard.push(body);
    }
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_are_heard_in_order_and_answered() {
    const QUESTIONS: usize = 1_000;
    let server = Server::start();
    let (here, there) = (member(&server).await, member(&server).await);
    let answering = tokio::spawn(answering(there.peers.questions().unwrap()));
    assert!(there.peers.questions().is_none());
    let whom = there.here();
    // Asked one after the other, waited for all together.
    let body = |n: usize| Bytes::from(format!("{n}"));
    let asked: Vec<_> = (0..QUESTIONS).map(|n| here.peers.ask(&whom, body(n))).collect();
    for (n, answer) in join_all(asked).await.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), format!("re: {n}"));
    }
    let silent = here.peers.ask(&whom, Bytes::new());
    let nobody = ServerId("nobody".into());
    let unheard = here.peers.ask(&nobody, body(1));
    assert_eq!(unheard.await, Err(Unanswered::Unheard));
    assert_eq!(silent.await, Err(Unanswered::Silent));
    assert_eq!(answering.await.unwrap(), (0..QUESTIONS).map(body).collect::<Vec<_>>());
    // One that is gone hears nothing.
    drop(there);
    let unheard = async {
        loop {
            let asked = timeout(Duration::from_secs(1), here.peers.ask(&whom, body(1)));
            if asked.await == Ok(Err(Unanswered::Unheard)) {
                break;
            }
        }
    };
    timeout(FALL_TIME_MAX, unheard).await.unwrap();
}

#[tokio::test]
async fn followers_hear_what_is_told_from_then_on_in_order() {
    const TOLD: usize = 1_000;
    let server = Server::start();
    let (here, there) = (member(&server).await, member(&server).await);
    let _lease = here.claimed("s").await;
    // Many times, because it must not be luck that the first word is heard.
    for round in 0..50 {
        let mut one = there.peers.follow(&id("s")).await.unwrap();
        here.peers.tell(&id("other"), "not of this one".into());
        here.peers.tell(&id("s"), format!("{round}").into());
        let told = timeout(FALL_TIME_MAX, one.recv()).await.unwrap().unwrap();
        assert_eq!(told, format!("{round}"));
    }
    let mut followers = Vec::new();
    for member in [&there, &here] {
        followers.push(member.peers.follow(&id("s")).await.unwrap());
    }
    for n in 0..TOLD {
        here.peers.tell(&id("s"), format!("{n}").into());
    }
    for mut follower in followers {
        for n in 0..TOLD {
            let told = timeout(FALL_TIME_MAX, follower.recv()).await.unwrap().unwrap();
            assert_eq!(told, format!("{n}"));
        }
    }
}

fn growth(item: u64, offset: u64, text: &str) -> Growth {
    Growth { item: ItemId(Seq(item)), stream: Stream::Text, offset, text: text.into() }
}

#[tokio::test]
async fn who_peeks_sees_what_whoever_opens_it_finds() {
    let server = Server::start();
    let (here, there) = (member(&server).await, member(&server).await);
    let s = id("s");
    assert!(there.peers.peek(&s).await.unwrap().is_none());
    let mut session = here.log.open(&s, OpenMode::OrCreate).await.unwrap().unwrap();
    session.writer.append(Seq::NONE, &[entry(1, created())], Flush::Disk).await.unwrap();
    let long = "x".repeat(2_000);
    for seq in 1..200 {
        let next = [entry(seq + 1, queued(&format!("{seq} {long}")))];
        session.writer.append(Seq(seq), &next, Flush::Disk).await.unwrap();
        for entry in &next {
            session.folded.take(entry);
        }
        session.writer.grow(&[growth(seq, 0, "Hel")]).await.unwrap();
        session.writer.grow(&[growth(seq, 3, "lo")]).await.unwrap();
        if seq % 50 == 0 {
            session.writer.keep(&session.folded.state, Occasion::Leaving).await;
            session.writer.forget_growth().await.unwrap();
        }
        if seq % 40 == 0 || seq == 199 {
            let (folded, live) = there.peers.peek(&s).await.unwrap().unwrap();
            assert_eq!(folded.state.last_seq(), Seq(seq + 1));
            let text = if seq % 50 == 0 { "" } else { "Hello" };
            assert_eq!(live.text(ItemId(Seq(seq)), Stream::Text), text);
        }
    }
    // To look takes nothing away from whoever has it.
    session.writer.append(Seq(200), &[entry(201, queued("on"))], Flush::Disk).await.unwrap();
    let (folded, live) = there.peers.peek(&s).await.unwrap().unwrap();
    drop(session);
    let opened = here.log.open(&s, OpenMode::Existing).await.unwrap().unwrap();
    assert_eq!(folded.state, opened.folded.state);
    assert_eq!(folded.turns, opened.folded.turns);
    assert_eq!(folded.last_at, opened.folded.last_at);
    assert_eq!(live, opened.live);
}

#[tokio::test]
async fn one_server_minds_each_session_and_all_say_the_same() {
    let server = Server::start();
    let members = [member(&server).await, member(&server).await, member(&server).await];
    // Each has heard of the others.
    let _lease = members[2].claimed("s").await;
    for member in &members[..2] {
        while next(&mut member.peers.news().unwrap()).await != taken("s", &members[2].here()) {}
    }
    let mut counts = [0; 3];
    for n in 0..300 {
        let id = SessionId::parse(&format!("s{n}")).unwrap();
        let minds: Vec<bool> = members.iter().map(|m| m.peers.is_ours_to_mind(&id)).collect();
        assert_eq!(minds.iter().filter(|is_ours| **is_ours).count(), 1, "{id}");
        for (count, is_ours) in counts.iter_mut().zip(minds) {
            *count += u32::from(is_ours);
        }
    }
    assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
}
