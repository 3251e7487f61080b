//! Makes the pictures of the page in docs/images, from the running product.
//!
//! Compares nothing: fonts differ from machine to machine, so people look at them.

use std::time::Duration;

use crate::ci;
use crate::place::{Place, show};
use crate::steps::Steps;
use crate::tools::{self, Install};

const TIME_MAX: Duration = Duration::from_secs(5 * 60);

pub fn run(place: &Place, install: &Install) -> bool {
    let mut steps = Steps::new();
    let tools = steps.run("tools: node and a browser", &[], || {
        tools::node(place, install).and_then(|()| tools::browser(place, install))
    });
    let built = steps.run("build", &[tools], || ci::build(place));
    steps.run("screenshots", &[built], || {
        let mut make = ci::in_browser(place, "screenshots.mjs");
        make.arg("--polyloop").arg(place.polyloop()).arg("--into").arg("docs/images");
        show(&mut make, TIME_MAX)
    });
    steps.end()
}
