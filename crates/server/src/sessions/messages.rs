//! `polyloop sessions rebuild-messages`: makes the user message store anew from the session files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use polyloop_agent::log::files::Files;
use polyloop_agent::messages::Messages;

use super::{Halt, Progress};
use crate::config::settings::USER_MESSAGE_DB;
use crate::config::{Config, ServeArgs};
use crate::view::FileCodec;

/// No server may use the store, so that nobody writes what is being read.
pub(super) async fn rebuild(
    dir: &Path,
    database: Option<&Path>,
    start_dir: &Path,
) -> Result<(), Halt> {
    let database = database_file(database, start_dir)?;
    if !dir.is_dir() {
        return Err(Halt::Usage(format!("{} is not a directory", dir.display())));
    }
    let log = Arc::new(Files::open(dir, FileCodec::shared())?);
    let failed = |error: polyloop_agent::messages::MessagesError| Halt::Failed(error.to_string());
    let messages = Messages::open(&database, log).await.map_err(failed)?;
    let (mut progress, mut sessions) = (Progress::new(0), 0);
    let rebuilt = messages
        .rebuild(|done, all| {
            sessions = done;
            progress.all = all;
            progress.at(done);
        })
        .await;
    messages.close().await;
    rebuilt.map_err(failed)?;
    println!("{}: the messages of {sessions} sessions", database.display());
    Ok(())
}

/// As `serve` would find it.
fn database_file(given: Option<&Path>, start_dir: &Path) -> Result<PathBuf, Halt> {
    let mut flags = ServeArgs::default();
    if let Some(file) = given {
        flags.set(&USER_MESSAGE_DB, file);
    }
    let found = Config::examine(&flags, std::env::vars_os(), start_dir).parts.user_message_db;
    found.ok_or_else(|| {
        let how = "set USER_MESSAGE_DB or give --user-message-db";
        Halt::Usage(format!("there is no user message store: {how}"))
    })
}
