//! Both ways to a subscriber, through its door and through its queue, are one way in one order.

use super::*;

/// What a subscriber got, by whichever way.
type Got = Arc<Mutex<Vec<u64>>>;

/// Opens and shuts as it is told.
struct Gate {
    open: Arc<AtomicBool>,
    got: Got,
}

impl Door<u64> for Gate {
    fn pass(&mut self, bundle: &u64) -> Passed {
        if !self.open.load(Ordering::SeqCst) {
            return Passed::Shut;
        }
        self.got.lock().unwrap().push(*bundle);
        Passed::Through
    }
}

struct Watched {
    subscriber: Subscriber<u64>,
    subscription: Subscription<u64>,
    open: Arc<AtomicBool>,
    got: Got,
}

fn watched() -> Watched {
    let (power, presence) = (Power::Watch, Presence::Client);
    let (subscriber, mut subscription) = Subscriber::new(power, presence, Arc::default(), |_| 1);
    let (open, got) = (Arc::new(AtomicBool::new(true)), Got::default());
    subscription.open(Box::new(Gate { open: open.clone(), got: got.clone() }));
    Watched { subscriber, subscription, open, got }
}

impl Watched {
    fn got(&self) -> Vec<u64> {
        self.got.lock().unwrap().clone()
    }

    fn take(&mut self, most: usize) {
        let mut left = most;
        self.subscription.take(|bundle| {
            self.got.lock().unwrap().push(bundle);
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
}

#[test]
fn a_door_takes_nothing_before_what_waits() {
    let mut watched = watched();
    assert!(watched.subscriber.send(&1, 1));
    assert_eq!(watched.got(), [1], "it goes through an open door at once");
    watched.open.store(false, Ordering::SeqCst);
    assert!(watched.subscriber.send(&2, 1));
    watched.open.store(true, Ordering::SeqCst);
    assert!(watched.subscriber.send(&3, 1));
    assert_eq!(watched.got(), [1], "what comes behind one that waits, waits");
    watched.take(1);
    assert!(watched.subscriber.send(&4, 1));
    watched.take(9);
    assert!(watched.subscriber.send(&5, 1));
    assert_eq!(watched.got(), [1, 2, 3, 4, 5]);
    assert_eq!(watched.subscriber.queued().bytes(), 0);
}

#[test]
fn who_has_left_is_sent_nothing() {
    let Watched { subscriber, subscription, got, .. } = watched();
    drop(subscription);
    assert!(!subscriber.send(&1, 1));
    assert!(got.lock().unwrap().is_empty());
}

#[test]
fn a_shut_door_leaves_what_fits_into_the_queue() {
    let mut watched = watched();
    watched.open.store(false, Ordering::SeqCst);
    assert!(watched.subscriber.send(&1, QUEUED_BYTES_MAX));
    assert!(!watched.subscriber.send(&2, 1));
    watched.open.store(true, Ordering::SeqCst);
    drop(watched.subscriber);
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(watched.subscription.poll_waiting(&mut cx), Poll::Ready(Ok(())));
    watched.subscription.take(|_| ControlFlow::Continue(()));
    let ending = watched.subscription.poll_waiting(&mut cx);
    assert_eq!(ending, Poll::Ready(Err(Ending::Behind)));
}

/// What is being taken comes first, however long that takes.
#[test]
fn a_door_is_shut_while_something_is_taken() {
    let Watched { subscriber, mut subscription, open, got } = watched();
    open.store(false, Ordering::SeqCst);
    assert!(subscriber.send(&1, 1));
    open.store(true, Ordering::SeqCst);
    let (sent, was_sent) = std::sync::mpsc::channel();
    let mut sending = None;
    subscription.take(|number| {
        let (subscriber, sent) = (&subscriber.shared, sent.clone());
        let subscriber = Subscriber {
            shared: subscriber.clone(),
            power: Power::Watch,
            presence: Presence::Client,
        };
        sending = Some(std::thread::spawn(move || {
            assert!(subscriber.send(&2, 1));
            sent.send(())
        }));
        // It is given time to come between.
        assert!(was_sent.recv_timeout(std::time::Duration::from_millis(200)).is_err());
        got.lock().unwrap().push(number);
        ControlFlow::Continue(())
    });
    sending.unwrap().join().unwrap().unwrap();
    assert_eq!(*got.lock().unwrap(), [1, 2]);
}

/// Sender and taker on two threads, with a door that opens and shuts under them.
#[test]
fn nothing_overtakes_anything() {
    const ALL: u64 = 20_000;
    let Watched { subscriber, mut subscription, open, got } = watched();
    let sending = std::thread::spawn(move || {
        for number in 0..ALL {
            open.store(number % 7 < 4, Ordering::SeqCst);
            while subscriber.shared.lock().waiting.len() > 64 {
                std::thread::yield_now();
            }
            assert!(subscriber.send(&number, 1));
        }
    });
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        match subscription.poll_waiting(&mut cx) {
            Poll::Ready(Ok(())) => subscription.take(|number| {
                got.lock().unwrap().push(number);
                ControlFlow::Continue(())
            }),
            Poll::Ready(Err(_)) => break,
            Poll::Pending => std::thread::yield_now(),
        }
    }
    sending.join().unwrap();
    let got = got.lock().unwrap();
    assert!(got.iter().copied().eq(0..ALL), "{} came, or not in order", got.len());
}
