//! Does what a client asks: of a session, of the room, of the server.

use polyloop_agent::actor::{CommandError, Recorded};
use polyloop_agent::sessions::Handle;
use polyloop_dialects::{Ask, Asked, Complaint, Dialect, Listed, Manner, Reply};
use polyloop_session::context::{self, ContextInfo};
use polyloop_session::event::Setting;
use polyloop_session::wait::Who;
use polyloop_session::{Command, Refusal, SessionId, State, Text, decide};

use super::attach::{Told, complaint};
use super::read::{Gone, Reader};
use crate::view::DialectView;

impl Reader {
    pub(super) async fn ask(
        &mut self,
        dialect: &'static dyn Dialect,
        asked: Asked,
    ) -> Result<(), Gone> {
        self.about = asked.about.clone();
        match dialect.manner() {
            // Each in a piece of its own: what a connection holds while it waits is that of its way.
            Manner::OneSession => Box::pin(self.of_own_session(dialect, asked.ask)).await,
            Manner::ManySessions => Box::pin(self.of_named_session(dialect, asked)).await,
            Manner::Runs => Box::pin(self.in_order(dialect, asked)).await,
            Manner::Room => Box::pin(self.in_room(dialect, asked)).await,
        }
    }

    async fn of_own_session(
        &mut self,
        dialect: &'static dyn Dialect,
        ask: Ask,
    ) -> Result<(), Gone> {
        let speaks = matches!(ask, Ask::Command(Command::Send(_)));
        if let Some(complaint) = self.refused_anyway(&ask) {
            return self.complain(dialect, complaint).await;
        }
        let session = match &self.client.session {
            Some(session) => session.clone(),
            None if speaks => {
                let session = polyloop_agent::clock::new_session_id();
                self.client.session.insert(session).clone()
            }
            None => {
                return match self.without_session(ask) {
                    Some(reply) => self.reply(dialect, None, reply).await,
                    None => Ok(()),
                };
            }
        };
        self.of_session(dialect, &session, ask).await
    }

    /// Of all messages only one that speaks or starts makes a session that is not there: another
    /// may name it by mistake.
    async fn of_named_session(
        &mut self,
        dialect: &'static dyn Dialect,
        asked: Asked,
    ) -> Result<(), Gone> {
        let Some(session) = asked.session.or_else(|| self.client.session.clone()) else {
            let told = "session_id: say which session is meant";
            let complaint = Complaint::new("Which session?", told, "no_session");
            return self.reply(dialect, None, Reply::Complaint(complaint)).await;
        };
        let makes = matches!(asked.ask, Ask::Command(Command::Send(_)) | Ask::Start(_));
        let is_new = !self.attachments.contains_key(&session);
        if is_new && !Box::pin(self.comes_to(dialect, &session, &asked.ask, makes)).await? {
            return Ok(());
        }
        match asked.ask {
            Ask::Start(start) => Box::pin(self.start(dialect, &session, start)).await?,
            ask => self.of_session(dialect, &session, ask).await?,
        }
        // What names no session means this one, from now on.
        if self.is_attached(&session) {
            self.client.session.get_or_insert(session);
        }
        Ok(())
    }

    /// Whether a session that this connection is not attached to may be asked this; if not, the
    /// client was told why.
    async fn comes_to(
        &mut self,
        dialect: &'static dyn Dialect,
        session: &SessionId,
        ask: &Ask,
        makes: bool,
    ) -> Result<bool, Gone> {
        // Made before it is asked for: a session that passes meanwhile is not made anew by it.
        let handle = self.app.sessions.handle(session.clone(), self.client.who.clone());
        if !makes {
            let why = match self.app.sessions.exists(session).await {
                Ok(true) => None,
                Ok(false) => {
                    let told = format!("There is no session {session}; start it first");
                    Some(Complaint::new("No such session", told, "no_such_session"))
                }
                Err(error) => Some(super::attach::store_complaint(&error.to_string())),
            };
            if let Some(complaint) = why {
                self.reply(dialect, None, Reply::Complaint(complaint)).await?;
                return Ok(false);
            }
        }
        if let Some(complaint) = self.refused_anyway(ask) {
            self.reply(dialect, None, Reply::Complaint(complaint)).await?;
            return Ok(false);
        }
        if !makes {
            self.attach_with(dialect, handle, Told::NotYet).await?;
            return Ok(self.is_attached(session));
        }
        Ok(true)
    }

    async fn of_session(
        &mut self,
        dialect: &'static dyn Dialect,
        session: &SessionId,
        ask: Ask,
    ) -> Result<(), Gone> {
        // Subscribe first: whoever asks must see what comes of it.
        if !self.attach_if_needed(dialect, session, Told::NotYet).await? {
            return Ok(());
        }
        let Some(handle) = self.attachments.get(session).map(|a| a.handle.clone()) else {
            return Ok(());
        };
        let done = match ask {
            Ask::Command(command) => handle.command(command).await,
            // What is asked seldom is kept apart: a message that waits for its session is small.
            other => match Box::pin(self.other(&handle, other)).await {
                Ok(Some(reply)) => {
                    return Box::pin(self.reply(dialect, Some(session), reply)).await;
                }
                Ok(None) => Ok(Recorded::default()),
                Err(error) => Err(error),
            },
        };
        match done {
            // Of a store that fails under the session its clients are told as it ends.
            Ok(_) | Err(CommandError::Failed(_)) => Ok(()),
            Err(error) => {
                let reply = Reply::Complaint(complaint(&error));
                Box::pin(self.reply(dialect, Some(session), reply)).await
            }
        }
    }

    /// What is no plain command, and what is answered.
    async fn other(
        &mut self,
        handle: &Handle<DialectView>,
        ask: Ask,
    ) -> Result<Option<Reply>, CommandError> {
        match ask {
            Ask::SettleWithPatch { wait, patch, always, by } => {
                handle.settle_with_patch(wait, patch, always, by).await?;
                Ok(None)
            }
            Ask::SetModel { model, by } => {
                self.set_model(handle, model, by).await?;
                Ok(None)
            }
            Ask::ContextInfo => {
                handle.context_info().await.map(|info| Some(Reply::ContextInfo(info)))
            }
            other => Ok(self.of_server(other).await),
        }
    }

    async fn set_model(
        &self,
        handle: &Handle<DialectView>,
        model: Text,
        by: Who,
    ) -> Result<Recorded, CommandError> {
        let found = self.app.sessions.kit().find_model(&model);
        let found = found.map_err(CommandError::Refused)?;
        let setting = Setting::Model { model, tokens_max: found.card().tokens_max };
        handle.command(Command::Set { setting, by }).await
    }

    /// A message that no session would take must not make one.
    pub(super) fn refused_anyway(&self, ask: &Ask) -> Option<Complaint> {
        let send = match ask {
            Ask::Command(Command::Send(send)) => send.clone(),
            Ask::Run(run) => Box::new(run.send.clone()),
            _ => return None,
        };
        let limits = &self.app.sessions.kit().limits;
        let refused = decide(&State::default(), Command::Send(send), limits).err()?;
        Some(Complaint::from(&refused))
    }

    /// What a connection that has no session yet is told; only a message makes one.
    fn without_session(&self, ask: Ask) -> Option<Reply> {
        let (empty, limits) = (State::default(), &self.app.sessions.kit().limits);
        match ask {
            Ask::ContextInfo => {
                let info: ContextInfo = context::info(&empty, limits.tokens_max, limits.strategy);
                Some(Reply::ContextInfo(info))
            }
            Ask::Command(command) => {
                let refused = decide(&empty, command, limits).err();
                refused.map(|refusal| Reply::Complaint(Complaint::from(&refusal)))
            }
            _ => Some(Reply::Complaint(Complaint::from(&Refusal::NoPendingApproval))),
        }
    }

    async fn in_room(&mut self, dialect: &'static dyn Dialect, asked: Asked) -> Result<(), Gone> {
        if let Some(complaint) = self.refused_anyway(&asked.ask) {
            return self.complain(dialect, complaint).await;
        }
        let Asked { session, ask: Ask::Command(command), .. } = asked else { return Ok(()) };
        let handle = match session {
            Some(session) => self.app.sessions.handle(session, self.client.who.clone()),
            None => match &self.passing {
                Some(session) => self.app.sessions.handle(session.clone(), self.client.who.clone()),
                None => {
                    let handle = self.app.sessions.passing(self.client.who.clone());
                    self.passing = Some(handle.id().clone());
                    handle
                }
            },
        };
        let spoken = match self.member {
            Some(member) => self.app.room.speak(member, handle.id(), &self.client.who).await,
            None => Ok(()),
        };
        let done = match spoken {
            Ok(()) => handle.command(command).await,
            Err(error) => Err(error),
        };
        match done {
            // The room tells everybody who spoke there.
            Ok(_) | Err(CommandError::Failed(_)) => Ok(()),
            Err(error) => self.complain(dialect, complaint(&error)).await,
        }
    }

    /// What the server itself answers.
    pub(super) async fn of_server(&mut self, ask: Ask) -> Option<Reply> {
        match ask {
            Ask::Ping { id } => Some(Reply::Pong { id }),
            Ask::Tools { id, folder } => Some(match self.folder_is_bad(folder) {
                Some(told) => Reply::Complaint(told.about(Some(id))),
                None => Reply::Tools { id, tools: self.app.tools.clone() },
            }),
            Ask::Tool { id, name, form, folder } => {
                if let Some(told) = self.folder_is_bad(folder) {
                    return Some(Reply::Complaint(told.about(Some(id))));
                }
                let tool = self.app.tools.iter().find(|tool| tool.name == name).cloned();
                Some(match tool {
                    Some(tool) => Reply::Tool { id, tool, form },
                    None => {
                        let name: String = name.chars().take(80).collect();
                        let told = format!("tool not found: {name}");
                        let told = Complaint::new(&told, told.clone(), "tool_not_found");
                        Reply::Complaint(told.about(Some(id)))
                    }
                })
            }
            Ask::Messages { id, thread, before, limit } => {
                Some(self.messages(id, thread, before, limit).await)
            }
            Ask::Command(_)
            | Ask::SettleWithPatch { .. }
            | Ask::ContextInfo
            | Ask::Start(_)
            | Ask::SetModel { .. }
            | Ask::Run(_) => None, // Asked of a session.
        }
    }

    fn folder_is_bad(&self, folder: Option<Text>) -> Option<Complaint> {
        let why = self.app.sessions.kit().places.folder(&folder?).err()?;
        Some(Complaint::new(&why, why.clone(), "bad_folder"))
    }

    async fn messages(
        &self,
        id: Text,
        thread: SessionId,
        before: Option<u64>,
        limit: Option<u32>,
    ) -> Reply {
        let Some(store) = &self.app.sessions.kit().messages else {
            return Reply::Messages { id, thread, messages: Vec::new(), has_more: false };
        };
        let limit = limit.unwrap_or(polyloop_agent::messages::PAGE_MESSAGES_DEFAULT);
        match store.page(&thread, before, limit).await {
            Ok(page) => {
                let listed = page.messages.into_iter().map(|message| Listed {
                    seq: message.seq,
                    role: message.role.as_str(),
                    content: message.content,
                });
                let (messages, has_more) = (listed.collect(), page.has_more);
                Reply::Messages { id, thread, messages, has_more }
            }
            Err(error) => {
                let told = format!("user message store error: {error}");
                let told = Complaint::new(&told, told.clone(), "message_store");
                Reply::Complaint(told.about(Some(id)))
            }
        }
    }
}
