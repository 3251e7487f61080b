//! The rules file: read at start, and looked at by `polyloop check-rules`.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use polyloop_agent::rules::{RULES_BYTES_MAX, Rules};

use crate::cli::CheckRulesArgs;

/// The error has a line for each thing that is wrong.
pub fn load(path: &Path) -> Result<Rules, Vec<String>> {
    let shown = path.display();
    let unreadable = |error: io::Error| vec![format!("{shown} cannot be read: {error}")];
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    // One byte more tells that there is more.
    file.take(RULES_BYTES_MAX as u64 + 1).read_to_string(&mut text).map_err(unreadable)?;
    let told = |bad: Vec<_>| bad.iter().map(|bad| format!("{shown}: {bad}")).collect();
    Rules::parse(&text).map_err(told)
}

/// Says what each rule means; fails if a line is none.
pub fn check(args: &CheckRulesArgs, start_dir: &Path) -> ExitCode {
    match load(&start_dir.join(&args.file)) {
        Ok(rules) => {
            let mut told: String = rules.describe().map(|rule| format!("{rule}\n")).collect();
            told.push_str(match rules.len() {
                0 => "there are no rules in it\n",
                _ => "the strictest rule that is about a call counts: deny, then ask, then allow\n",
            });
            // Whoever closed the other end has read enough.
            let _ = io::stdout().write_all(told.as_bytes());
            ExitCode::SUCCESS
        }
        Err(problems) => {
            problems.iter().for_each(|problem| eprintln!("error: {problem}"));
            ExitCode::FAILURE
        }
    }
}
