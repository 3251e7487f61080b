//! What is said of each answer, and of each port.

use std::collections::HashMap;
use std::net::TcpListener;

use super::super::report::Status;
use super::*;
use crate::config::{Config, ServeArgs};

fn model(settings: &[(&str, &str)]) -> Model {
    let given: HashMap<&str, &str> = settings.iter().copied().collect();
    let environment = given.into_iter().map(|(name, value)| (name.into(), value.into()));
    let start = tempfile::tempdir().unwrap();
    Config::examine(&ServeArgs::default(), environment, start.path()).parts.model.unwrap()
}

fn openai() -> Model {
    model(&[("MODEL", "gpt-4o"), ("OPENAI_API_KEY", "sk-secret")])
}

fn answer(status: u16, models: &[&str]) -> Reach {
    Reach::Answered { status, models: models.iter().map(|&name| name.to_owned()).collect() }
}

fn lines(model: &Model, reach: Reach) -> Vec<(Status, String)> {
    told(model, reach).into_iter().map(|check| (check.status, check.text)).collect()
}

#[test]
fn every_status_has_its_meaning() {
    let url = "https://api.openai.com/v1";
    let cases = [
        (401, Status::Fail, format!("{url} refuses OPENAI_API_KEY (401); set one that it accepts")),
        (403, Status::Fail, format!("{url} refuses OPENAI_API_KEY (403); set one that it accepts")),
        (
            404,
            Status::Warn,
            format!(
                "{url} answers, but has no list of models there (404); check that \
                 OPENAI_BASE_URL is with its version, such as …/v1"
            ),
        ),
        (429, Status::Warn, format!("{url} has had too many requests (429); wait")),
        (503, Status::Warn, format!("{url} has trouble of its own (503); try again later")),
        (
            302,
            Status::Warn,
            format!("{url} leads elsewhere (302), which is not followed; check OPENAI_BASE_URL"),
        ),
        (418, Status::Warn, format!("{url} answers with 418; check OPENAI_BASE_URL")),
    ];
    for (status, expected, text) in cases {
        assert_eq!(lines(&openai(), answer(status, &[])), [(expected, text)]);
    }
    assert_eq!(told(&openai(), answer(407, &[]))[0].status, Status::Fail);

    let home = model(&[("MODEL", "llama"), ("OPENAI_BASE_URL", "http://localhost:1/v1")]);
    let expected = "http://localhost:1/v1 wants a key (401); set OPENAI_API_KEY";
    assert_eq!(lines(&home, answer(401, &[])), [(Status::Fail, expected.to_owned())]);
    let google = model(&[("MODEL", "gemini-2.5-pro"), ("GOOGLE_API_KEY", "AIza")]);
    assert_eq!(told(&google, answer(400, &[]))[0].status, Status::Fail, "a key that is unknown");
    assert_eq!(told(&openai(), answer(400, &[]))[0].status, Status::Warn);
}

#[test]
fn a_model_is_looked_for_in_the_list() {
    let url = "https://api.openai.com/v1";
    let ok = (Status::Ok, format!("{url} answers (200)"));
    let list = |names: &[&str]| {
        let [first, second] = <[_; 2]>::try_from(lines(&openai(), answer(200, names))).unwrap();
        assert_eq!(first, ok);
        second
    };
    let one_of = |count| (Status::Ok, format!("gpt-4o is one of {count} models"));
    assert_eq!(list(&["a", "gpt-4o"]), one_of(2));
    assert_eq!(list(&["gpt-4o-2024-08-06"]), one_of(1));
    assert_eq!(list(&["gpt-4o:latest"]), one_of(1));
    let names = ["z", "gpt-4o-mini", "gpt-5", "a", "b", "c", "gpt-4.1"];
    let expected = "gpt-4o is not among the 7 models there; set MODEL, such as gpt-4o-mini, \
                    gpt-4.1, gpt-5, a, b";
    assert_eq!(list(&names), (Status::Warn, expected.to_owned()));
    assert_eq!(list(&[]).0, Status::Warn);
}

#[test]
fn what_cannot_be_reached_is_told() {
    let why = "api.openai.com cannot be reached (connection refused)".to_owned();
    let expected = format!("{why}; check OPENAI_BASE_URL, the network and the proxy");
    assert_eq!(lines(&openai(), Reach::Failed(why)), [(Status::Fail, expected)]);
    assert_eq!(told(&openai(), Reach::NoKey)[0].status, Status::Warn);
    let offline = model(&[("PROVIDER", "offline")]);
    assert_eq!(told(&offline, Reach::NotNeeded)[0].status, Status::Ok);
}

#[test]
fn a_port_is_free_or_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    // Whoever listens there says nothing at all.
    assert_eq!(
        port(addr),
        Check::fail(
            "port",
            format!("another program listens on {addr}; choose another with --port")
        )
    );
    let any = port("127.0.0.1:0".parse().unwrap());
    assert_eq!(any, Check::ok("port", "any free one of 127.0.0.1"));
    // An address for documentation, which no machine has.
    assert_eq!(port("192.0.2.1:8080".parse().unwrap()).status, Status::Fail);
}

#[test]
fn a_server_like_this_one_is_known() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 4096];
        let length = stream.read(&mut asked).unwrap();
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{\"status\":\"ok\"}";
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8_lossy(&asked[..length]).into_owned()
    });
    assert_eq!(port(addr).status, Status::Warn);
    assert!(answering.join().unwrap().starts_with("GET /healthz "));
}
