//! Compares what a command said with what was decided on it, from the command alone: what a person
//! said is recorded as they said it, and nothing else happens.

use polyloop_session::command::{Send, Target, WaitReply};
use polyloop_session::event::{Event, Stop, Work};
use polyloop_session::policy::Mode;
use polyloop_session::state::OpenWait;
use polyloop_session::wait::{Answer, Ask, Given, Reading, Then};
use polyloop_session::{Command, Delivery, State, Text, WaitRef};

use super::make::spoken;

/// What was met on the way, or what is wrong.
type Met = Result<Vec<&'static str>, String>;

pub fn heard(before: &State, command: &Command, events: &[Event]) -> Met {
    let met = match command {
        Command::Send(send) => sent(before, send, events),
        Command::Cancel { target, by: _ } => cancelled(before, target, events),
        Command::Settle { wait, reply, by: _ } => {
            let open = open_wait(before, *wait).ok_or("[3] settles what is not open")?;
            settled(before, open, reply, events)
        }
        Command::Interrupt { turn, .. } => {
            let running = before.turn().ok_or("[9] interrupts nothing")?;
            ensure!(turn.is_none_or(|id| id == running.id), "[9] interrupts another turn");
            stops(before, events)
        }
        Command::Resume { .. } => begins(before, events, |work| match work {
            Work::Resume { turn, .. } => {
                before.interrupted().is_some_and(|left| left.turn == *turn)
            }
            Work::Message { .. } | Work::Compact { .. } => false,
        }),
        Command::Compact { .. } => {
            begins(before, events, |work| matches!(work, Work::Compact { .. }))
        }
        Command::SetMode { mode, by } => {
            only(events, &[Event::ModeSet { mode: *mode, by: by.clone() }])
        }
        Command::Set { setting, by } => {
            only(events, &[Event::SettingSet { setting: setting.clone(), by: by.clone() }])
        }
        Command::Close { .. } => closed(before, events),
        Command::Reopen { by } if before.is_closed() => {
            only(events, &[Event::SessionReopened { by: by.clone() }])
        }
        Command::Reopen { by: _ } => only(events, &[]),
    };
    met.map_err(|told| format!("{told}: {command:?} gave {events:?}"))
}

fn only(events: &[Event], want: &[Event]) -> Met {
    ensure!(events == want, "[2] other events than {want:?}");
    Ok(Vec::new())
}

fn open_wait(state: &State, wait: WaitRef) -> Option<&OpenWait> {
    let waits = &state.turn()?.waits;
    match wait {
        WaitRef::Presented => waits.values().next(),
        WaitRef::Id(id) => waits.get(&id),
        WaitRef::Item(item) => waits.values().find(|open| open.item == item),
    }
}

/// One turn begins, in a session that is open or is opened for it.
fn begins(before: &State, events: &[Event], fits: impl Fn(&Work) -> bool) -> Met {
    match (before.is_closed(), events) {
        (false, [Event::TurnStarted { work, .. }]) if fits(work) => Ok(Vec::new()),
        (true, [Event::SessionReopened { .. }, Event::TurnStarted { work, .. }]) if fits(work) => {
            Ok(vec!["began in an ended session"])
        }
        _ => Err("[12] another turn begins, or in an ended session".into()),
    }
}

/// The turn stops, unless it does already.
fn stops(before: &State, events: &[Event]) -> Met {
    let stopping = before.turn().is_some_and(|turn| turn.stopping.is_some());
    let fits = match events {
        [] => stopping,
        [Event::TurnStopping { reason: Stop::Interrupted { .. } }] => !stopping,
        _ => false,
    };
    ensure!(fits, "[9] the turn does not just stop");
    Ok(Vec::new())
}

fn sent(before: &State, send: &Send, events: &[Event]) -> Met {
    let said = spoken(&send.content);
    let going = before.turn().filter(|turn| turn.stopping.is_none());
    let mut waits = going.into_iter().flat_map(|turn| turn.waits.values());
    let open = waits.find(|open| match (&open.ask, send.delivery) {
        (Ask::Approval | Ask::Outside { .. }, _) | (_, Delivery::Queue) => false,
        (Ask::Question { .. }, _) => true,
        (Ask::Plan { .. }, delivery) => matches!(delivery, Delivery::Answer { .. }),
    });
    if let Some(open) = open {
        let reply = match (&open.ask, send.delivery) {
            (Ask::Plan { .. }, Delivery::Answer { consents: true }) => {
                WaitReply::Approve { message: Some(said.into()) }
            }
            (Ask::Plan { .. }, _) => {
                WaitReply::Deny { message: Some(said.into()), then: Then::Continue }
            }
            _ => WaitReply::Approve { message: Some(said.into()) },
        };
        let mut met = settled(before, open, &reply, events)?;
        met.push(match open.ask {
            Ask::Plan { .. } => "plan answered by message",
            Ask::Approval | Ask::Outside { .. } => return Err("[3] words give leave".into()),
            Ask::Question { .. } => "question answered by message",
        });
        return Ok(met);
    }
    let (reopened, queued) = match events {
        [Event::SessionReopened { .. }, queued] => (true, queued),
        [queued] => (false, queued),
        _ => return Err("[2] a message is more than one".into()),
    };
    ensure!(reopened == before.is_closed(), "[12] reopened: {reopened}");
    let Event::MessageQueued { content, client_ref, run, .. } = queued else {
        return Err("[2] the message is not queued".into());
    };
    let same = *content == send.content && *client_ref == send.client_ref && *run == send.run;
    ensure!(same, "[2] another message is queued");
    let closed = reopened.then_some("spoke to an ended session");
    Ok(closed.into_iter().chain(run.as_ref().map(|_| "run with options")).collect())
}

fn cancelled(before: &State, target: &Target, events: &[Event]) -> Met {
    let named = |client_ref: &Option<Text>| match target {
        Target::ClientRef(name) => client_ref.as_ref() == Some(name),
        Target::Message(_) | Target::Wait(_) => false,
    };
    match (target, events) {
        (Target::Wait(wanted), [Event::WaitWithdrawn { wait, by: Some(_), .. }]) => {
            ensure!(wait == wanted, "[3] another wait is withdrawn");
            match open_wait(before, WaitRef::Id(*wait)).map(|open| &open.ask) {
                Some(Ask::Approval) => Ok(vec!["cancelled an approval"]),
                Some(Ask::Outside { .. }) => Ok(vec!["outside withdrawn"]),
                Some(Ask::Question { .. }) => Ok(vec!["cancelled a question"]),
                Some(Ask::Plan { .. }) => Ok(vec!["cancelled a plan"]),
                None => Err("[3] withdraws what is not open".into()),
            }
        }
        (Target::Message(_) | Target::ClientRef(_), [Event::MessageDropped { message, .. }]) => {
            let mut fits = before.queue().iter().filter(|queued| {
                named(&queued.client_ref) || *target == Target::Message(queued.id)
            });
            let newest = fits.next_back().is_some_and(|queued| queued.id == *message);
            ensure!(newest, "[2] another message is dropped");
            Ok(vec!["cancelled a message"])
        }
        (Target::Message(_) | Target::ClientRef(_), events) => {
            let turn = before.turn().ok_or("[9] stops nothing")?;
            let began = match &turn.work {
                Work::Message { message } => *target == Target::Message(*message),
                Work::Resume { .. } | Work::Compact { .. } => false,
            };
            ensure!(began || named(&turn.client_ref), "[9] stops another turn");
            stops(before, events)?;
            Ok(vec!["cancelled a turn"])
        }
        (Target::Wait(_), _) => Err("[3] the wait is not withdrawn".into()),
    }
}

fn closed(before: &State, events: &[Event]) -> Met {
    let goes_on = before.turn().is_some_and(|turn| turn.stopping.is_none());
    let Some((Event::SessionClosed { .. }, rest)) = events.split_last() else {
        return Err("[12] does not end the session".into());
    };
    let (drops, stops) = rest.split_at(before.queue().len().min(rest.len()));
    let all = before.queue().iter().zip(drops).all(|(queued, drop)| match drop {
        Event::MessageDropped { message, .. } => *message == queued.id,
        _ => false,
    });
    ensure!(all && drops.len() == before.queue().len(), "[12] something stays in the queue");
    let stopped = matches!(stops, [Event::TurnStopping { reason: Stop::Interrupted { .. } }]);
    ensure!(stopped == goes_on && (stopped || stops.is_empty()), "[12] the turn goes on");
    let met = if goes_on { "ended with a turn" } else { "ended without a turn" };
    Ok([met].into_iter().chain((!drops.is_empty()).then_some("ended with a queue")).collect())
}

fn settled(before: &State, open: &OpenWait, reply: &WaitReply, events: &[Event]) -> Met {
    if let WaitReply::Explain = reply {
        ensure!(matches!(events, [Event::ExplainAsked { .. }]), "[3] more than an explanation");
        let outside = matches!(open.ask, Ask::Outside { .. });
        return Ok(outside.then_some("outside explained").into_iter().collect());
    }
    let Some((Event::WaitSettled { wait, answer, .. }, rest)) = events.split_first() else {
        return Err("[3] nothing is settled".into());
    };
    let item = open_wait(before, WaitRef::Id(*wait)).map(|open| open.item);
    ensure!(item == Some(open.item), "[3] another wait is settled");
    let ends = matches!(reply, WaitReply::Deny { then: Then::EndTurn, .. });
    let approved = matches!(answer, Answer::Approved { .. });
    let plan = matches!(open.ask, Ask::Plan { .. });
    let goes_back = plan && approved && before.mode() == Mode::Plan;
    let fits = match rest {
        [] => !ends && !goes_back,
        [Event::TurnStopping { reason: Stop::Denied { wait: denied } }] => ends && denied == wait,
        [Event::ModeSet { .. }] => goes_back,
        _ => false,
    };
    ensure!(fits, "[11] what follows the answer is wrong");
    answered(before, &open.ask, reply, answer)
}

/// The answer is what was said, and to a plan or question nothing else than that.
fn answered(before: &State, ask: &Ask, reply: &WaitReply, answer: &Answer) -> Met {
    let words = |text: &Option<Text>| {
        let text = text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        text.map(Text::from)
    };
    let (fits, met) = match (ask, reply, answer) {
        (_, WaitReply::Deny { message, then }, Answer::Denied { message: told, then: next }) => {
            let heard = words(message).is_none_or(|message| message == *told);
            let met = match ask {
                Ask::Approval => "approval denied",
                Ask::Outside { .. } if *then == Then::EndTurn => "outside denied, turn ended",
                Ask::Outside { .. } => "outside denied",
                Ask::Question { .. } => "question denied",
                Ask::Plan { .. } => "plan sent back",
            };
            (heard && then == next, met)
        }
        (Ask::Question { .. }, WaitReply::Answer { answers }, Answer::Answered { .. }) => {
            (filled(answers, answer), "question answered by form")
        }
        (
            Ask::Question { .. },
            WaitReply::Approve { message: Some(text) },
            Answer::Answered { said: Some(said), .. },
        ) => (said == text, "question answered with words"),
        (Ask::Plan { .. }, reply, Answer::Approved { message, .. }) => {
            let heard = match reply {
                WaitReply::Approve { message: text } => words(text) == *message,
                WaitReply::ApproveAlways => message.is_none(),
                _ => false,
            };
            let met = match before.mode() {
                Mode::Plan => "plan approved in plan mode",
                _ => "plan approved outside plan mode",
            };
            (heard, met)
        }
        (
            Ask::Approval | Ask::Outside { .. },
            WaitReply::Approve { message: text },
            Answer::Approved { message, grants, always: false, instead: None },
        ) => {
            let met = if *ask == Ask::Approval { "approved once" } else { "outside approved" };
            (words(text) == *message && grants.is_empty(), met)
        }
        (
            Ask::Approval | Ask::Outside { .. },
            WaitReply::ApproveAlways,
            Answer::Approved { always: true, instead: None, .. },
        ) => {
            let met =
                if *ask == Ask::Approval { "approved always" } else { "outside approved always" };
            (true, met)
        }
        (
            Ask::Approval,
            WaitReply::ApproveInstead { args, always: said, .. },
            Answer::Approved { instead: Some(instead), always, .. },
        ) => (instead.args == *args && said == always, "approved instead"),
        _ => (false, ""),
    };
    ensure!(fits, "[11] {ask:?} was answered otherwise than was said");
    Ok(vec![met])
}

/// Every word of a form stands in the answer to its question, whatever its case.
fn filled(form: &Reading, answer: &Answer) -> bool {
    let Answer::Answered { answers, said: None } = answer else { return false };
    let holds = |given: &Given, word: &str| {
        let chosen = given.selected.iter().any(|label| label.to_lowercase() == word.to_lowercase());
        chosen || given.text.as_ref().is_some_and(|text| text.contains(word))
    };
    form.iter().all(|(at, words)| {
        let given = usize::try_from(*at).ok().and_then(|at| answers.get(at));
        let mut words = words.iter().map(|word| word.trim()).filter(|word| !word.is_empty());
        given.is_some_and(|given| words.all(|word| holds(given, word)))
    })
}
