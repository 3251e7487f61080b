//! The names under which counts are told, and what each tells. `docs/OPERATIONS.md` says more.

use prometheus_client::registry::{Metric, Registry};

use super::Meter;
use super::peers::OfPeers;

impl Meter {
    /// Gives every count to what tells of them.
    pub fn register(&self, registry: &mut Registry) {
        let mut tell = Tell(registry);
        tell.of("sessions_awake", "Sessions in memory that run here", &self.sessions);
        tell.of("sessions_opened", "Sessions opened: new ones, and ones that slept", &self.opened);
        tell.of(
            "session_store_failures",
            "Sessions that ended because their store failed",
            &self.store_failures,
        );
        tell.of("turns", "Turns that ended, by outcome", &self.turns);
        tell.of(
            "turns_running",
            "Turns under way, also those that wait for a person",
            &self.turns_running,
        );
        tell.of(
            "turn_seconds",
            "Time from a turn's start to its end, waits for people included",
            &self.turn_seconds,
        );
        tell.of("messages_queued", "Messages that wait for their turn", &self.queued_messages);
        tell.of(
            "model_calls",
            "Model calls that ended, by status: ok, stopped, lost, refused_here, or the fault",
            &self.calls,
        );
        tell.of(
            "model_calls_running",
            "Model calls under way, without those that wait to begin",
            &self.calls_running,
        );
        tell.of(
            "model_call_seconds",
            "Time from when a call was let through to its end",
            &self.call_seconds,
        );
        tell.of(
            "model_first_token_seconds",
            "Time from when a call was let through to its first text, reasoning or argument",
            &self.first_seconds,
        );
        tell.of("model_tokens", "Tokens as providers counted them, by direction", &self.tokens);
        tell.of("model_cost_usd", "What calls cost, of models whose price is known", &self.cost);
        tell.of("tool_calls", "Tool calls that ended, by outcome", &self.tools);
        tell.of(
            "tools_running",
            "Tools under way, without those that wait to begin",
            &self.tools_running,
        );
        tell.of("tool_seconds", "Time that a tool ran", &self.tool_seconds);
        tell.of("waits_open", "What people are asked just now, by kind", &self.waits);
        tell.of("decisions", "What people decided", &self.decisions);
        tell.of(
            "compactions",
            "Conversations made shorter: by a summary, or by trimming tool outputs",
            &self.compactions,
        );
        tell.of(
            "log_append_seconds",
            "Time to write a batch of entries, by the flush that is to follow",
            &self.append_seconds,
        );
        tell.of(
            "log_flush_seconds",
            "Time of one flush of a file to the disk",
            &self.flush_seconds,
        );
        tell.of("refused", "What was refused, by the limit that was reached", &self.refused.0);
        let OfPeers { owned, followed, taken_over, questions } = &self.of_peers;
        tell.of("sessions_owned", "Sessions of a shared store that this server runs", owned);
        tell.of(
            "sessions_followed",
            "Sessions that another server runs and that are shown here",
            followed,
        );
        tell.of(
            "sessions_taken_over",
            "Sessions taken over from other servers, by why they could be",
            taken_over,
        );
        tell.of("peer_questions", "Questions to other servers, by outcome", questions);
    }
}

struct Tell<'a>(&'a mut Registry);

impl Tell<'_> {
    fn of(&mut self, name: &str, help: &str, counts: &(impl Metric + Clone)) {
        self.0.register(name, help, counts.clone());
    }
}
