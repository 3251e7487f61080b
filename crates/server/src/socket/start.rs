//! Begins sessions as clients want them.

use polyloop_agent::actor::CommandError;
use polyloop_agent::sessions::Handle;
use polyloop_dialects::{Complaint, Dialect, Reply, SessionInit, Start};
use polyloop_session::event::{Setting, Settings};
use polyloop_session::policy::Mode;
use polyloop_session::wait::Who;
use polyloop_session::{Command, Refusal, SessionId, State, decide};

use super::attach::{Told, complaint};
use super::read::{Gone, Greeting, Reader};
use crate::view::DialectView;

impl Reader {
    /// Begins a session as the client wants it, or opens it again.
    pub(super) async fn start(
        &mut self,
        dialect: &'static dyn Dialect,
        session: &SessionId,
        start: Start,
    ) -> Result<(), Gone> {
        if let Some(complaint) = self.too_many(session) {
            return self.reply(dialect, Some(session), Reply::Complaint(complaint)).await;
        }
        let settings = match self.app.settings(&start) {
            Ok(settings) => settings,
            Err(refusal) => return self.not_started(dialect, session, &refusal).await,
        };
        let handle = match self.attachments.get(session) {
            Some(attachment) => attachment.handle.clone(),
            None => {
                let by = self.client.who.clone();
                self.app.sessions.handle_with(session.clone(), by, settings.clone())
            }
        };
        match self.adjust(&handle, &start, &settings).await {
            Ok(()) => {}
            Err(CommandError::Refused(refusal)) => {
                return self.not_started(dialect, session, &refusal).await;
            }
            Err(error) => {
                let reply = Reply::Complaint(complaint(&error));
                return self.reply(dialect, Some(session), reply).await;
            }
        }
        self.take_detached();
        if self.is_attached(session) {
            self.greet(dialect, session).await?;
            return self.reply(dialect, Some(session), Reply::SessionActive).await;
        }
        self.greeting = Greeting::InitAndActive;
        self.attach_by(dialect, handle, Told::NotYet).await?;
        self.greeting = Greeting::None;
        Ok(())
    }

    async fn not_started(
        &mut self,
        dialect: &'static dyn Dialect,
        session: &SessionId,
        refusal: &Refusal,
    ) -> Result<(), Gone> {
        let kit = self.app.sessions.kit();
        let init = SessionInit {
            model: kit.settings.model.clone(),
            cwd: kit.settings.cwd.clone(),
            tools: self.app.tools.clone(),
            mode: kit.settings.mode,
            mode_word: self.words.word(kit.settings.mode),
            agent: kit.settings.agent.unwrap_or_default(),
            title: None,
            todos: Vec::new(),
            error: Some(Complaint::from(refusal)),
        };
        self.reply(dialect, Some(session), Reply::SessionInit(Box::new(init))).await
    }

    /// Makes a session that was there before what the client asked for.
    async fn adjust(
        &self,
        handle: &Handle<DialectView>,
        start: &Start,
        wanted: &Settings,
    ) -> Result<(), CommandError> {
        let by = || self.client.who.clone();
        let look = handle.look().await?;
        if look.closed {
            handle.command(Command::Reopen { by: by() }).await?;
        }
        if start.mode.is_some_and(|mode| mode != look.mode) {
            handle.command(Command::SetMode { mode: wanted.mode, by: by() }).await?;
        }
        let mut changed = Vec::new();
        if start.calls_max.is_some() && wanted.calls_max != look.settings.calls_max {
            changed.push(Setting::CallsMax { calls_max: wanted.calls_max });
        }
        if let Some(json) =
            start.metadata.clone().filter(|m| look.settings.metadata != Some(m.clone()))
        {
            changed.push(Setting::Metadata { json });
        }
        if let Some(agent) = start.agent.filter(|agent| look.settings.agent != Some(*agent)) {
            changed.push(Setting::Agent { agent });
        }
        for setting in changed {
            handle.command(Command::Set { setting, by: by() }).await?;
        }
        Ok(())
    }
}

impl crate::app::App {
    /// The settings of a session that is made as asked.
    pub fn settings(&self, start: &Start) -> Result<Settings, Refusal> {
        let kit = self.sessions.kit();
        let mut settings = kit.settings.clone();
        if let Some(mode) = start.mode {
            if mode == Mode::Bypass && !kit.limits.bypass_allowed {
                return Err(Refusal::BypassNotAllowed);
            }
            settings.mode = mode;
        }
        if let Some(model) = &start.model {
            let found = kit.find_model(model)?;
            settings.model = model.clone();
            settings.tokens_max = Some(found.card().tokens_max);
        }
        if let Some(cwd) = &start.cwd {
            let folder = kit.places.folder(cwd).map_err(|why| Refusal::BadSetting { why })?;
            settings.cwd = folder.display().to_string().into();
        }
        settings.calls_max = start.calls_max.unwrap_or(settings.calls_max);
        settings.metadata = start.metadata.clone();
        settings.title = start.title.clone();
        settings.agent = start.agent.or(settings.agent);
        // The same rules as for changing them later.
        let by = Who::via("settings");
        let checks = [
            settings.title.clone().map(|title| Setting::Title { title }),
            settings.metadata.clone().map(|json| Setting::Metadata { json }),
            settings.agent.map(|agent| Setting::Agent { agent }),
            Some(Setting::CallsMax { calls_max: settings.calls_max }),
        ];
        for setting in checks.into_iter().flatten() {
            let command = Command::Set { setting, by: by.clone() };
            decide(&State::default(), command, &kit.limits)?;
        }
        Ok(settings)
    }
}
