//! Times as the session files and REST write them: ISO 8601 in UTC with milliseconds.

use polyloop_session::Timestamp;

const DAY_MS: i64 = 86_400_000;
/// The first moment of the year 9999, in the course of which the calendar's own code ends.
const LIKELY_END_MS: i64 = 253_370_764_800_000;

pub fn iso(at: Timestamp) -> String {
    if (0..LIKELY_END_MS).contains(&at.0) {
        return usual(at.0);
    }
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => "1970-01-01T00:00:00.000Z".to_string(),
    }
}

/// The same for times that are likely, without the detour over `format!`: one stands in every line
/// of every session.
fn usual(ms: i64) -> String {
    let (year, month, day) = date(ms / DAY_MS);
    let in_day = ms % DAY_MS;
    let mut text = String::with_capacity("1970-01-01T00:00:00.000Z".len());
    let mut push = |number: i64, digits: u32, end: char| {
        for place in (0..digits).rev() {
            text.push(char::from(b'0' + (number / 10_i64.pow(place) % 10) as u8));
        }
        text.push(end);
    };
    push(year, 4, '-');
    push(month, 2, '-');
    push(day, 2, 'T');
    push(in_day / 3_600_000, 2, ':');
    push(in_day / 60_000 % 60, 2, ':');
    push(in_day / 1_000 % 60, 2, '.');
    push(in_day % 1_000, 3, 'Z');
    text
}

/// The date of a day counted from 1970. Years are counted from March here, so that the day that
/// some have more is their last, and in cycles of 400, which are all of one length.
fn date(day: i64) -> (i64, i64, i64) {
    const CYCLE_DAYS: i64 = 146_097;
    // From the first of March of the year 0.
    let day = day + 719_468;
    let (cycle, day) = (day / CYCLE_DAYS, day % CYCLE_DAYS);
    let year = (day - day / 1_460 + day / 36_524 - day / (CYCLE_DAYS - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Five months have 153 days, from March on.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (cycle * 400 + year + next, month, day)
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

    #[test]
    fn every_likely_day_is_what_the_calendar_says() {
        // All of the 400 years after which the calendar repeats itself, and some of what follows.
        let (cycle, end) = (146_097, LIKELY_END_MS / DAY_MS);
        for day in (0..cycle).chain((cycle..end).step_by(997)) {
            // Another time of day each.
            let ms = day * DAY_MS + (day * 7_919_017) % DAY_MS;
            let time = jiff::Timestamp::from_millisecond(ms).unwrap();
            assert_eq!(iso(Timestamp(ms)), format!("{time:.3}"));
        }
        for ms in [-1, LIKELY_END_MS - 1, LIKELY_END_MS, i64::MIN, i64::MAX] {
            let time = jiff::Timestamp::from_millisecond(ms).map(|time| format!("{time:.3}"));
            let known = time.unwrap_or_else(|_| "1970-01-01T00:00:00.000Z".to_string());
            assert_eq!(iso(Timestamp(ms)), known);
        }
    }
}
