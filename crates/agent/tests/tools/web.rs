//! Fetching from real servers on loopback: slow, endless, huge, lying and hostile ones.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use polyloop_agent::model::http::Proxies;
use polyloop_agent::tool::web_fetcher::{Limits, PrivateAddresses, REDIRECTS_MAX, Reach};
use polyloop_agent::tool::{Place, TEXT_BYTES_MAX};
use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Judgement, Mode, Risk, Verdict, verdict};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::paths::tool;
use crate::{Ended, Ground, PATIENCE, Test, block_on};

pub const ALL: &[Test] = &[
    ("a_page_comes_as_markdown", page),
    ("what_is_sent_is_what_the_call_says", sent),
    ("kinds_of_answers", kinds),
    ("a_long_text_is_read_on_with_offset", paged),
    ("a_huge_answer_is_cut", huge),
    ("a_slow_server_is_given_up_on", slow),
    ("an_endless_head_is_given_up_on", endless_head),
    ("a_fetch_stops_at_once", stops),
    ("redirects_on_the_host_are_followed", redirects),
    ("redirects_elsewhere_are_told", elsewhere),
    ("an_error_names_its_status", statuses),
    ("an_answer_that_breaks_off_is_an_error", breaks_off),
    ("private_addresses_are_refused", private),
    ("a_name_that_leads_home_is_refused_when_it_is_used", rebinding),
    ("the_server_itself_is_never_fetched_from", own),
    ("nothing_goes_around_the_proxy", proxy),
    ("hostile_pages_are_only_text", hostile),
    ("a_fetch_is_never_run_unasked", judged),
];

pub fn reach(private: PrivateAddresses) -> Reach {
    let limits = Limits { time_max: Duration::from_secs(5), ..Limits::default() };
    Reach::new(&Proxies::default(), private, limits).unwrap()
}

/// A server that answers each request with what `answer` makes of its first line, and keeps what
/// it was sent.
struct Site {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

type Answer = fn(String, TcpStream) -> futures_util::future::BoxFuture<'static, ()>;

impl Site {
    async fn new(answer: Answer) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let kept = kept.clone();
                tokio::spawn(async move {
                    let request = request(&mut stream).await;
                    kept.lock().unwrap().push(request.clone());
                    answer(request, stream).await;
                });
            }
        });
        Site { port, seen }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// The head, and a body of the length it names.
async fn request(stream: &mut TcpStream) -> String {
    let mut got = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&got).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        match stream.read_buf(&mut got).await {
            Ok(0) | Err(_) => return String::from_utf8_lossy(&got).into_owned(),
            Ok(_) => {}
        }
    }
}

async fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body).await;
    let _ = stream.shutdown().await;
}

macro_rules! answer {
    (|$request:ident, $stream:ident| $body:block) => {
        |$request, mut $stream| {
            Box::pin(async move {
                let $stream = &mut $stream;
                $body
            })
        }
    };
}

/// The path and query that were asked for.
fn path(request: &str) -> String {
    request.split(' ').nth(1).unwrap_or_default().to_owned()
}

async fn fetch(ground: &Ground, args: Value) -> Ended {
    ground.start(tool("web_fetcher"), args).end().await
}

async fn text(ground: &Ground, args: Value) -> String {
    let ended = fetch(ground, args.clone()).await;
    assert_eq!(ended.end, End::Whole, "{args}: {}", ended.seen());
    assert!(ended.output.len() <= TEXT_BYTES_MAX, "{}", ended.output.len());
    assert!(ended.result.seen.is_none() && ended.result.files.is_empty());
    ended.output
}

async fn failure(ground: &Ground, args: Value) -> String {
    let ended = fetch(ground, args.clone()).await;
    assert_eq!(ended.end, End::Failed, "{args}: {}", ended.seen());
    assert!(ended.output.is_empty() && ended.seen().starts_with("web_fetcher: "));
    ended.seen().to_owned()
}

fn page() {
    let ground = Ground::new();
    block_on(async {
        let site = Site::new(answer!(|_request, stream| {
            let html = "<title>T</title><script>x()</script><h1>One</h1><a href='/two'>two</a>";
            let html = format!("{html}<p>caf\u{e9}");
            let (html, _, _) = encoding_rs::WINDOWS_1252.encode(&html);
            reply(stream, "200 OK", "content-type: text/html; charset=latin1\r\n", &html).await;
        }))
        .await;
        let shown = text(&ground, json!({ "url": site.url("/a") })).await;
        let two = site.url("/two");
        assert_eq!(shown, format!("Title: T\n\n# One\n\n[two]({two})\n\ncafé\n"));
    });
}

fn sent() {
    let ground = Ground::new();
    block_on(async {
        let site = Site::new(answer!(|_request, stream| {
            let cookie = "set-cookie: a=b\r\ncontent-type: text/plain\r\n";
            reply(stream, "200 OK", cookie, b"ok").await;
        }))
        .await;
        let url = site.url("/x?y=1#z");
        text(&ground, json!({ "url": url })).await;
        text(&ground, json!({ "url": url, "method": "POST", "body": "héllo" })).await;
        let headers = json!({ "X-One": "1", "Accept": "text/csv" });
        let body = json!({ "a": [1, null] });
        let args = json!({ "url": url, "method": "post", "body": body, "headers": headers });
        text(&ground, args).await;
        let seen = site.seen();
        let lines = |request: &str| -> Vec<String> {
            let mut lines: Vec<String> = request.lines().map(str::to_owned).collect();
            lines[1..].sort();
            lines
        };
        let version = env!("CARGO_PKG_VERSION");
        let agent = format!("user-agent: Polyloop/{version}");
        let host = format!("host: 127.0.0.1:{}", site.port);
        let want = ["GET /x?y=1 HTTP/1.1", "", "accept-encoding: identity", "accept: */*"];
        assert_eq!(lines(&seen[0]), [&want[..], &[&host, &agent]].concat());
        assert!(
            seen[1].starts_with("POST /x?y=1 HTTP/1.1\r\n") && seen[1].ends_with("\r\n\r\nhéllo")
        );
        assert!(seen[1].contains("content-type: text/plain; charset=utf-8\r\n"));
        assert!(seen[2].ends_with("\r\n\r\n{\"a\":[1,null]}"), "{}", seen[2]);
        for line in ["content-type: application/json", "x-one: 1", "accept: text/csv"] {
            assert_eq!(seen[2].matches(&format!("{line}\r\n")).count(), 1, "{}", seen[2]);
        }
        assert!(!seen.concat().to_lowercase().contains("cookie"));
    });
}

fn kinds() {
    let ground = Ground::new();
    block_on(async {
        let site = Site::new(answer!(|request, stream| {
            let (headers, body): (&str, &[u8]) = match path(&request).as_str() {
                "/json" => ("content-type: application/json\r\n", b"{\"a\": 1}"),
                "/png" => ("content-type: image/png\r\n", b"\x89PNG\0\0"),
                "/gzip" => {
                    ("content-type: text/plain\r\ncontent-encoding: gzip\r\n", b"\x1f\x8b12345678")
                }
                "/nothing" => ("content-type: text/plain\r\n", b""),
                "/scripts" => ("content-type: text/html\r\n", b"<script>a</script>"),
                "/unnamed" => ("", b"<html><b>bold</b>"),
                "/binary" => ("", b"a\0b"),
                "/no-text" => ("content-type: text/plain\r\n", b"a\0b"),
                _ => ("content-type: text/plain\r\n", b"plain <b>\n\n"),
            };
            reply(stream, "200 OK", headers, body).await;
        }))
        .await;
        for (path, want) in [
            ("/json", "{\"a\": 1}\n"),
            ("/plain", "plain <b>\n\n"),
            ("/png", "(6 bytes of image/png, not shown)\n"),
            ("/gzip", "(10 bytes of text/plain, compressed unasked, not shown)\n"),
            ("/nothing", "(the answer is empty)\n"),
            ("/scripts", "(18 bytes of text/html without any text)\n"),
            ("/unnamed", "**bold**\n"),
            ("/binary", "(3 bytes of an unnamed type, not shown)\n"),
            ("/no-text", "(3 bytes of text/plain, not shown)\n"),
        ] {
            assert_eq!(text(&ground, json!({ "url": site.url(path) })).await, want, "{path}");
        }
    });
}

fn paged() {
    let ground = Ground::new();
    block_on(async {
        let site = Site::new(answer!(|_request, stream| {
            let body: String = (0..20_000).map(|n| format!("é{n:06}\n")).collect();
            reply(stream, "200 OK", "content-type: text/plain\r\n", body.as_bytes()).await;
        }))
        .await;
        let whole: String = (0..20_000).map(|n| format!("é{n:06}\n")).collect();
        let (mut read, mut pages) = (String::new(), 0);
        loop {
            let args = json!({ "url": site.url("/"), "offset": read.len() });
            let shown = text(&ground, args).await;
            pages += 1;
            let Some((page, note)) = shown.rsplit_once("\n(") else {
                read.push_str(&shown);
                break;
            };
            let next = note.strip_suffix(")\n").unwrap();
            let (counts, next) = next.split_once(" bytes of text; read on with offset ").unwrap();
            // The note stands on a line of its own.
            let room = next.parse::<usize>().unwrap() - read.len();
            read.push_str(&format!("{page}\n")[..room]);
            assert_eq!(counts, format!("{} of {}", read.len(), whole.len()));
        }
        assert!(read == whole && pages > 2, "{pages}");
        let beyond = failure(&ground, json!({ "url": site.url("/"), "offset": 180_000 })).await;
        assert!(beyond.ends_with("the text has only 180000 bytes; `offset` is 180000"), "{beyond}");
        let post = json!({ "url": site.url("/"), "method": "POST" });
        let shown = text(&ground, post).await;
        assert!(shown.ends_with(" of 180000 bytes of text)\n"), "a POST is not repeated");
    });
}

/// It is told to be endless, so that only the reader can end it.
fn huge() {
    let ground = Ground::new();
    block_on(async {
        let site = Site::new(answer!(|_request, stream| {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
            let _ = stream.write_all(head.as_bytes()).await;
            let part = "0123456789abcde\n".repeat(4_096);
            while stream.write_all(part.as_bytes()).await.is_ok() {}
        }))
        .await;
        let last = json!({ "url": site.url("/"), "offset": 2 * 1024 * 1024 - 16 });
        assert_eq!(
            text(&ground, last).await,
            "0123456789abcde\n(only the first 2097152 bytes of the answer were read)\n"
        );
    });
}

fn slow() {
    let ground = short_of_time();
    block_on(async {
        let site = Site::new(answer!(|request, stream| {
            if path(&request) != "/never" {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
                let _ = stream.write_all(head.as_bytes()).await;
                // A byte now and then would keep an idle limit content.
                while stream.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            std::future::pending::<()>().await;
        }))
        .await;
        for path in ["/never", "/drips"] {
            let why = failure(&ground, json!({ "url": site.url(path) })).await;
            assert!(why.ends_with("gave no whole answer within 0.5 seconds"), "{why}");
        }
    });
}

fn endless_head() {
    let ground = short_of_time();
    block_on(async {
        let site = Site::new(answer!(|_request, stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
            let line = format!("x: {}\r\n", "y".repeat(1_000));
            while stream.write_all(line.as_bytes()).await.is_ok() {}
        }))
        .await;
        let why = failure(&ground, json!({ "url": site.url("/") })).await;
        assert!(why.contains("cannot be reached") || why.contains("no whole answer"), "{why}");
    });
}

/// Gives a fetch half a second.
fn short_of_time() -> Ground {
    let mut ground = Ground::new();
    let limits = Limits { time_max: Duration::from_millis(500), ..Limits::default() };
    let web = Reach::new(&Proxies::default(), PrivateAddresses::Allowed, limits).unwrap();
    ground.place = Arc::new(Place { web, ..(*ground.place).clone() });
    ground
}

fn with(web: Reach) -> Ground {
    let mut ground = Ground::new();
    ground.place = Arc::new(Place { web, ..(*ground.place).clone() });
    ground
}

fn stops() {
    let limits = Limits { time_max: PATIENCE * 10, ..Limits::default() };
    let web = Reach::new(&Proxies::default(), PrivateAddresses::Allowed, limits).unwrap();
    let ground = with(web);
    block_on(async {
        let site = Site::new(answer!(|_request, _stream| {
            std::future::pending::<()>().await;
        }))
        .await;
        let call = ground.start(tool("web_fetcher"), json!({ "url": site.url("/") }));
        let (stop, seen) = (call.stop.clone(), site.seen.clone());
        tokio::spawn(async move {
            while seen.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            stop.cancel();
        });
        let ended = call.end().await;
        assert_eq!((ended.end, ended.seen()), (End::Interrupted, "Interrupted."));
        let early = ground.start(tool("web_fetcher"), json!({ "url": site.url("/") }));
        early.stop.cancel();
        assert_eq!(early.end().await.end, End::Interrupted);
        assert_eq!(site.seen().len(), 1, "the second was never sent");
    });
}

fn redirects() {
    let ground = Ground::new();
    block_on(async {
        let site = Site::new(answer!(|request, stream| {
            let path = path(&request);
            let left: usize = path[1..].parse().unwrap_or(0);
            match (path.as_str(), left) {
                ("/loop", _) => reply(stream, "302 Found", "location: /loop\r\n", b"").await,
                (_, 0) => {
                    let html = "content-type: text/html\r\n";
                    reply(stream, "200 OK", html, b"<a href=x>there</a>").await;
                }
                (_, left) => {
                    let to = format!("location: ../{}\r\n", left - 1);
                    reply(stream, "301 Moved Permanently", &to, b"moved").await;
                }
            }
        }))
        .await;
        let most =
            json!({ "url": site.url(&format!("/{REDIRECTS_MAX}")), "headers": { "x": "1" } });
        let (end, link) = (site.url("/0"), site.url("/x"));
        let want = format!("(redirected to {end})\n\n[there]({link})\n");
        assert_eq!(text(&ground, most).await, want);
        let seen = site.seen();
        assert_eq!(seen.len(), REDIRECTS_MAX + 1);
        assert!(seen.iter().all(|request| request.contains("x: 1\r\n")));
        for path in [&format!("/{}", REDIRECTS_MAX + 1), "/loop"] {
            let why = failure(&ground, json!({ "url": site.url(path) })).await;
            assert!(why.ends_with("redirects more than 5 times"), "{why}");
        }
        let posted = json!({ "url": site.url("/2"), "method": "POST", "body": "x" });
        let told = text(&ground, posted).await;
        let target = site.url("/1");
        assert!(told.contains(&format!("301 Moved Permanently: redirects to {target}; fetch")));
    });
}

fn elsewhere() {
    let ground = Ground::new();
    block_on(async {
        let other = Site::new(answer!(|_request, stream| {
            reply(stream, "200 OK", "", b"other").await;
        }))
        .await;
        let site = Site::new(answer!(|request, stream| {
            // What comes after the question mark is where it leads.
            let to = path(&request);
            let to = to.split_once('?').map_or("", |(_, to)| to);
            reply(stream, "307 Temporary Redirect", &format!("location: {to}\r\n"), b"").await;
        }))
        .await;
        let port = other.port;
        for (to, told) in [
            (format!("http://127.0.0.1:{port}/"), format!("http://127.0.0.1:{port}/")),
            (format!("//localhost:{port}/a"), format!("http://localhost:{port}/a")),
            ("https://example.org/".to_owned(), "https://example.org/".to_owned()),
            (format!("http://127.1:{port}/"), format!("http://127.0.0.1:{port}/")),
        ] {
            let shown = text(&ground, json!({ "url": site.url(&format!("/?{to}")) })).await;
            let want = format!(": redirects to {told}; fetch that if you want it\n");
            assert!(shown.ends_with(&want), "{to}: {shown}");
        }
        for (to, told) in [
            ("file:///etc/passwd", "only http and https"),
            ("http://user:x@example.org/", "user name or password"),
            ("http://", "is no URL"),
        ] {
            let why = failure(&ground, json!({ "url": site.url(&format!("/?{to}")) })).await;
            assert!(why.contains("redirects to what") && why.contains(told), "{to}: {why}");
        }
        assert!(other.seen().is_empty(), "it was fetched from");
    });
}

fn statuses() {
    let ground = Ground::new();
    block_on(async {
        let site = Site::new(answer!(|request, stream| {
            let html = "content-type: text/html\r\n";
            match path(&request).as_str() {
                "/404" => {
                    reply(stream, "404 Not Found", html, b"<h1>No such page</h1>").await;
                }
                "/304" => reply(stream, "304 Not Modified", "", b"").await,
                "/301" => reply(stream, "301 Moved Permanently", html, b"<p>somewhere").await,
                _ => {
                    let long = "<p>x".repeat(1_000_000);
                    reply(stream, "500 Oh No", html, long.as_bytes()).await;
                }
            }
        }))
        .await;
        let why = |path: &'static str| failure(&ground, json!({ "url": site.url(path) }));
        let begin = |path: &str| format!("web_fetcher: {} answered ", site.url(path));
        assert_eq!(why("/404").await, begin("/404") + "404 Not Found: # No such page");
        assert_eq!(why("/304").await, begin("/304") + "304 Not Modified");
        assert_eq!(why("/301").await, begin("/301") + "301 Moved Permanently: somewhere");
        let long = why("/500").await;
        assert!(long.starts_with(&(begin("/500") + "500 Internal Server Error: x\n\nx")), "{long}");
        assert!(long.ends_with(" …") && long.len() < 3_000, "{}", long.len());
    });
}

fn breaks_off() {
    let ground = Ground::new();
    block_on(async {
        let site = Site::new(answer!(|request, stream| {
            match path(&request).as_str() {
                "/half" => {
                    let head = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
                    let _ = stream.write_all(head.as_bytes()).await;
                }
                "/garbage" => {
                    let _ = stream.write_all(b"SSH-2.0-x\r\n").await;
                }
                _ => {}
            }
            let _ = stream.shutdown().await;
        }))
        .await;
        let half = failure(&ground, json!({ "url": site.url("/half") })).await;
        assert!(half.contains("broke off after 4 bytes: "), "{half}");
        for path in ["/garbage", "/nothing"] {
            let why = failure(&ground, json!({ "url": site.url(path) })).await;
            assert!(why.contains("cannot be reached: "), "{path}: {why}");
        }
        drop(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let nobody = {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap().port()
        };
        let url = format!("http://127.0.0.1:{nobody}/");
        let why = failure(&ground, json!({ "url": url })).await;
        assert!(why.contains("onnection refused"), "{why}");
    });
}

fn private() {
    let ground = with(reach(PrivateAddresses::Refused));
    block_on(async {
        let site = Site::new(answer!(|_request, stream| {
            reply(stream, "200 OK", "", b"secret").await;
        }))
        .await;
        let port = site.port;
        for host in ["127.0.0.1", "2130706433", "localhost", "[::ffff:127.0.0.1]", "0", "127.1."] {
            let args = json!({ "url": format!("http://{host}:{port}/") });
            let judged = tool("web_fetcher").judge(&args.to_string(), &ground.place).await.unwrap();
            let refusal = judged.refusal.unwrap();
            assert!(refusal.contains("WEB_PRIVATE_ADDRESSES=true"), "{host}: {refusal}");
            // Whoever runs it all the same gets no further.
            assert_eq!(failure(&ground, args).await, *refusal, "{host}");
        }
        assert!(site.seen().is_empty());
    });
}

/// A name is judged where it is used, so that it cannot lead elsewhere in between. The machine's
/// own name is one that no words give away; where it is none, there is nothing to try.
fn rebinding() {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let leads = std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), 80));
    let home = leads.is_ok_and(|mut found| {
        found.any(|address| {
            address.ip().is_loopback() || std::net::UdpSocket::bind((address.ip(), 0)).is_ok()
        })
    });
    let odd = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    if !home || name.contains(odd) || name == "localhost" {
        return;
    }
    let ground = with(reach(PrivateAddresses::Refused));
    let args = json!({ "url": format!("http://{name}:9/") });
    let judged = ground.judge(tool("web_fetcher"), args.clone()).unwrap();
    assert!(judged.refusal.is_none(), "nothing is looked up before somebody was asked");
    let why = block_on(failure(&ground, args));
    assert!(why.contains(" leads to ") && why.contains("WEB_PRIVATE_ADDRESSES=true"), "{why}");
}

fn own() {
    let web = reach(PrivateAddresses::Allowed);
    let ground = with(web.clone());
    block_on(async {
        let site = Site::new(answer!(|_request, stream| {
            reply(stream, "200 OK", "content-type: text/plain\r\n", b"ok").await;
        }))
        .await;
        let port = site.port;
        for host in ["127.0.0.1", "localhost"] {
            assert_eq!(
                text(&ground, json!({ "url": format!("http://{host}:{port}/") })).await,
                "ok\n"
            );
        }
        web.keep_from(port);
        for host in ["127.0.0.1", "localhost", "127.0.0.2", "[::1]"] {
            let why = failure(&ground, json!({ "url": format!("http://{host}:{port}/") })).await;
            assert!(why.contains("this server's own address, which is never"), "{host}: {why}");
        }
        assert_eq!(site.seen().len(), 2);
    });
}

fn proxy() {
    let ground = Ground::new();
    block_on(async {
        let proxy = Site::new(answer!(|_request, stream| {
            reply(stream, "200 OK", "content-type: text/plain\r\n", b"by proxy").await;
        }))
        .await;
        let url = format!("http://user:word@127.0.0.1:{}", proxy.port);
        let proxies = Proxies { https: None, http: Some(url), except: Some("direct.test".into()) };
        let web = Reach::new(&proxies, PrivateAddresses::Refused, Limits::default()).unwrap();
        let place = Place { web, ..(*ground.place).clone() };
        let ground = Ground { place: Arc::new(place), ..ground };
        // Nobody here knows the name; the proxy does.
        let shown = text(&ground, json!({ "url": "http://no-such-name.test/x" })).await;
        assert_eq!(shown, "by proxy\n");
        let seen = proxy.seen();
        assert!(seen[0].starts_with("GET http://no-such-name.test/x HTTP/1.1\r\n"), "{seen:?}");
        for refused in ["http://10.0.0.1/", "http://localhost/", "http://169.254.169.254/"] {
            let why = failure(&ground, json!({ "url": refused })).await;
            assert!(why.contains("WEB_PRIVATE_ADDRESSES=true"), "{refused}: {why}");
        }
        let why = failure(&ground, json!({ "url": "http://direct.test/" })).await;
        assert!(why.contains("cannot be reached") && !why.contains("word"), "{why}");
        assert_eq!(proxy.seen().len(), 1);
    });
}

fn hostile() {
    let ground = Ground::new();
    block_on(async {
        let site = Site::new(answer!(|request, stream| {
            let body = match path(&request).as_str() {
                "/deep" => format!("{}deep", "<div><b>".repeat(100_000)),
                "/quotes" => "<blockquote>x<br>".repeat(100_000),
                _ => format!("<a {}>end", "b='&' ".repeat(300_000)),
            };
            reply(stream, "200 OK", "content-type: text/html\r\n", body.as_bytes()).await;
        }))
        .await;
        for (path, holds) in [("/deep", "deep"), ("/quotes", "> x"), ("/attributes", "end")] {
            let shown = text(&ground, json!({ "url": site.url(path) })).await;
            assert!(shown.contains(holds), "{path}: {shown:.200}");
        }
    });
}

fn judged() {
    let ground = with(reach(PrivateAddresses::Refused));
    let judge = |args: Value| -> Judgement { ground.judge(tool("web_fetcher"), args).unwrap() };
    let get = judge(json!({ "url": "https://example.org/a?b=c" }));
    assert_eq!((get.effect, get.risk), (Effect::Network, Risk::High));
    assert!(!get.safe && !get.confined && !get.sandbox && get.patch.is_none());
    assert_eq!(&*get.reason, "fetches from example.org");
    let words: Vec<&str> = get.command.iter().map(|word| &**word).collect();
    assert_eq!(words, ["web_fetcher", "GET", "https://example.org/a?b=c"]);
    assert_eq!(&*get.covers, "GET requests to https://example.org, for this session");
    for (mode, asks) in [
        (Mode::Suggest, true),
        (Mode::AutoEdit, true),
        (Mode::FullAuto, true),
        (Mode::Bypass, false),
    ] {
        assert_eq!(verdict(&get, mode, &[], true) == Verdict::Ask, asks, "{mode:?}");
    }
    for mode in [Mode::Plan, Mode::DontAsk] {
        assert!(matches!(verdict(&get, mode, &[], true), Verdict::Deny(_)), "{mode:?}");
    }
    let granted =
        |args: Value| verdict(&judge(args), Mode::Suggest, &get.keys, true) == Verdict::Allow;
    assert!(granted(json!({ "url": "https://EXAMPLE.org/other" })));
    for other in [
        json!({ "url": "http://example.org/" }),
        json!({ "url": "https://example.org:8443/" }),
        json!({ "url": "https://www.example.org/" }),
        json!({ "url": "https://example.org./" }),
        json!({ "url": "https://example.org/", "headers": { "Authorization": "x" } }),
        json!({ "url": "https://example.org/", "method": "POST" }),
    ] {
        assert!(!granted(other.clone()), "{other}");
    }
    let url = "https://example.org/";
    let post = json!({ "url": url, "method": "POST", "body": { "a": "\u{202e}b" } });
    let judged = judge(post.clone());
    assert_eq!(&*judged.reason, "sends data to example.org");
    assert_eq!(&**judged.command.last().unwrap(), "{\"a\":\"\u{202e}b\"}", "as it is sent");
    assert_eq!(&*judged.covers, "exactly this request, for this session");
    assert_eq!(judged.keys, judge(post).keys);
    let other = judge(json!({ "url": url, "method": "POST", "body": { "a": "b" } }));
    assert_ne!(judged.keys, other.keys);
    let alike = judge(json!({ "url": "https://аpple.com/" }));
    assert!(alike.reason.starts_with("fetches from xn--pple-43d.com (a name in foreign letters"));
}
