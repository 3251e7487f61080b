//! A conversation with everything in it: streaming, two calls in one answer, an explanation, an
//! approval, denials of both kinds, a queued message, an interruption, a compaction.

use polyloop_session::command::WaitReply;
use polyloop_session::event::Work;
use polyloop_session::wait::Then;
use polyloop_session::{Command, Event};

use super::client::{Broke, Client};
use super::make::{approve, deny, interrupt, who};
use super::model::adding;

/// The file that the story's patches add their names to.
pub const COUNTED: &str = "counted.txt";
pub const NAMES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

/// The last words of an answer that never ends.
const HANGING: &str = "and then I hang";

fn patch(name: &str) -> String {
    format!("tool: apply_patch {}", adding(COUNTED, name))
}

/// `alpha` and `gamma` run, `beta` and `delta` are denied.
pub async fn tell(client: &mut Client) -> Result<(), Broke> {
    client.send("think: hm\nsay: hällo\nstream: 4 8 1").await?;
    client.until_idle().await?;

    let [alpha, beta, gamma, delta] = NAMES.map(patch);
    client.send(&format!("say: two edits\n{alpha}\n&{beta}\nsay: one of two")).await?;
    client.until("a request", |c| c.wait().is_some()).await?;
    client.settle(WaitReply::Explain).await?;
    client.until("an explanation", Client::can_decide).await?;
    client.send(&format!("think: well\nsay: {HANGING}\nfail: hang")).await?;
    let first = client.wait();
    client.settle(approve()).await?;
    client.until("another request", |c| c.wait().is_some() && c.wait() != first).await?;
    client.settle(deny(Then::Continue)).await?;
    client.until("the words before the silence", |c| c.was_shown(HANGING)).await?;
    client.command(interrupt()).await?;
    client.until_idle().await?;

    client.send(&format!("{gamma}\n&{delta}\nsay: never said")).await?;
    client.until("a third request", |c| c.wait().is_some()).await?;
    let third = client.wait();
    client.settle(approve()).await?;
    client.until("a fourth request", |c| c.wait().is_some() && c.wait() != third).await?;
    client.settle(deny(Then::EndTurn)).await?;
    client.until_idle().await?;

    client.command(Command::Compact { by: who() }).await?;
    client.until_idle().await?;
    client.send("say: the end").await?;
    client.until_idle().await
}

/// Brings a session to rest that the story left somewhere in its middle: open requests are
/// approved, an answer that hangs is interrupted.
pub async fn settle_down(client: &mut Client) -> Result<(), Broke> {
    loop {
        let what = "rest, a request or silence";
        client.until(what, |c| c.is_idle() || c.can_decide() || is_silent(c)).await?;
        if client.is_idle() {
            return Ok(());
        }
        match client.can_decide() {
            true => client.settle(approve()).await?,
            false => client.command(interrupt()).await?,
        }
    }
}

/// The answer that hangs has said all it will; when it is taken up again, it says nothing at all.
fn is_silent(client: &Client) -> bool {
    let Some(turn) = client.state.turn().filter(|turn| !turn.calls.is_empty()) else {
        return false;
    };
    match client.entries.last().map(|entry| &entry.event) {
        Some(Event::ItemCompleted { text, .. }) => &**text == HANGING,
        Some(Event::CallStarted { .. }) => {
            let resumed = matches!(turn.work, Work::Resume { .. });
            resumed && is_about_to_hang(client) && client.texts().last() == Some(&HANGING)
        }
        _ => false,
    }
}

/// Whether the last message that was taken up is the one whose answer hangs.
fn is_about_to_hang(client: &Client) -> bool {
    let last = client.entries.iter().rev().find_map(|entry| match &entry.event {
        Event::TurnStarted { work: Work::Message { message }, .. } => Some(message.0),
        _ => None,
    });
    let message = client.entries.iter().find(|entry| Some(entry.seq) == last);
    message.is_some_and(|entry| match &entry.event {
        Event::MessageQueued { content, .. } => {
            content.iter().any(|part| part.shown().contains(HANGING))
        }
        _ => false,
    })
}
