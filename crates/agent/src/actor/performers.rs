//! What a session has under way, polled by the session's own task.
//!
//! There are few at a time, so whenever one of them has something all are asked: that is cheaper
//! than to know which of them it was.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, Stream};

use crate::perform::Performed;

#[derive(Default)]
pub(super) struct Performers {
    all: Vec<BoxStream<'static, Performed>>,
    /// Who is asked first, so that nobody who has much to say keeps the others from saying it.
    first: usize,
}

impl Performers {
    pub(super) fn push(&mut self, performer: BoxStream<'static, Performed>) {
        self.all.push(performer);
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Stream for Performers {
    type Item = Performed;

    /// The end when nothing is under way.
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Performed>> {
        let mut asked = 0;
        while asked < self.all.len() {
            let at = self.first % self.all.len();
            match self.all[at].poll_next_unpin(cx) {
                Poll::Ready(Some(performed)) => {
                    self.first = at + 1;
                    return Poll::Ready(Some(performed));
                }
                // Another is in its place.
                Poll::Ready(None) => drop(self.all.swap_remove(at)),
                Poll::Pending => {
                    self.first = at + 1;
                    asked += 1;
                }
            }
        }
        match self.all.is_empty() {
            true => Poll::Ready(None),
            false => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, stream};
    use polyloop_session::{ItemId, Seq};

    use super::*;

    fn said(item: u64) -> Performed {
        Performed::Output { item: ItemId(Seq(item)), text: "x".into() }
    }

    fn who(performed: &Performed) -> u64 {
        match performed {
            Performed::Output { item, .. } => item.0.0,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everybody_has_a_turn_and_who_has_ended_is_forgotten() {
        let mut performers = Performers::default();
        assert!(performers.next().now_or_never().flatten().is_none(), "nothing is under way");
        performers.push(stream::pending().boxed());
        for (item, times) in [(1, 9), (2, 2), (3, 9)] {
            performers.push(stream::iter((0..times).map(move |_| said(item))).boxed());
        }
        let mut heard = Vec::new();
        while let Some(performed) = performers.next().now_or_never() {
            heard.extend(performed.as_ref().map(who));
        }
        assert_eq!(heard.len(), 20, "{heard:?}");
        let of = |item| heard.iter().filter(|one| **one == item).count();
        assert_eq!((of(1), of(2), of(3)), (9, 2, 9));
        let last_of_two = heard.iter().rposition(|one| *one == 2).unwrap();
        assert!(last_of_two < 9, "{heard:?}");
        assert_eq!(performers.len(), 1, "one has said nothing yet");
    }
}
