//! How the tools that read at a path are judged and run: one way for all of them.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement};

use super::perform::{Done, Watch, judge_blocking, look};
use super::{Links, Names, Target, reads};
use crate::tool::{Place, Progress, Run};

/// What a call that reads was given.
pub(crate) trait Reading: Sized + Send + 'static {
    /// The tool's.
    const NAME: &'static str;
    /// What it does, before the path, in a sentence.
    const DOES: &'static str;
    /// What the path may name.
    const NAMES: Names;

    /// The error depends on the arguments alone.
    fn parse(json: &str) -> Result<Self, Text>;

    fn path(&self) -> &str;
}

fn target<R: Reading>(wanted: &R, place: &Place) -> Result<Target, String> {
    Target::find(wanted.path(), place, R::NAMES, Links::FollowInside)
}

pub(crate) fn judge_reading<'a, R: Reading>(
    args: &str,
    place: &'a Place,
) -> BoxFuture<'a, Result<Judgement, Text>> {
    judge_blocking(R::NAME, Effect::Read, R::parse(args), place, |wanted, place| {
        let target = target(wanted, place)?;
        Ok(reads(R::NAME, &target, &format!("{} {}", R::DOES, target.shown())))
    })
}

/// Looks up the path again: what was judged inside, and so not asked about, must still be.
pub(crate) fn run_reading<R: Reading>(
    run: Run,
    read: impl FnOnce(&R, &Target, &Place, &Watch) -> Result<String, String> + Send + 'static,
) -> BoxStream<'static, Progress> {
    look(R::NAME, run, |run, watch| {
        let wanted = R::parse(&run.args).map_err(|why| why.to_string())?;
        let target = target(&wanted, &run.place)?;
        target.check_asked(run)?;
        read(&wanted, &target, &run.place, watch).map(Done::text)
    })
}
