//! Times as the session files and REST write them: ISO 8601 in UTC with milliseconds.

use polyloop_session::Timestamp;

pub fn iso(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => "1970-01-01T00:00:00.000Z".to_string(),
    }
}

pub fn parse_iso(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp(time.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_milliseconds_and_reads_them_back() {
        for (ms, text) in [
            (1_736_426_096_789, "2025-01-09T12:34:56.789Z"),
            (1_736_427_600_000, "2025-01-09T13:00:00.000Z"),
            (0, "1970-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso(Timestamp(ms)), text);
            assert_eq!(parse_iso(text), Some(Timestamp(ms)));
        }
    }
}
