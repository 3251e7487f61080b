//! Runs: a connection's requests are done in order, one run at a time.

use polyloop_agent::actor::{CommandError, Recorded};
use polyloop_dialects::{Ask, Asked, Complaint, Dialect, RunAsk};
use polyloop_session::{Command, SessionId};

use super::attach::complaint;
use super::outgoing::{Outgoing, RunId};
use super::read::{Gone, OwnRun, Reader};

/// Requests that may wait for a run to end.
const WAITING_REQUESTS_MAX: usize = 64;

impl Reader {
    /// A client's requests are done one after the other, and a run takes its time; what must not
    /// wait for it does not.
    pub(super) async fn in_order(
        &mut self,
        dialect: &'static dyn Dialect,
        asked: Asked,
    ) -> Result<(), Gone> {
        let at_once = matches!(asked.ask, Ask::Ping { .. } | Ask::Command(_));
        if self.run.is_none() || at_once {
            return self.do_in_order(dialect, asked).await;
        }
        if self.waiting.len() >= WAITING_REQUESTS_MAX {
            let error =
                format!("{WAITING_REQUESTS_MAX} requests are waiting for the run to end already");
            return self.complain(dialect, Complaint::new(&error, error.clone(), "busy")).await;
        }
        self.waiting.push_back(asked);
        Ok(())
    }

    async fn do_in_order(
        &mut self,
        dialect: &'static dyn Dialect,
        asked: Asked,
    ) -> Result<(), Gone> {
        self.about = asked.about.clone();
        self.request = match &asked.ask {
            Ask::Run(run) => run.send.client_ref.clone(),
            _ => None,
        };
        if let Some(complaint) = self.refused_anyway(&asked.ask) {
            return self.complain(dialect, complaint).await;
        }
        match (asked.ask, asked.session) {
            (Ask::Run(run), session) => self.begin_run(dialect, session, *run).await,
            (Ask::Command(command), Some(session)) => {
                let handle = self.attachments.get(&session).map(|a| a.handle.clone());
                let Some(handle) = handle else { return Ok(()) };
                match handle.command(command).await {
                    Ok(_) | Err(CommandError::Failed(_)) => Ok(()),
                    Err(error) => self.complain(dialect, complaint(&error)).await,
                }
            }
            (ask, _) => match self.of_server(ask).await {
                Some(reply) => self.reply(dialect, None, reply).await,
                None => Ok(()),
            },
        }
    }

    async fn begin_run(
        &mut self,
        dialect: &'static dyn Dialect,
        session: Option<SessionId>,
        ask: RunAsk,
    ) -> Result<(), Gone> {
        let RunAsk { mut send, folder } = ask;
        if let Some(folder) = folder {
            match self.app.sessions.kit().places.folder(&folder) {
                Ok(folder) => {
                    let cwd = folder.display().to_string().into();
                    send.run.get_or_insert_default().cwd = Some(cwd);
                }
                Err(why) => {
                    let told = Complaint::new(&why, why.clone(), "bad_folder");
                    return self.complain(dialect, told).await;
                }
            }
        }
        let alone = session.is_none();
        let by = self.client.who.clone();
        let handle = match session {
            Some(session) => self.app.sessions.handle(session, by),
            None => self.app.sessions.passing(by),
        };
        let session = handle.id().clone();
        self.take_detached();
        let is_watched = self.is_attached(&session);
        if !is_watched {
            let watched = self.watch_own_run(dialect, &handle).await;
            if !matches!(watched, Ok(Ok(()))) {
                self.discard_if(alone, &session);
            }
            match watched {
                Ok(done) => done?,
                Err(complaint) => return self.complain(dialect, complaint).await,
            }
        }
        match handle.command(Command::Send(Box::new(send))).await {
            Ok(Recorded { message: Some(message) }) => {
                let id = RunId { session, message };
                self.run = Some(OwnRun { id: id.clone(), alone });
                self.send(Outgoing::Run(id)).await
            }
            Ok(Recorded { message: None }) => self.forget_run(session, alone).await,
            // It sees the session end, and is told there.
            Err(CommandError::Failed(_)) if is_watched => Ok(()),
            Err(error) => {
                self.forget_run(session, alone).await?;
                self.complain(dialect, complaint(&error)).await
            }
        }
    }

    /// The run is over and its last frame is out: the next request has its turn.
    pub(super) async fn run_ended(
        &mut self,
        dialect: &'static dyn Dialect,
        ended: &RunId,
    ) -> Result<(), Gone> {
        match self.run.take() {
            Some(run) if run.id == *ended => self.forget_run(run.id.session, run.alone).await?,
            other => {
                self.run = other;
                return Ok(());
            }
        }
        while self.run.is_none() {
            let Some(asked) = self.waiting.pop_front() else { break };
            self.do_in_order(dialect, asked).await?;
            (self.about, self.request) = (None, None);
        }
        Ok(())
    }

    /// Lets go of a session that was watched for a run's sake alone.
    async fn forget_run(&mut self, session: SessionId, alone: bool) -> Result<(), Gone> {
        if self.client.session.as_ref() == Some(&session) {
            return Ok(());
        }
        self.attachments.remove(&session);
        // Also when the client is gone and takes no more.
        let left = self.send(Outgoing::Left(session.clone())).await;
        self.discard_if(alone, &session);
        left
    }

    fn discard_if(&self, alone: bool, session: &SessionId) {
        if alone {
            let (sessions, session) = (self.app.sessions.clone(), session.clone());
            tokio::spawn(async move { sessions.discard(&session).await });
        }
    }
}
