//! Lanes against a server that is a listener and a list of bytes.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread::JoinHandle;

use super::framing::Had;
use super::*;
use crate::tool::Written;

/// A server that does with each connection what `serve` does.
struct Server {
    url: String,
    thread: JoinHandle<()>,
}

impl Server {
    fn start(
        connections: usize,
        mut serve: impl FnMut(usize, std::net::TcpStream) + Send + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/chat", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            for number in 0..connections {
                serve(number, listener.accept().unwrap().0);
            }
        });
        Server { url, thread }
    }
}

/// A whole request, head and body.
fn request(stream: &mut std::net::TcpStream) -> String {
    let (mut read, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.unwrap().parse().unwrap() {
                return text;
            }
        }
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "the request ended after {text:?}");
        read.extend_from_slice(&part[..count]);
    }
}

fn lanes() -> Lanes {
    Lanes::new(&Proxies::default())
}

async fn ask(lanes: &Lanes, url: &str) -> Result<Answer, Trouble> {
    lanes.post(url, &HeaderMap::new(), &Pieces::from(&b"{}"[..])).await
}

async fn whole(mut body: Body) -> (String, Result<More, Trouble>) {
    let mut text = Vec::new();
    let end = loop {
        let mut take = |part: &[u8]| text.extend_from_slice(part);
        match poll_fn(|cx| body.poll_read(cx, &mut take)).await {
            Ok(More::Perhaps) => {}
            end => break end,
        }
    };
    (String::from_utf8(text).unwrap(), end)
}

#[tokio::test]
async fn a_request_says_what_it_must_and_its_answer_is_read() {
    let (told, hears) = mpsc::channel();
    let server = Server::start(1, move |_, mut stream| {
        told.send(request(&mut stream)).unwrap();
        let answer = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 429 Slow down\r\n\
                      Retry-After: 3\r\nContent-Length: 5\r\n\r\nlater";
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let mut headers = HeaderMap::new();
    headers.insert("x-key", http::HeaderValue::from_static("secret"));
    let answer =
        lanes().post(&server.url, &headers, &Pieces::from(&b"{\"a\":1}"[..])).await.unwrap();
    assert_eq!(answer.status, 429);
    assert_eq!(answer.headers["retry-after"], "3");
    let (text, end) = whole(answer.body).await;
    assert_eq!((&*text, end.unwrap()), ("later", More::Nothing));
    let host = server.url.strip_prefix("http://").and_then(|url| url.split('/').next()).unwrap();
    let wanted = format!(
        "POST /v1/chat HTTP/1.1\r\nhost: {host}\r\nx-key: secret\r\ncontent-length: 7\r\n\r\n\
         {{\"a\":1}}"
    );
    assert_eq!(hears.recv().unwrap(), wanted);
    server.thread.join().unwrap();
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                       5;name=value\r\nhello\r\n1\r\n,\r\nB\r\n 0\r\n\r\nworld\r\n\
                       0\r\nsum: 7\r\n\r\n";

#[tokio::test]
async fn a_lane_is_used_again_when_its_answer_is_over() {
    // Whoever needs a second connection waits for ever.
    let server = Server::start(1, |_, mut stream| {
        for _ in 0..4 {
            request(&mut stream);
            stream.write_all(CHUNKED.as_bytes()).unwrap();
        }
    });
    let lanes = lanes();
    let asked = async {
        for _ in 0..2 {
            let (text, end) = whole(ask(&lanes, &server.url).await.unwrap().body).await;
            assert_eq!((&*text, end.unwrap()), ("hello, 0\r\n\r\nworld", More::Nothing));
        }
        // One that nobody wanted to hear to its end.
        ask(&lanes, &server.url).await.unwrap().body.leave();
        let idle = lanes.0.idle.get(Slot::here()).unwrap();
        while idle.is_empty() {
            tokio::task::yield_now().await;
        }
        let (_, end) = whole(ask(&lanes, &server.url).await.unwrap().body).await;
        end.unwrap();
        server.thread.join().unwrap();
        // It leads to nobody any more, which this thread is told when it next asks its sockets.
        while !idle.tidy() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap();
}

#[tokio::test]
async fn a_lane_that_was_closed_is_not_used_again() {
    for close in ["connection: close\r\n", ""] {
        let server = Server::start(2, move |_, mut stream| {
            request(&mut stream);
            let answer = format!("HTTP/1.1 200 OK\r\n{close}content-length: 2\r\n\r\nok");
            stream.write_all(answer.as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            // Until the other side has closed as well.
            let _ = stream.read(&mut [0; 16]);
        });
        let lanes = lanes();
        for _ in 0..2 {
            let (text, end) = whole(ask(&lanes, &server.url).await.unwrap().body).await;
            assert_eq!((&*text, end.unwrap()), ("ok", More::Nothing));
            // Until its end has come here.
            let idle = lanes.0.idle.get(Slot::here());
            while !idle.is_none_or(Idle::tidy) {
                tokio::task::yield_now().await;
            }
        }
        drop(lanes);
        server.thread.join().unwrap();
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_says_so() {
    let answers = [
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", "hello"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel", "hel"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nhello", ""),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhello", "he"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello", "hello"),
    ];
    for (answer, text) in answers {
        let server = Server::start(1, move |_, mut stream| {
            request(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let (read, end) = whole(ask(&lanes(), &server.url).await.unwrap().body).await;
        assert_eq!(read, text, "{answer}");
        assert!(matches!(end, Err(Trouble::Broken(_))), "{answer}: {end:?}");
        server.thread.join().unwrap();
    }
}

#[tokio::test]
async fn what_is_no_answer_is_told() {
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(80 * 1024));
    let answers = [
        "".to_owned(),
        "SSH-2.0-OpenSSH\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello".to_owned(),
        endless,
    ];
    for answer in answers {
        let shown: String = answer.chars().take(60).collect();
        let server = Server::start(1, move |_, mut stream| {
            request(&mut stream);
            // The other side may hang up in the middle of it.
            let _ = stream.write_all(answer.as_bytes());
        });
        let got = ask(&lanes(), &server.url).await;
        assert!(matches!(got, Err(Trouble::Unreachable(_))), "{shown:?}");
        server.thread.join().unwrap();
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let got = ask(&lanes(), &format!("http://{closed}/")).await;
    assert!(matches!(got, Err(Trouble::Unreachable(why)) if why.contains("refused")));
    for url in ["", "ftp://localhost/", "http://", "/v1"] {
        assert!(matches!(ask(&lanes(), url).await, Err(Trouble::Unmade(_))), "{url:?}");
    }
}

/// More than the sockets hold, so that pieces are sent in parts.
#[tokio::test]
async fn a_body_in_pieces_arrives_whole() {
    let server = Server::start(1, |_, mut stream| {
        let (mut read, mut part) = (Vec::new(), vec![0; 64 * 1024]);
        let end = loop {
            let count = stream.read(&mut part).unwrap();
            read.extend_from_slice(&part[..count]);
            match read.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => assert!(count > 0),
            }
        };
        let head = String::from_utf8_lossy(&read[..end]);
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = read[end..].to_vec();
        while body.len() < length.unwrap().parse().unwrap() {
            let count = stream.read(&mut part).unwrap();
            assert!(count > 0, "it ended after {} bytes", body.len());
            body.extend_from_slice(&part[..count]);
        }
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body).unwrap();
    });
    let long = ["a", "b"].map(|letter| Written::of(&letter.repeat(12 * 1024 * 1024)));
    let mut filling = Pieces::filling(16, long.to_vec());
    for text in ["[", long[0].json(), ",", long[1].json(), ",", long[0].json(), "]"] {
        filling.write_all(text.as_bytes()).unwrap();
    }
    let body = filling.done();
    assert_eq!(body.each().len(), 7);
    let (lanes, headers) = (lanes(), HeaderMap::new());
    let asked = lanes.post(&server.url, &headers, &body);
    let answer = tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap().unwrap();
    let (text, _) = whole(answer.body).await;
    assert!(text.as_bytes() == body.whole(), "{} bytes of {}", text.len(), body.bytes_len());
    server.thread.join().unwrap();
}

#[tokio::test]
async fn a_refusal_is_read_though_the_request_is_not() {
    let server = Server::start(1, |_, mut stream| {
        stream.read_exact(&mut [0; 100]).unwrap();
        let answer = "HTTP/1.1 413 Too large\r\ncontent-length: 4\r\n\r\nlong";
        stream.write_all(answer.as_bytes()).unwrap();
        // It reads no further, and is still there.
        std::thread::park();
    });
    let body = Pieces::from(&vec![b' '; 32 * 1024 * 1024][..]);
    let (lanes, headers) = (lanes(), HeaderMap::new());
    let asked = lanes.post(&server.url, &headers, &body);
    let answer = tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap().unwrap();
    assert_eq!(answer.status, 413);
    let mut text = Vec::new();
    let mut body = answer.body;
    body.short(3, &mut text).await;
    assert_eq!(text, b"lon");
    server.thread.thread().unpark();
    server.thread.join().unwrap();
}

/// What a framing makes of bytes that come in these pieces.
fn framed(mut framing: Framing, pieces: &[&[u8]]) -> (Vec<u8>, Result<bool, &'static str>) {
    let mut body = Vec::new();
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        let before = body.len();
        match framing.read(piece, &mut |part| body.extend_from_slice(part)) {
            Ok(Had { any }) => assert_eq!(any, body.len() > before),
            Err(why) => return (body, Err(why)),
        }
    }
    (body, Ok(framing.is_over()))
}

#[test]
fn what_a_body_was_cut_into_makes_no_difference() {
    let (_, body) = CHUNKED.split_once("\r\n\r\n").unwrap();
    let body = body.as_bytes();
    let whole = framed(Framing::chunked(), &[body]);
    assert_eq!(whole, (b"hello, 0\r\n\r\nworld".to_vec(), Ok(true)));
    for first in 0..=body.len() {
        for second in first..=body.len() {
            let pieces = [&body[..first], &body[first..second], &body[second..]];
            assert_eq!(framed(Framing::chunked(), &pieces), whole, "{first} {second}");
        }
        if first < body.len() {
            let (_, over) = framed(Framing::chunked(), &[&body[..first]]);
            assert_eq!(over, Ok(false), "cut at {first}");
        }
    }
}

#[test]
fn what_stands_beside_the_chunks_is_bounded() {
    let long = "x".repeat(20 * 1024);
    for body in [format!("5;{long}"), format!("0\r\n{long}"), "00000000000000005".to_owned()] {
        assert!(framed(Framing::chunked(), &[body.as_bytes()]).1.is_err());
    }
    for body in ["\r\n", "x\r\n", "-1\r\n", "5x\r\n", "5\r\nhello!\r\n"] {
        assert!(framed(Framing::chunked(), &[body.as_bytes()]).1.is_err(), "{body:?}");
    }
}
