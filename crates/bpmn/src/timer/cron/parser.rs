//! Reading cron expressions.

use super::{DaysOfMonth, DaysOfWeek, Fields};

/// How many expressions one text can combine.
const MAXIMUM_ALTERNATIVES: usize = 64;

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 0 1 1 *"),
    ("@annually", "0 0 0 1 1 *"),
    ("@monthly", "0 0 0 1 * *"),
    ("@weekly", "0 0 0 * * 0"),
    ("@daily", "0 0 0 * * *"),
    ("@midnight", "0 0 0 * * *"),
    ("@hourly", "0 0 * * * *"),
];

/// What a field of an expression can say.
struct Field {
    name: &'static str,
    minimum: u8,
    maximum: u8,
    /// Names of the values from 1 on.
    names: &'static [&'static str],
}

const SECOND: Field = Field { name: "second", minimum: 0, maximum: 59, names: &[] };
const MINUTE: Field = Field { name: "minute", minimum: 0, maximum: 59, names: &[] };
const HOUR: Field = Field { name: "hour", minimum: 0, maximum: 23, names: &[] };
const DAY_OF_MONTH: Field = Field { name: "day of month", minimum: 1, maximum: 31, names: &[] };
const MONTH: Field = Field {
    name: "month",
    minimum: 1,
    maximum: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
/// Sunday is 0 and 7.
const DAY_OF_WEEK: Field =
    Field { name: "day of week", minimum: 0, maximum: 7, names: &["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"] };

/// All expressions that a text combines. The error completes a sentence after "since".
pub(super) fn parse(text: &str) -> Result<Vec<Fields>, String> {
    let mut alternatives = Vec::new();
    for part in text.split("||") {
        let fields: Vec<&str> = part.split_ascii_whitespace().collect();
        let count = fields.iter().map(|field| field.split('|').count()).max().unwrap_or(1);
        if count.saturating_add(alternatives.len()) > MAXIMUM_ALTERNATIVES {
            return Err(format!("it has more than {MAXIMUM_ALTERNATIVES} alternatives"));
        }
        for index in 0..count {
            let mut alternative = Vec::with_capacity(fields.len());
            for field in &fields {
                alternative.push(alternative_of(field, index, count)?);
            }
            alternatives.push(parse_expression(&alternative)?);
        }
    }
    Ok(alternatives)
}

/// One of the texts between `|`; a field without `|` is the same in all alternatives.
fn alternative_of(field: &str, index: usize, count: usize) -> Result<&str, String> {
    if !field.contains('|') {
        return Ok(field);
    }
    if field.split('|').count() != count {
        return Err(format!("fields with '|' have different numbers of alternatives: '{}'", shortened(field)));
    }
    match field.split('|').nth(index) {
        Some(alternative) if !alternative.is_empty() => Ok(alternative),
        _ => Err(format!("there is nothing on one side of a '|' in '{}'", shortened(field))),
    }
}

fn parse_expression(fields: &[&str]) -> Result<Fields, String> {
    if let [nickname] = fields
        && nickname.starts_with('@')
    {
        let Some((_, expression)) = NICKNAMES.iter().find(|(known, _)| known == nickname) else {
            let known = NICKNAMES.map(|(known, _)| known).join(", ");
            return Err(format!("'{}' is none of {known}", shortened(nickname)));
        };
        return parse_expression(&expression.split(' ').collect::<Vec<_>>());
    }
    let &[second, minute, hour, day_of_month, month, day_of_week] = fields else {
        return Err(format!(
            "a cron expression has 6 fields (second, minute, hour, day of month, month, day of week) and not {}",
            fields.len()
        ));
    };
    if day_of_month == "?" && day_of_week == "?" {
        return Err("day of month and day of week are both '?', so that no day is left".into());
    }
    Ok(Fields {
        seconds: SECOND.values(second)?,
        minutes: MINUTE.values(minute)?,
        hours: HOUR.values(hour)?,
        days_of_month: days_of_month(day_of_month)?,
        months: MONTH.values(month)?,
        days_of_week: days_of_week(day_of_week)?,
    })
}

impl Field {
    fn error(&self, text: &str, problem: &str) -> String {
        format!("the {} '{}' {problem}", self.name, shortened(text))
    }

    /// A bit for each value that a list of values, ranges and steps matches.
    fn values(&self, text: &str) -> Result<u64, String> {
        text.split(',').try_fold(0, |values, item| Ok(values | self.item(item)?))
    }

    /// `5`, `1-5`, `5/2`, `1-5/2`, `*`, `*/2` or `/2`.
    fn item(&self, item: &str) -> Result<u64, String> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(self.step(item, step)?)),
            None => (item, None),
        };
        let (from, to) = if range == "*" || range.is_empty() && step.is_some() {
            (self.minimum, self.maximum)
        } else if let Some((from, to)) = range.split_once('-') {
            self.range(range, from, to, step)?
        } else {
            let value = self.value(range)?;
            // A Sunday that is not the end of a range is 0, so that steps can continue from it.
            let value = if self.maximum == DAY_OF_WEEK.maximum && value == 7 { 0 } else { value };
            (value, if step.is_some() { self.maximum } else { value })
        };
        if from <= to {
            return Ok(bits(from, to, step.unwrap_or(1)));
        }
        Ok(bits(from, self.maximum, 1) | bits(self.minimum, to, 1))
    }

    /// Only days of the week can go backwards, as in `FRI-MON`, and without a step.
    fn range(&self, range: &str, from: &str, to: &str, step: Option<u8>) -> Result<(u8, u8), String> {
        let (from, to) = (self.value(from)?, self.value(to)?);
        if from <= to || self.maximum == DAY_OF_WEEK.maximum && step.is_none() {
            return Ok((from, to));
        }
        let problem = match step {
            None => "is a range that goes backwards; write two ranges with a comma between them",
            Some(_) => "is a range that goes backwards; write the single values with commas between them",
        };
        Err(self.error(range, problem))
    }

    fn value(&self, text: &str) -> Result<u8, String> {
        let value = match self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            Some(position) => u8::try_from(position + 1).ok(),
            None => number(text),
        };
        if let Some(value) = value.filter(|value| (self.minimum..=self.maximum).contains(value)) {
            return Ok(value);
        }
        let range = format!("a number from {} to {}", self.minimum, self.maximum);
        let problem = match self.names {
            [] => format!("is not {range}"),
            names => format!("is neither {range} nor one of {}", names.join(", ")),
        };
        Err(self.error(text, &problem))
    }

    fn step(&self, item: &str, step: &str) -> Result<u8, String> {
        number(step).filter(|step| (1..=self.maximum).contains(step)).ok_or_else(|| {
            self.error(item, &format!("has a step behind the '/' that is not a number from 1 to {}", self.maximum))
        })
    }
}

fn days_of_month(text: &str) -> Result<DaysOfMonth, String> {
    if text == "?" {
        return Ok(DaysOfMonth::Listed(bits(DAY_OF_MONTH.minimum, DAY_OF_MONTH.maximum, 1)));
    }
    let upper = text.to_ascii_uppercase();
    if !upper.contains(['L', 'W']) {
        return DAY_OF_MONTH.values(text).map(DaysOfMonth::Listed);
    }
    if upper.contains(',') {
        let problem = "has 'L' or 'W' in a list; write an expression for each of them and '||' between them";
        return Err(DAY_OF_MONTH.error(text, problem));
    }
    match upper.as_str() {
        "L" => return Ok(DaysOfMonth::Last { days_before: 0 }),
        "LW" => return Ok(DaysOfMonth::LastWeekday),
        _ => {}
    }
    let day = |text: &str| number(text).filter(|day| (1..=DAY_OF_MONTH.maximum).contains(day));
    if let Some(days_before) = upper.strip_prefix("L-").and_then(day) {
        return Ok(DaysOfMonth::Last { days_before });
    }
    if let Some(day) = upper.strip_suffix('W').and_then(day) {
        return Ok(DaysOfMonth::NearestWeekday(day));
    }
    Err(DAY_OF_MONTH.error(text, "is none of L, L-1 to L-31, LW and 1W to 31W"))
}

fn days_of_week(text: &str) -> Result<DaysOfWeek, String> {
    let mut days = DaysOfWeek::default();
    if text == "?" {
        days.every = bits(DAY_OF_WEEK.minimum, DAY_OF_WEEK.maximum, 1);
    } else {
        for item in text.split(',') {
            add_days_of_week(item, &mut days)?;
        }
    }
    days.every = with_one_sunday(days.every);
    days.last = with_one_sunday(days.last);
    days.occurrences = days.occurrences.map(with_one_sunday);
    Ok(days)
}

fn add_days_of_week(item: &str, days: &mut DaysOfWeek) -> Result<(), String> {
    if item.eq_ignore_ascii_case("L") {
        // The last day of the week, and not of the month.
        days.every |= 1;
    } else if let Some(day) = item.strip_suffix(['L', 'l']) {
        days.last |= 1 << DAY_OF_WEEK.value(day)?;
    } else if let Some((day, occurrence)) = item.split_once('#') {
        let selected = 1 << DAY_OF_WEEK.value(day)?;
        let week = number(occurrence).and_then(|occurrence| usize::from(occurrence).checked_sub(1));
        let Some(week) = week.and_then(|week| days.occurrences.get_mut(week)) else {
            return Err(DAY_OF_WEEK.error(item, "does not have a number from 1 to 5 behind the '#'"));
        };
        *week |= selected;
    } else {
        days.every |= DAY_OF_WEEK.item(item)?;
    }
    Ok(())
}

/// Moves bit 7 to bit 0.
fn with_one_sunday(days: u64) -> u64 {
    (days | days >> 7) & 0x7F
}

/// The bits of `from`, `from + step` and so on up to `to`.
fn bits(from: u8, to: u8, step: u8) -> u64 {
    (from..=to).step_by(usize::from(step)).fold(0, |values, value| values | 1 << value)
}

fn number(text: &str) -> Option<u8> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits { text.parse().ok() } else { None }
}

fn shortened(text: &str) -> std::borrow::Cow<'_, str> {
    super::super::shortened(text)
}
