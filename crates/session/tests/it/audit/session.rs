//! The session as a whole: its settings, its mode, and whether it was ended.

use polyloop_session::Text;
use polyloop_session::event::{Agent, RunOptions, Setting, Settings};
use polyloop_session::policy::Mode;
use polyloop_session::state::CALLS_PER_TURN_MAX;

use super::Checked;

#[derive(Default)]
pub struct Session {
    pub mode: Mode,
    pub closed: bool,
    pub settings: Option<Settings>,
    /// The window of the model that nobody chose.
    pub tokens_max: u64,
    before_plan: Mode,
    /// The mode that a plan which was approved goes back to, before its batch ends.
    owed: Option<Mode>,
}

impl Session {
    pub fn created(&mut self, settings: &Settings) {
        self.mode = settings.mode;
        self.settings = Some(settings.clone());
    }

    pub fn mode_set(&mut self, mode: Mode) -> Checked {
        if let Some(owed) = self.owed.take() {
            // A mode that is not allowed any more gives way to the one that asks most.
            let fits = mode == owed || owed == Mode::Bypass && mode == Mode::Suggest;
            ensure!(fits, "[11] after the plan the mode is {mode:?}, not {owed:?}");
        }
        if mode == Mode::Plan && self.mode != Mode::Plan {
            self.before_plan = self.mode;
        }
        self.mode = mode;
        if let Some(settings) = &mut self.settings {
            settings.mode = mode;
        }
        Ok(())
    }

    pub fn plan_approved(&mut self) {
        self.owed = (self.mode == Mode::Plan).then_some(self.before_plan);
    }

    /// All events of one batch are in.
    pub fn batch_ended(&self) -> Checked {
        ensure!(self.owed.is_none(), "[11] a plan was approved, and the mode is plan still");
        Ok(())
    }

    /// A crash may cut a batch.
    pub fn crashed(&mut self) {
        self.owed = None;
    }

    pub fn set(&mut self, setting: &Setting) -> Checked {
        let Some(settings) = &mut self.settings else { return Ok(()) };
        match setting.clone() {
            Setting::Model { model, tokens_max } => {
                (settings.model, settings.tokens_max) = (model, Some(tokens_max));
            }
            Setting::Agent { agent } => {
                ensure!(agent == Agent::React, "[13] an agent that is not there");
                settings.agent = Some(agent);
            }
            Setting::Title { title } => settings.title = Some(title),
            Setting::CallsMax { calls_max } => {
                ensure!(calls_max > 0, "[13] a turn may make no call at all");
                settings.calls_max = calls_max;
            }
            Setting::Metadata { json } => settings.metadata = Some(json),
        }
        Ok(())
    }

    pub fn ended(&mut self, turn_goes_on: bool, queued: usize) -> Checked {
        ensure!(!self.closed, "[12] the session is ended twice");
        ensure!(!turn_goes_on, "[12] the session is ended and its turn goes on");
        ensure!(queued == 0, "[12] the session is ended with {queued} messages in the queue");
        self.closed = true;
        Ok(())
    }

    pub fn reopened(&mut self) -> Checked {
        ensure!(self.closed, "[12] reopened, and was not ended");
        self.closed = false;
        Ok(())
    }

    /// Whether anything may begin.
    pub fn is_open(&self) -> Checked {
        ensure!(!self.closed, "[12] something begins in a session that was ended");
        Ok(())
    }

    /// The agent and the folder in force for a turn, as its start tells them.
    pub fn in_force(&self, run: Option<&RunOptions>) -> (Option<Agent>, Option<Text>) {
        let settings = self.settings.as_ref();
        let agent = run.and_then(|run| run.agent).or(settings.and_then(|s| s.agent));
        let own = run.and_then(|run| run.cwd.clone());
        (agent.filter(|agent| *agent != Agent::React), own.or(settings.map(|s| s.cwd.clone())))
    }

    pub fn calls_max(&self, run: Option<&RunOptions>) -> u32 {
        let of_session = self.settings.as_ref().map_or(CALLS_PER_TURN_MAX, |s| s.calls_max);
        run.and_then(|run| run.calls_max).unwrap_or(of_session)
    }

    pub fn asks(&self, model: &str, tokens_max: u64) -> Checked {
        let settings = self.settings.as_ref();
        let wanted = settings.map_or("", |s| &*s.model);
        ensure!(model == wanted, "[13] asks {model}, the session's model is {wanted}");
        let window = settings.and_then(|s| s.tokens_max).unwrap_or(self.tokens_max);
        ensure!(tokens_max == window, "[13] a window of {tokens_max}, not {window}");
        Ok(())
    }
}
