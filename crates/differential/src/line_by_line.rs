//! Programs of the reference that answer every line with a line, and why their answers are known to differ from ours.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use regex::Regex;

use crate::reference::Launch;

/// How many differences are shown.
const SHOWN_MAX: usize = 60;

/// A failure of the comparison itself.
pub type Failure = Box<dyn std::error::Error>;

/// The answers of one of the reference's classes, in the order of the lines.
///
/// # Errors
/// When it cannot be started, or does not answer every line.
pub fn answers(launch: &Launch, class: &str, lines: Vec<String>) -> Result<Vec<String>, Failure> {
    let mut child = Command::new(&launch.java)
        .args(["-Xmx1g", "-Xss8m", "-cp", &launch.class_path, class])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("the reference has no input")?;
    let output = child.stdout.take().ok_or("the reference has no output")?;
    let count = lines.len();
    let writer = std::thread::spawn(move || lines.iter().try_for_each(|line| writeln!(input, "{line}")));
    let answers: Result<Vec<String>, _> = BufReader::new(output).lines().collect();
    let status = child.wait()?;
    let answers = answers?;
    if answers.len() != count {
        return Err(format!("the reference answered {} of {count} lines and ended with {status}", answers.len()).into());
    }
    writer.join().map_err(|_| "the thread that writes to the reference ended")??;
    Ok(answers)
}

/// Why differences are known: a reason, and how the case, the reference's answer and ours look together.
pub struct KnownReasons(Vec<(Regex, &'static str)>);

impl KnownReasons {
    /// Reads lines `reason :: regular expression`. Lines that begin with `#` are comments.
    ///
    /// # Errors
    /// When a line is none of these.
    pub fn read(lines: &'static str) -> Result<KnownReasons, Failure> {
        let lines = lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let known = lines.map(|line| {
            let (reason, pattern) =
                line.split_once(" :: ").ok_or_else(|| format!("'{line}' has no ' :: ' between reason and pattern"))?;
            Ok((Regex::new(pattern)?, reason))
        });
        Ok(KnownReasons(known.collect::<Result<_, Failure>>()?))
    }

    fn of(&self, shown: &str) -> Option<&'static str> {
        self.0.iter().find(|(pattern, _)| pattern.is_match(shown)).map(|(_, reason)| *reason)
    }
}

/// A case, its result on both sides, and a note that is printed with it.
type Shown = [String; 4];

/// What was compared so far.
#[derive(Default)]
pub struct Comparison {
    same: usize,
    explained: BTreeMap<&'static str, Vec<Shown>>,
    different: Vec<Shown>,
}

impl Comparison {
    /// Counts a case on which both agree.
    pub fn agree(&mut self) {
        self.same += 1;
    }

    /// Counts a difference, which is known if a pattern finds `case TAB theirs TAB ours`. The note is printed with it.
    pub fn differ(&mut self, known: &KnownReasons, case: &str, [theirs, ours]: [&str; 2], note: &str) {
        let shown = [case, theirs, ours, note].map(str::to_owned);
        match known.of(&format!("{case}\t{theirs}\t{ours}")) {
            Some(reason) => self.explained.entry(reason).or_default().push(shown),
            None => self.different.push(shown),
        }
    }

    /// Whether nothing differs but for a known reason.
    pub fn agrees(&self) -> bool {
        self.different.is_empty()
    }

    /// What differs for no known reason.
    pub fn unexplained(&self) -> Vec<String> {
        self.different.iter().map(shown).collect()
    }

    /// Prints what differs, short cases first, and how often what is known was found, or each of them.
    pub fn print(mut self, things: &str, with_known: bool) {
        sort(&mut self.different);
        for case in self.different.iter().take(SHOWN_MAX) {
            println!("{}", shown(case));
        }
        let mut explained = 0;
        for (reason, mut known) in self.explained {
            println!("{:6} differ: {reason}", known.len());
            explained += known.len();
            sort(&mut known);
            known.iter().filter(|_| with_known).for_each(|case| println!("{}", shown(case)));
        }
        let (same, different) = (self.same, self.different.len());
        let count = same + explained + different;
        println!("{count} {things}: {same} same, {explained} differ for a known reason, {different} differ");
    }
}

fn sort(cases: &mut Vec<Shown>) {
    cases.sort_by_key(|[case, theirs, ours, _]| case.len() + theirs.len() + ours.len());
    cases.dedup();
}

fn shown([case, theirs, ours, note]: &Shown) -> String {
    format!("{case}\n    reference: {theirs}\n    ours:      {ours}{note}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_known_only_as_its_pattern_says() {
        let known = KnownReasons::read("# some\nless exact :: ^div\\(.*\t1\t1\\.5$").expect("readable");
        let mut comparison = Comparison::default();
        comparison.agree();
        comparison.differ(&known, "div(3, 2)", ["1", "1.5"], "");
        assert!(comparison.agrees());
        comparison.differ(&known, "div(3, 2)", ["1", "2"], "");
        assert!(!comparison.agrees());
        assert!(KnownReasons::read("a line without a pattern").is_err());
        assert!(KnownReasons::read("no pattern :: (").is_err());
    }

    #[test]
    fn the_stored_reasons_are_readable() {
        for lines in
            [include_str!("../known-expression-differences.txt"), include_str!("../known-table-differences.txt")]
        {
            KnownReasons::read(lines).expect("readable");
        }
    }
}
