//! The terminal itself: raw mode, its size, and that it is as it was before whatever happens.

use std::io::{self, Read, Write};
use std::sync::{Mutex, Once, PoisonError};

use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::screen::Size;

/// Pastes come marked as such, so that no pasted word counts as a key.
const ENTER: &str = "\x1b[?2004h";
const LEAVE: &str = "\x1b[?2004l\x1b[0m\x1b[?25h";
const READ_BYTES: usize = 4096;

/// How the terminal was. Here, so that a panic can bring it back too.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
static HOOK: Once = Once::new();

pub fn is_interactive() -> bool {
    isatty(stdin()) && isatty(stdout())
}

pub fn output_is_terminal() -> bool {
    isatty(stdout())
}

/// While it lives, keys come one by one and unseen.
pub struct Raw(());

impl Raw {
    pub fn enter() -> io::Result<Raw> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        let before = tcgetattr(stdin())?;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let raw = Raw(());
        raw.again()?;
        Ok(raw)
    }

    /// Others may have used the terminal in the meantime.
    pub fn again(&self) -> io::Result<()> {
        let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(mut raw) = before {
            raw.make_raw();
            tcsetattr(stdin(), OptionalActions::Now, &raw)?;
            say(ENTER);
        }
        Ok(())
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        say(LEAVE);
        // There is nobody left to tell.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
    }
}

fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

pub fn size() -> Size {
    let known = tcgetwinsize(stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    match known {
        Some(size) => Size { columns: size.ws_col.into(), rows: size.ws_row.into() },
        None => Size { columns: 80, rows: 24 },
    }
}

/// Stops the process as Ctrl-Z does; returns when it is brought back.
pub fn suspend() -> io::Result<()> {
    rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
    Ok(())
}

/// Bytes from the keyboard. The thread waits for keys until the process ends.
pub fn read_keys() -> mpsc::Receiver<Vec<u8>> {
    let (keys, received) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut bytes = [0; READ_BYTES];
        loop {
            match io::stdin().lock().read(&mut bytes) {
                Ok(0) => return,
                Ok(count) => {
                    if keys.blocking_send(bytes[..count].to_vec()).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    received
}
