#![allow(clippy::unwrap_used)]

use std::future::poll_fn;
use std::num::NonZeroUsize;

use super::*;
use crate::reply::Reply;
use crate::store::Store;

fn answer(reply: &Reply) -> Answer {
    Answer::json(200, &serde_json::json!("0123456789")).told(reply)
}

/// What a socket that is always flushed would get, and how it ends.
async fn sent(reply: &Reply) -> (Vec<String>, Option<Cut>) {
    let flushes = Arc::new(Flushes::default());
    let mut body = Box::pin(Paced::new(answer(reply), flushes.clone(), None));
    let mut pieces = Vec::new();
    loop {
        let next = poll_fn(|cx| {
            let next = body.as_mut().poll_frame(cx);
            // As the library does after every poll; it wakes a body that waits for it.
            flushes.flushed();
            next
        });
        match next.await {
            Some(Ok(frame)) => {
                let data = frame.into_data().unwrap();
                pieces.push(String::from_utf8(data.to_vec()).unwrap());
            }
            Some(Err(cut)) => return (pieces, Some(cut)),
            None => return (pieces, None),
        }
    }
}

#[tokio::test]
async fn pieces_have_the_size_that_was_told() {
    let reply = Reply { chunk_bytes: NonZeroUsize::new(5), ..Reply::default() };
    let (pieces, cut) = sent(&reply).await;
    assert_eq!(pieces, ["\"0123", "45678", "9\""]);
    assert!(cut.is_none());
}

#[tokio::test]
async fn a_cut_is_exact() {
    for bytes in 0..12 {
        let reply = Reply { cut_bytes: Some(bytes), ..Reply::default() };
        let (pieces, cut) = sent(&reply).await;
        assert_eq!(pieces.concat().len() as u64, bytes);
        assert!(cut.is_some());
    }
    let reply = Reply { cut_bytes: Some(13), ..Reply::default() };
    assert!(sent(&reply).await.1.is_none(), "there are only twelve bytes");
}

#[tokio::test]
async fn nothing_follows_before_a_piece_is_out() {
    let flushes = Arc::new(Flushes::default());
    let reply = Reply { cut_bytes: Some(3), ..Reply::default() };
    let mut body = Box::pin(Paced::new(answer(&reply), flushes.clone(), None));
    let mut next = async || poll_fn(|cx| Poll::Ready(body.as_mut().poll_frame(cx))).await;
    assert!(matches!(next().await, Poll::Ready(Some(Ok(_)))));
    assert!(next().await.is_pending());
    flushes.flushed();
    assert!(matches!(next().await, Poll::Ready(Some(Err(Cut)))));
}

#[tokio::test]
async fn the_delay_is_before_every_write_of_a_trickle() {
    let began = Instant::now();
    let reply = Reply { chunk_bytes: NonZeroUsize::new(4), delay_ms: 5, ..Reply::default() };
    assert_eq!(sent(&reply).await.0.len(), 3);
    // A timer is never early.
    assert!(began.elapsed() >= Duration::from_millis(15), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_whole_body_has_ended_when_its_last_byte_is_handed_over() {
    let store = Store::new(1);
    let flushes = Arc::new(Flushes::default());
    let mut body = Box::pin(Paced::new(answer(&Reply::default()), flushes, Some(store.open())));
    poll_fn(|cx| body.as_mut().poll_frame(cx)).await.unwrap().unwrap();
    assert_eq!(store.state()["open"], 0);
    drop(body);
    assert_eq!(store.state()["aborted"], 0);
}
