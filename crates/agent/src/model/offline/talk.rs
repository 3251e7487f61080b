//! What the offline model says of its own accord: a greeting, a report, an explanation.
//!
//! Knows no script; says only what it was given, so that equal prompts get equal words.

use polyloop_session::Text;

use super::SCRIPT_HELP;

const RESULT_BYTES_MAX: usize = 120;
const COMMAND_BYTES_MAX: usize = 200;
const PATCH_FILES_SHOWN_MAX: usize = 5;

pub(super) fn greeting() -> Text {
    let lines: Vec<String> = SCRIPT_HELP.lines().map(|line| format!("    {line}")).collect();
    format!(
        "Hello! I am the offline model: I need no key and no network, and I always answer the \
         same. What you write is my script, one step a line. Send me some of these lines, for \
         example:\n\n{}\n\nA line that begins with & belongs to the same reply as the line above \
         it. Have fun!",
        lines.join("\n")
    )
    .into()
}

/// The last words of a script that ends with a tool call.
pub(super) fn report(result: Option<(&Text, bool)>) -> Text {
    let Some((output, is_error)) = result else { return "Done.".into() };
    let code = exit_code(output);
    let how = match (is_error, code) {
        (false, None) => "Done.".to_owned(),
        (false, Some(code)) => format!("Done: exit code {code}."),
        (true, None) => "That did not work.".to_owned(),
        (true, Some(code)) => format!("That did not work: exit code {code}."),
    };
    let mut lines = output.lines().filter(|line| code.is_none() || exit_code_in(line) != code);
    match lines.find(|line| !line.trim().is_empty()) {
        Some(line) => format!("{how} I got: {}", shortened(line, RESULT_BYTES_MAX)).into(),
        None => format!("{how} There was no output.").into(),
    }
}

/// The results of sub-tasks, the first line of each.
pub(super) fn gathered(note: &str) -> Text {
    let parts = note.split("\n\n").skip(1);
    let first = |part: &str| {
        let (name, result) = part.split_once(":\n")?;
        let name = name.split(" (").next().unwrap_or(name);
        let line = result.lines().next().unwrap_or_default();
        Some(format!("- {name}: {}", shortened(line, RESULT_BYTES_MAX)))
    };
    let lines: Vec<String> = parts.filter_map(first).collect();
    match lines.is_empty() {
        true => "Nothing came of the sub-tasks.".into(),
        false => format!("Put together:\n{}", lines.join("\n")).into(),
    }
}

pub(super) fn no_script() -> Text {
    "I have no script to follow here. Send me one, and I will go on.".into()
}

pub(super) fn nothing_left() -> Text {
    "That was all: nothing of the script is left to do.".into()
}

/// What the command of an explanation's prompt would do, as far as its words tell.
pub(super) fn explanation(prompt: &str) -> Text {
    let command = prompt.split_once("\n\n").map_or(prompt, |(_, command)| command).trim();
    let (program, args) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let what = match (program, args.strip_prefix("-lc ")) {
        ("", _) => "I was shown no command, so I can say nothing about it.".to_owned(),
        ("apply_patch", _) => patch(args),
        ("exit_plan_mode", _) => {
            "This shows you a plan; if you agree, the work on it begins.".to_owned()
        }
        ("bash", Some(script)) => {
            let first = script.split_whitespace().next().unwrap_or_default();
            format!(
                "This gives {} to the shell; the first word of it is {}. What it reads or \
                 changes is up to the commands in it, so look at each of them before you say yes.",
                code(script),
                code(first)
            )
        }
        (_, _) if args.is_empty() => format!(
            "This runs {}: the program alone, without arguments. What it reads or changes is up \
             to the program.",
            code(program)
        ),
        _ => format!(
            "This runs {}: the program {} with {}. What it reads or changes is up to the program \
             and these arguments, so look at them before you say yes.",
            code(command),
            code(program),
            code(args)
        ),
    };
    format!("{what} I want it because your script asks for it; nothing has been run yet.").into()
}

fn patch(patch: &str) -> String {
    const MARKS: [&str; 3] = ["*** Add File: ", "*** Update File: ", "*** Delete File: "];
    let mut files = patch.lines().filter_map(|line| {
        let line = line.trim();
        MARKS.iter().find_map(|mark| line.strip_prefix(mark))
    });
    let shown: Vec<String> = files.by_ref().take(PATCH_FILES_SHOWN_MAX).map(code).collect();
    let more = match files.count() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let names = if shown.is_empty() { "no file I can name".to_owned() } else { shown.join(", ") };
    format!("This applies a patch that touches {names}{more}. Either all of it is applied or none.")
}

/// The exit code that a result's last or first line tells.
fn exit_code(output: &str) -> Option<i32> {
    let mut lines = output.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next()?;
    let last = lines.next_back();
    last.and_then(exit_code_in).or_else(|| exit_code_in(first))
}

fn exit_code_in(line: &str) -> Option<i32> {
    let lower = line.to_ascii_lowercase();
    let (_, rest) = lower.split_once("exit code").or_else(|| lower.split_once("exit_code"))?;
    let number = rest.trim_start_matches([' ', ':', '=', '"']);
    let digits = number.strip_prefix('-').unwrap_or(number);
    let sign = number.len() - digits.len();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    number[..sign + end].parse().ok()
}

/// As Markdown code, on one line.
fn code(text: &str) -> String {
    let text = shortened(text, COMMAND_BYTES_MAX);
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// The first line, cut where it is too long, with a mark where something is missing.
pub(super) fn shortened(text: &str, bytes_max: usize) -> String {
    const MARK: &str = "…";
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    if line.len() == text.len() && text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = line.floor_char_boundary(bytes_max.saturating_sub(MARK.len()));
    format!("{}{MARK}", line[..end].trim_end())
}
