//! The message of who has no terminal: the words of the command line, standard input, or both.
//!
//! Where there are words, standard input is left alone unless a `-` is among them: it may be a pipe
//! that never ends, or the list that a script's loop reads from.

use std::io::Read;
use std::time::Duration;

use crate::tell;

/// The word that stands for standard input.
const INPUT: &str = "-";
const INPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Then people are told what it waits for.
const QUIET: Duration = Duration::from_secs(1);

pub async fn read(words: &[String]) -> Result<String, String> {
    let wants_input = words.iter().any(|word| word == INPUT);
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != INPUT).collect();
    let words = words.join(" ");
    if !words.trim().is_empty() && !wants_input {
        return Ok(words);
    }
    let mut reading = tokio::task::spawn_blocking(input);
    let read = match tokio::time::timeout(QUIET, &mut reading).await {
        Ok(read) => read,
        Err(_) => {
            tell("reading the message from standard input, up to its end");
            reading.await
        }
    };
    let input = read.map_err(|error| format!("standard input cannot be read: {error}"))??;
    let parts: Vec<&str> =
        [words.trim(), input.trim()].into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return Err("there is no message; give it as arguments or on standard input".to_owned());
    }
    Ok(parts.join("\n\n"))
}

fn input() -> Result<String, String> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(INPUT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("standard input cannot be read: {error}"))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(format!("standard input has more than {INPUT_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "standard input is not UTF-8 text".to_owned())
}
