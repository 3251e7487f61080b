//! The todos file of a session, and the link in the working directory that points to the one in
//! use.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use polyloop_session::{SessionId, Timestamp};

use crate::log::files::{file_time, free_name};

/// Of a todos file that a fork takes along; a longer one is cut.
const COPIED_BYTES_MAX: u64 = 1024 * 1024;

pub const LINK_NAME: &str = ".terraine-todos.md";

pub struct Todos {
    dir: PathBuf,
}

#[derive(Debug)]
pub enum SwitchError {
    /// Something that is not a link has the link's name.
    Taken,
    Io(io::Error),
}

impl From<io::Error> for SwitchError {
    fn from(error: io::Error) -> SwitchError {
        SwitchError::Io(error)
    }
}

impl Todos {
    pub fn open(dir: &Path) -> io::Result<Todos> {
        std::fs::create_dir_all(dir)?;
        Ok(Todos { dir: dir.canonicalize()? })
    }

    pub fn path(&self, id: &SessionId) -> PathBuf {
        self.dir.join(format!("{id}.md"))
    }

    /// Makes the file unless it is there.
    pub fn create(&self, id: &SessionId, at: Timestamp) -> io::Result<()> {
        let made = OpenOptions::new().write(true).create_new(true).open(self.path(id));
        match made {
            Ok(mut file) => file.write_all(template(id, at).as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Gives a session what another one's file says; the template where that one has none.
    pub fn copy(&self, from: &SessionId, to: &SessionId, at: Timestamp) -> io::Result<()> {
        let mut text = String::new();
        match OpenOptions::new().read(true).open(self.path(from)) {
            Ok(file) => file.take(COPIED_BYTES_MAX).read_to_string(&mut text).map(|_| ())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.create(to, at),
            Err(error) => return Err(error),
        }
        let (old, new) = (format!("Session ID: `{from}`"), format!("Session ID: `{to}`"));
        let mut file = OpenOptions::new().write(true).create_new(true).open(self.path(to))?;
        file.write_all(text.replacen(&old, &new, 1).as_bytes())
    }

    /// Puts a session's file away, and takes down the link if it leads there.
    pub fn archive(&self, id: &SessionId, cwd: &Path, at: Timestamp) -> io::Result<()> {
        let name = free_name(&self.dir, &format!(".{id}-{}", file_time(at)), "md");
        let aside = self.dir.join(format!("{name}.md"));
        match std::fs::rename(self.path(id), aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let link = cwd.join(LINK_NAME);
        match std::fs::read_link(&link) {
            Ok(target) if target == self.path(id) => std::fs::remove_file(&link),
            _ => Ok(()),
        }
    }

    /// Points the link at a session's file, which is made if needed. Never replaces anything but
    /// a link. Returns the file and the link.
    pub fn switch(
        &self,
        id: &SessionId,
        cwd: &Path,
        at: Timestamp,
    ) -> Result<(PathBuf, PathBuf), SwitchError> {
        let link = cwd.join(LINK_NAME);
        match std::fs::symlink_metadata(&link) {
            Ok(found) if !found.file_type().is_symlink() => return Err(SwitchError::Taken),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        self.create(id, at)?;
        let file = self.path(id);
        // A new link renamed over the old one: there is no moment without a link.
        let fresh = cwd.join(format!("{LINK_NAME}.{}", uuid::Uuid::new_v4().simple()));
        std::os::unix::fs::symlink(&file, &fresh)?;
        if let Err(error) = std::fs::rename(&fresh, &link) {
            let _ = std::fs::remove_file(&fresh);
            return Err(error.into());
        }
        Ok((file, link))
    }
}

fn template(id: &SessionId, at: Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    format!(
        "# Terraine Session Todos\n\n\
         Session ID: `{id}`\n\
         Created: {time:.3}\n\n\
         This file helps the agent plan and track tasks for the current session.\n\n\
         ## Current Tasks\n\n\
         - [ ] No tasks yet - add your goals here\n\n\
         ## Completed Tasks\n\n\
         (Tasks will be moved here when completed)\n\n\
         ---\n\n\
         *This file was auto-created for session tracking. You can edit it manually or let the \
         agent update it.*\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::parse(text).unwrap()
    }

    #[test]
    fn the_link_follows_the_session_in_use_and_goes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("w");
        std::fs::create_dir(&cwd).unwrap();
        let todos = Todos::open(&dir.path().join("todos")).unwrap();
        let (one, two, at) = (id("one"), id("two"), Timestamp(7));
        let link = cwd.join(LINK_NAME);
        for session in [&one, &two, &one] {
            let (file, made) = todos.switch(session, &cwd, at).unwrap();
            assert_eq!((&made, std::fs::read_link(&link).unwrap()), (&link, file));
        }
        let text = std::fs::read_to_string(&link).unwrap();
        assert!(text.starts_with("# Terraine Session Todos\n\nSession ID: `one`\n"), "{text}");
        assert!(text.contains("Created: 1970-01-01T00:00:00.007Z\n"), "{text}");
        todos.archive(&two, &cwd, at).unwrap();
        assert!(link.exists(), "it leads to the other one");
        todos.archive(&one, &cwd, at).unwrap();
        assert!(std::fs::symlink_metadata(&link).is_err());
        assert!(todos.dir.join(".one-1970-01-01T00-00-00.007Z.md").exists());
    }

    #[test]
    fn only_a_link_is_ever_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let todos = Todos::open(&dir.path().join("todos")).unwrap();
        let link = dir.path().join(LINK_NAME);
        std::fs::write(&link, "mine").unwrap();
        let switched = todos.switch(&id("one"), dir.path(), Timestamp(7));
        assert!(matches!(switched, Err(SwitchError::Taken)));
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "mine");
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        todos.switch(&id("one"), dir.path(), Timestamp(7)).unwrap();
        assert!(link.exists(), "a dangling link is replaced");
    }
}
