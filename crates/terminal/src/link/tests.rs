use tokio::net::TcpListener;
use tokio_websockets::ServerBuilder;

use super::*;

/// More than enough; nothing waits for it that goes well.
const WAIT: Duration = Duration::from_secs(30);

/// The server's end of connections, and what they were asked for.
struct Server(TcpListener);

struct Peer {
    socket: WebSocketStream<TcpStream>,
    path: String,
}

impl Server {
    async fn open(since: &str) -> (Server, Link) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let address = Address::parse(&url, None).unwrap();
        let link = Link::open(address, "s", since.to_owned(), Patience::Endless);
        (Server(listener), link)
    }

    /// The next connection; its question is read.
    async fn peer(&self) -> Peer {
        let (stream, _) = self.0.accept().await.unwrap();
        let (request, socket) = ServerBuilder::new().accept(stream).await.unwrap();
        let mut peer = Peer { socket, path: request.uri().to_string() };
        assert!(peer.read().await.contains(r#""type":"get_context""#));
        peer
    }
}

impl Peer {
    async fn send(&mut self, frames: &[&str]) {
        for frame in frames {
            self.socket.send(Message::text((*frame).to_owned())).await.unwrap();
        }
    }

    async fn read(&mut self) -> String {
        let read = tokio::time::timeout(WAIT, self.socket.next()).await.expect("a message");
        read.unwrap().unwrap().as_text().unwrap().to_owned()
    }
}

async fn next(link: &mut Link) -> Told {
    tokio::time::timeout(WAIT, link.next()).await.expect("something told")
}

const CONTEXT: &str = r#"{"type":"context_info","client_ref":"caught-up"}"#;

#[test]
fn waits_grow_up_to_a_bound() {
    for tries in 0..40 {
        let whole = WAIT_MIN.saturating_mul(1 << tries.min(10)).min(WAIT_MAX);
        for _ in 0..20 {
            let wait = wait(tries);
            assert!(wait >= whole / 2 && wait <= whole, "{tries}: {wait:?}");
        }
    }
}

#[tokio::test]
async fn what_is_said_to_one_client_takes_it_nowhere_back() {
    let (server, mut link) = Server::open("5").await;
    let mut peer = server.peer().await;
    assert!(peer.path.ends_with("since=5"), "{}", peer.path);
    peer.send(&[
        r#"{"type":"session_init","seq":5}"#,
        r#"{"type":"assistant_message","seq":7,"cursor":"7~8t16"}"#,
        r#"{"type":"error","message":"x","seq":0}"#,
        r#"{"type":"heartbeat","seq":7}"#,
        r#"{"type":"session_init","seq":7}"#,
    ])
    .await;
    for _ in 0..5 {
        assert!(matches!(next(&mut link).await, Told::Frame(_)));
    }
    drop(peer);
    assert!(matches!(next(&mut link).await, Told::Lost { .. }));
    let peer = server.peer().await;
    assert!(peer.path.ends_with(&format!("since={}", query("7~8t16"))), "{}", peer.path);
}

#[tokio::test]
async fn an_error_is_no_sign_that_all_has_come() {
    let (server, mut link) = Server::open("0").await;
    link.say("m-1", "hello");
    let mut peer = server.peer().await;
    let error = r#"{"type":"error","message":"of something else"}"#;
    // The replay shows that the message came through before: it must not be said again.
    peer.send(&[error, r#"{"type":"turn_started","client_ref":"m-0","seq":1}"#, CONTEXT]).await;
    let told = next(&mut link).await;
    assert!(matches!(&told, Told::Frame(frame) if frame == error), "{told:?}");
    assert!(matches!(next(&mut link).await, Told::Frame(_)));
    assert!(matches!(next(&mut link).await, Told::Up));
    assert!(peer.read().await.contains("m-1"));
    drop(peer);
    assert!(matches!(next(&mut link).await, Told::Lost { .. }));
    let mut peer = server.peer().await;
    peer.send(&[error, r#"{"type":"turn_started","client_ref":"m-1","seq":2}"#, CONTEXT]).await;
    for _ in 0..2 {
        assert!(matches!(next(&mut link).await, Told::Frame(_)));
    }
    assert!(matches!(next(&mut link).await, Told::Up));
    link.say("m-2", "next");
    assert!(peer.read().await.contains("m-2"), "m-1 was said twice");
}

#[tokio::test]
async fn who_cannot_be_asked_is_tried_again() {
    let (server, mut link) = Server::open("0").await;
    let mut peer = server.peer().await;
    peer.send(&[r#"{"type":"error","message":"no","client_ref":"caught-up"}"#]).await;
    assert!(matches!(next(&mut link).await, Told::Lost { .. }));
    server.peer().await.send(&[CONTEXT]).await;
    assert!(matches!(next(&mut link).await, Told::Up));
}

#[tokio::test]
async fn a_session_that_is_gone_begins_anew() {
    let (server, mut link) = Server::open("9").await;
    server.peer().await.send(&[r#"{"type":"session_init","seq":1}"#]).await;
    assert!(matches!(next(&mut link).await, Told::Anew));
    let mut peer = server.peer().await;
    assert!(peer.path.ends_with("since=0"), "{}", peer.path);
    peer.send(&[r#"{"type":"session_init","seq":0}"#, CONTEXT]).await;
    assert!(matches!(next(&mut link).await, Told::Frame(_)));
    assert!(matches!(next(&mut link).await, Told::Up));
}
