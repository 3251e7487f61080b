//! Holds what was counted against what was counted before.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::run::Counts;

/// More than this above what was kept is a regression, in hundredths,
const TOLERANCE: f64 = 5.0;
/// unless it is less than so many instructions.
const SLACK: f64 = 25.0;

const HEAD: &str = "\
# Instructions of one round of each, counted by `cargo xtask bench --only instructions`, which
# writes them anew with --update. Only x86_64, and only for the compiler that the workspace names.
";

/// What was kept, by name.
pub fn read(text: &str) -> Result<BTreeMap<String, u64>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let read = |line: &str| {
        let bad = || format!("{line:?} is no `name: count`; write the file anew with --update");
        let (name, count) = line.rsplit_once(": ").ok_or_else(bad)?;
        Ok((name.to_owned(), count.parse().map_err(|_| bad())?))
    };
    lines.map(read).collect()
}

pub fn write(counts: &Counts) -> String {
    let mut text = HEAD.to_owned();
    for (name, count) in counts {
        let _ = writeln!(text, "{name}: {count:.0}");
    }
    text
}

/// A table for people, and what is wrong.
pub fn compare(kept: &BTreeMap<String, u64>, counts: &Counts) -> (String, Vec<String>) {
    let mut table = format!("{:32} {:>10} {:>10} {:>8}\n", "", "kept", "now", "");
    let mut wrong = Vec::new();
    for (name, now) in counts {
        let Some(&before) = kept.get(name) else {
            let _ = writeln!(table, "{name:32} {:>10} {now:>10.0}", "-");
            wrong.push(format!("{name}: nothing was kept of it; keep it with --update"));
            continue;
        };
        let before = before as f64;
        let change = (now / before - 1.0) * 100.0;
        let _ = writeln!(table, "{name:32} {before:>10.0} {now:>10.0} {change:>+7.1}%");
        if change > TOLERANCE && now - before > SLACK {
            wrong.push(format!(
                "{name}: {now:.0} instructions, {change:.1} % more than the {before:.0} that were \
                 kept; make it cheaper, or keep the new count with --update"
            ));
        }
    }
    let counted = |name: &String| counts.iter().any(|(counted, _)| counted == name);
    for name in kept.keys().filter(|name| !counted(name)) {
        wrong.push(format!("{name}: is kept and was not counted; leave it out with --update"));
    }
    (table, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&str, f64)]) -> Counts {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn what_was_written_is_read_and_equals_itself() {
        let counted = counts(&[("a b", 1_000.4), ("c", 7.0)]);
        let kept = read(&write(&counted)).unwrap();
        assert_eq!(kept, BTreeMap::from([("a b".to_owned(), 1_000), ("c".to_owned(), 7)]));
        assert_eq!(compare(&kept, &counted).1, Vec::<String>::new());
    }

    #[test]
    fn more_is_wrong_and_so_is_what_nobody_kept_or_counted() {
        let kept = read("# head\n\na: 1000\nsmall: 10\ngone: 5\n").unwrap();
        let wrong = compare(&kept, &counts(&[("a", 1_051.0), ("small", 30.0), ("new", 1.0)])).1;
        let about: Vec<&str> = wrong.iter().filter_map(|w| w.split(':').next()).collect();
        assert_eq!(about, ["a", "new", "gone"]);
        let fine = counts(&[("a", 1_049.0), ("small", 10.0), ("gone", 2.0)]);
        assert_eq!(compare(&kept, &fine).1, Vec::<String>::new());
        assert!(read("a 5").is_err());
    }
}
