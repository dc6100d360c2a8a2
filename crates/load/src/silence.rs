//! The longest time without an acknowledgement, which is how clients see a failover.

use std::collections::BTreeMap;
use std::fmt::{self, Formatter};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::model::date;
use crate::schedule::Timeline;
use crate::table::row;

/// Longer times without an acknowledgement are kept one by one.
const GAP: Duration = Duration::from_millis(50);
/// How many of them; further ones are only counted.
const GAPS_MAX: usize = 10_000;
/// The bits of a key below the partition that made it.
const COUNTER_BITS: u32 = 51;

/// Times without an acknowledgement, in the measured time.
#[derive(Clone, Debug, Serialize)]
pub struct SilenceReport {
    /// The longest over all partitions; none when nothing was acknowledged.
    pub longest: Option<Gap>,
    /// The longest of each partition, which the keys of instances and jobs name. While one partition has no leader the
    /// others still acknowledge.
    pub by_partition: Vec<Gap>,
    /// All that were longer than 50 ms, in the order of their ends.
    pub gaps: Vec<Gap>,
    /// Further ones that are not listed.
    pub gaps_left_out: u64,
}

/// A time without an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gap {
    /// Of this partition; without it of all.
    pub partition: Option<i64>,
    /// When the last acknowledgement before came, in milliseconds since the Unix epoch.
    pub from: u64,
    /// How long it lasted, in milliseconds.
    pub milliseconds: f64,
}

/// Follows the acknowledgements in a span of time.
#[derive(Default)]
pub(crate) struct Silence {
    start: Duration,
    end: Duration,
    all: Option<Line>,
    partitions: BTreeMap<i64, Line>,
    gaps: Vec<(Option<i64>, Span)>,
    left_out: u64,
}

#[derive(Clone, Copy)]
struct Span {
    from: Duration,
    lasted: Duration,
}

#[derive(Clone, Copy)]
struct Line {
    last: Duration,
    longest: Span,
}

impl Line {
    fn new(start: Duration) -> Line {
        Line { last: start, longest: Span { from: start, lasted: Duration::ZERO } }
    }

    /// Something was acknowledged. Returns the time before it.
    fn acknowledged(&mut self, now: Duration) -> Span {
        let span = Span { from: self.last, lasted: now.saturating_sub(self.last) };
        if span.lasted > self.longest.lasted {
            self.longest = span;
        }
        self.last = self.last.max(now);
        span
    }
}

impl Silence {
    pub fn between(start: Duration, end: Duration) -> Self {
        Silence { start, end, ..Silence::default() }
    }

    /// A command was acknowledged: the key says by which partition.
    pub fn acknowledged(&mut self, now: Duration, key: Option<i64>) {
        if now < self.start || now >= self.end {
            return;
        }
        let span = self.all.get_or_insert(Line::new(self.start)).acknowledged(now);
        self.keep(None, span);
        if let Some(partition) = key.map(|key| key >> COUNTER_BITS) {
            let span = self.partitions.entry(partition).or_insert(Line::new(self.start)).acknowledged(now);
            self.keep(Some(partition), span);
        }
    }

    fn keep(&mut self, partition: Option<i64>, span: Span) {
        if span.lasted <= GAP {
        } else if self.gaps.len() < GAPS_MAX {
            self.gaps.push((partition, span));
        } else {
            self.left_out += 1;
        }
    }

    /// What was found until now; what still lasts counts too.
    pub fn report(&mut self, timeline: Timeline) -> SilenceReport {
        let now = timeline.now();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.report_at(now, since_epoch.saturating_sub(now))
    }

    /// `begin` is when the timeline began, since the Unix epoch.
    fn report_at(&mut self, now: Duration, begin: Duration) -> SilenceReport {
        let end = now.min(self.end);
        let lines = self.all.iter_mut().map(|line| (None, line));
        let lines = lines.chain(self.partitions.iter_mut().map(|(partition, line)| (Some(*partition), line)));
        let lasting: Vec<(Option<i64>, Span)> =
            lines.map(|(partition, line)| (partition, line.acknowledged(end))).collect();
        lasting.into_iter().for_each(|(partition, span)| self.keep(partition, span));
        let gap = |partition: Option<i64>, span: Span| Gap {
            partition,
            from: u64::try_from((begin + span.from).as_millis()).unwrap_or(u64::MAX),
            milliseconds: span.lasted.as_secs_f64() * 1e3,
        };
        SilenceReport {
            longest: self.all.map(|line| gap(None, line.longest)),
            by_partition: self.partitions.iter().map(|(number, line)| gap(Some(*number), line.longest)).collect(),
            gaps: self.gaps.iter().map(|(partition, span)| gap(*partition, *span)).collect(),
            gaps_left_out: self.left_out,
        }
    }
}

/// A time in milliseconds since the Unix epoch, as a date.
pub(crate) fn moment(milliseconds: u64) -> String {
    let seconds = date(milliseconds / 1_000);
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), milliseconds % 1_000)
}

impl fmt::Display for Gap {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.1} ms from {}", self.milliseconds, moment(self.from))
    }
}

impl SilenceReport {
    pub(crate) fn write_text(&self, formatter: &mut Formatter<'_>, with_gaps: bool) -> fmt::Result {
        let Some(longest) = &self.longest else {
            return row(formatter, "longest without acknowledgement", "nothing was acknowledged");
        };
        row(formatter, "longest without acknowledgement", longest)?;
        for gap in self.by_partition.iter().filter(|_| self.by_partition.len() > 1) {
            row(formatter, &format!("  of partition {}", gap.partition.unwrap_or_default()), gap)?;
        }
        for gap in self.gaps.iter().filter(|_| with_gaps) {
            let of = gap.partition.map_or("of all".to_owned(), |partition| format!("of partition {partition}"));
            row(formatter, &format!("gap {of}"), gap)?;
        }
        if with_gaps && self.gaps_left_out > 0 {
            row(formatter, "gaps that are not listed", self.gaps_left_out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn gaps_are_those_of_all_and_of_each_partition() {
        let mut silence = Silence::between(milliseconds(100), milliseconds(1_000));
        let key = |partition: i64| Some((partition << COUNTER_BITS) + 7);
        // Before the span.
        silence.acknowledged(milliseconds(90), key(1));
        for (now, partition) in [(110, 1), (140, 2), (180, 1), (280, 1), (300, 2), (990, 1), (995, 2)] {
            silence.acknowledged(milliseconds(now), key(partition));
        }
        silence.acknowledged(milliseconds(1_500), key(2));
        let report = silence.report_at(milliseconds(1_600), Duration::from_secs(1_000));
        let gap =
            |partition, from: u64, lasted: u64| Gap { partition, from: 1_000_000 + from, milliseconds: lasted as f64 };
        assert_eq!(report.longest, Some(gap(None, 300, 690)));
        assert_eq!(report.by_partition, [gap(Some(1), 280, 710), gap(Some(2), 300, 695)]);
        let of_all: Vec<Gap> = report.gaps.iter().filter(|gap| gap.partition.is_none()).copied().collect();
        assert_eq!(of_all, [gap(None, 180, 100), gap(None, 300, 690)]);
        assert_eq!(report.longest.expect("there is one").to_string(), "690.0 ms from 1970-01-01T00:16:40.300Z");
    }

    #[test]
    fn a_silence_until_the_end_counts() {
        let mut silence = Silence::between(Duration::ZERO, milliseconds(1_000));
        assert_eq!(silence.report_at(milliseconds(500), Duration::ZERO).longest, None);
        silence.acknowledged(milliseconds(10), None);
        let report = silence.report_at(milliseconds(2_000), Duration::ZERO);
        assert_eq!(report.longest, Some(Gap { partition: None, from: 10, milliseconds: 990.0 }));
        assert_eq!((report.gaps.len(), report.by_partition.len()), (1, 0));
    }
}
