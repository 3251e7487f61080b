//! Starts a program in a new process the shortest way: the new process borrows the memory of this
//! one, which stands still until the other has become the program. Nothing is copied.
//!
//! Only for a process with one thread and with all signals blocked. The program gets the job's
//! arguments and environment, `/dev/null` as stdin, and our stdout as stdout and stderr.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::raw::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::ptr::{null, null_mut};

use rustix::process::{Pid, WaitOptions, waitpid};

use crate::Job;

/// For what is done before the program starts, and for the search along `PATH`.
const STACK_BYTES: usize = 512 * 1024;

/// Where nothing can be written, below the stack; a page on every machine.
const GUARD_BYTES: usize = 64 * 1024;

unsafe extern "C" {
    /// The environment, of which programs are looked up in `PATH`, and which they get.
    static mut environ: *const *const c_char;
}

/// When this returns, the new process runs the program; or there is none. `before` runs in the new
/// process first.
pub(crate) fn spawn(job: &Job, before: &mut dyn FnMut() -> io::Result<()>) -> io::Result<Pid> {
    let program = text(&job.program)?;
    let args = job.args.iter().map(|arg| text(arg)).collect::<io::Result<Vec<CString>>>()?;
    let env = job.env.iter().map(|(name, value)| {
        text(OsStr::from_bytes(&[name.as_bytes(), b"=", value.as_bytes()].concat()))
    });
    let env = env.collect::<io::Result<Vec<CString>>>()?;
    let args = pointers(std::iter::once(&program).chain(&args));
    let env = pointers(&env);
    let nothing = File::open("/dev/null")?;
    // A program that is a script without a first line is started with a copy of the arguments.
    let stack = Stack::new(STACK_BYTES + (args.len() + 2) * size_of::<*const c_char>())?;
    let mut child = Child {
        program: program.as_ptr(),
        args: args.as_ptr(),
        nothing: nothing.as_raw_fd(),
        before,
        failed: None,
    };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: this process has one thread, which stands still until the new one has executed a
    // program or ended; so all that is pointed to outlives its use, and nobody else looks at the
    // environment. The stack is the new one's own, and writable up to its top.
    let pid = unsafe {
        let ours = environ;
        environ = env.as_ptr();
        let pid = libc::clone(run, stack.top(), flags, (&raw mut child).cast());
        environ = ours;
        pid
    };
    let pid = match pid {
        1.. => Pid::from_raw(pid),
        _ => return Err(io::Error::last_os_error()),
    };
    match (child.failed, pid) {
        (None, Some(pid)) => Ok(pid),
        (failed, pid) => {
            let _ = waitpid(pid, WaitOptions::empty());
            Err(failed.unwrap_or_else(|| io::ErrorKind::Other.into()))
        }
    }
}

/// What the new process needs, and what it leaves if it does not become the program.
struct Child<'a> {
    program: *const c_char,
    args: *const *const c_char,
    nothing: c_int,
    before: &'a mut dyn FnMut() -> io::Result<()>,
    failed: Option<io::Error>,
}

extern "C" fn run(child: *mut c_void) -> c_int {
    // SAFETY: this is the structure that `spawn` has, and nobody else uses it now.
    let child = unsafe { &mut *child.cast::<Child>() };
    child.failed = Some(child.become_program());
    // SAFETY: ends this process alone, and does nothing of what the program does at its end.
    unsafe { libc::_exit(1) }
}

impl Child<'_> {
    /// Returns only if it could not.
    fn become_program(&mut self) -> io::Error {
        // SAFETY: the descriptors are open; these are the new process's own.
        let wired = unsafe {
            libc::dup2(self.nothing, libc::STDIN_FILENO) >= 0
                && libc::dup2(libc::STDOUT_FILENO, libc::STDERR_FILENO) >= 0
        };
        if !wired {
            return io::Error::last_os_error();
        }
        if let Err(error) = (self.before)() {
            return error;
        }
        // SAFETY: both are strings with their ends, and the list of them has its own.
        unsafe { libc::execvp(self.program, self.args) };
        io::Error::last_os_error()
    }
}

fn text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(Into::into)
}

/// With their end.
fn pointers<'a>(texts: impl IntoIterator<Item = &'a CString>) -> Vec<*const c_char> {
    texts.into_iter().map(|text| text.as_ptr()).chain([null()]).collect()
}

/// Memory that a process may use as its stack, with a wall below it.
struct Stack {
    start: *mut c_void,
    bytes: usize,
}

impl Stack {
    fn new(bytes: usize) -> io::Result<Stack> {
        let bytes = bytes.next_multiple_of(GUARD_BYTES) + GUARD_BYTES;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, which nothing else lies in; then its lowest part is closed.
        let (start, guarded) = unsafe {
            let usable = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(null_mut(), bytes, usable, flags, -1, 0);
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            (start, libc::mprotect(start, GUARD_BYTES, libc::PROT_NONE))
        };
        let stack = Stack { start, bytes };
        if guarded == 0 { Ok(stack) } else { Err(io::Error::last_os_error()) }
    }

    /// Aligned, because the mapping and its length are.
    fn top(&self) -> *mut c_void {
        self.start.wrapping_byte_add(self.bytes)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody runs on it any more.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}
