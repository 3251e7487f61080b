//! How lag grows with the number of sessions, drawn: both axes count in tens.

use std::fmt::Write as _;

use super::figures::Row;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const EDGE: f64 = 48.0;
/// What the axis of lag shows, in milliseconds.
const LAG_MS: (f64, f64) = (0.1, 10_000.0);

pub fn lag(rows: &[Row]) -> String {
    let points: Vec<Point> = rows.iter().filter_map(Point::of).collect();
    let sessions = || points.iter().map(|point| point.sessions);
    let (Some(least), Some(most)) = (sessions().min(), sessions().max()) else {
        return String::new();
    };
    let (left, right) = ((least as f64).log10(), (most as f64).log10().max(1.0));
    let along = |n: usize| {
        EDGE + ((n as f64).log10() - left) / (right - left).max(0.1) * (WIDTH - 2.0 * EDGE)
    };
    let (low, high) = (LAG_MS.0.log10(), LAG_MS.1.log10());
    let up = |ms: f64| {
        let part = (ms.clamp(LAG_MS.0, LAG_MS.1).log10() - low) / (high - low);
        HEIGHT - EDGE - part * (HEIGHT - 2.0 * EDGE)
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    for power in low as i32..=high as i32 {
        let y = up(10f64.powi(power));
        let _ = writeln!(
            out,
            "<path d=\"M{EDGE} {y:.1}H{:.1}\" stroke=\"#ddd\"/><text x=\"4\" y=\"{:.1}\">{} ms</text>",
            WIDTH - EDGE,
            y + 4.0,
            10f64.powi(power)
        );
    }
    for n in sessions() {
        let (x, y) = (along(n), HEIGHT - EDGE + 18.0);
        let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{n}</text>");
    }
    let lines = [("floor", "#888", 18.0), ("polyloop", "#0a6", 34.0)];
    for (at, (name, colour, y)) in lines.into_iter().enumerate() {
        let mut line = String::new();
        for point in &points {
            let letter = if line.is_empty() { 'M' } else { 'L' };
            let _ = write!(line, "{letter}{:.1} {:.1}", along(point.sessions), up(point.lags[at]));
        }
        let _ = writeln!(
            out,
            "<path d=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
        let _ = writeln!(
            out,
            "<text x=\"{EDGE}\" y=\"{y}\" fill=\"{colour}\">{name}: lag p99 of sessions that stream 50 chunks/s</text>"
        );
    }
    out + "</svg>\n"
}

/// What so many sessions came to, on both sides.
struct Point {
    sessions: usize,
    lags: [f64; 2],
}

impl Point {
    fn of(row: &Row) -> Option<Point> {
        let sessions = row.scenario.strip_suffix(" sessions").filter(|_| row.what == "lag p99")?;
        Some(Point {
            sessions: sessions.parse().ok()?,
            lags: [row.floor_median?, row.polyloop_median?],
        })
    }
}
