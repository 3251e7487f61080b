//! Where there is no sandbox, no command runs in one.

use rustix::process::Pid;

use crate::{Exit, Job, Network, SANDBOX_FAILED, Sandbox};

/// Never made.
pub(crate) enum Prepared {}

impl Prepared {
    pub(crate) fn new(_: Network) -> Result<Prepared, String> {
        Err(format!("{SANDBOX_FAILED}there is one for Linux only"))
    }
}

/// Never made.
pub(crate) enum Confined {}

impl Confined {
    pub(crate) fn start(_: Option<Prepared>, _: &Job, _: &Sandbox) -> Result<Confined, String> {
        Err(format!("{SANDBOX_FAILED}there is one for Linux only"))
    }

    pub(crate) fn init(&self) -> Pid {
        match *self {}
    }

    pub(crate) fn end(self, _: Exit) -> Exit {
        match self {}
    }
}
