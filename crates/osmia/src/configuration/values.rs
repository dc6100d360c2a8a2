//! Reads single values. The error completes the sentence "it must be …".

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

type Value<T> = Result<T, &'static str>;

pub(super) fn directory(text: &str) -> Value<PathBuf> {
    if text.is_empty() { Err("a path") } else { Ok(PathBuf::from(text)) }
}

pub(super) fn host(text: &str) -> Value<String> {
    if text.is_empty() { Err("a host name or an address") } else { Ok(text.to_owned()) }
}

pub(super) fn port(text: &str) -> Value<u16> {
    number(text, 0, u16::MAX, "a port from 0 to 65535, where 0 takes a free one")
}

/// Where a node listens for others, which must know the port.
pub(super) fn member_port(text: &str) -> Value<u16> {
    number(text, 1, u16::MAX, "a port from 1 to 65535")
}

/// Where clients are said to find the node: `host`, `host:port` or `[::1]:port`.
pub(super) fn client_address(text: &str) -> Value<(String, Option<u16>)> {
    const EXPECTED: &str = "a host or an address, and perhaps a port, like osmia-0.example.com:26500";
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':').or(if port.is_empty() { None } else { Some("") })),
        // A colon is either before the port, or there are several in an address.
        None if text.matches(':').count() > 1 => (text, None),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() || host.contains(['/', ' ', ',']) {
        return Err(EXPECTED);
    }
    let port = port.map(|port| number(port, 1, u16::MAX, EXPECTED)).transpose()?;
    Ok((host.to_owned(), port))
}

/// How long a node serves after it says that it stops. Whoever stops it waits meanwhile.
pub(super) fn drain(text: &str) -> Value<Duration> {
    const LONGEST_DRAIN: Duration = Duration::from_secs(600);
    const EXPECTED: &str = "a duration of at most 10m like 0s, 500ms, 2s or PT2S";
    duration(text).ok().filter(|time| *time <= LONGEST_DRAIN).ok_or(EXPECTED)
}

pub(super) fn switch(text: &str) -> Value<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("true or false"),
    }
}

pub(super) fn number<T: FromStr + PartialOrd>(text: &str, least: T, most: T, expected: &'static str) -> Value<T> {
    text.parse().ok().filter(|value| *value >= least && *value <= most).ok_or(expected)
}

/// `64MB`, `1GiB` or a number of bytes; a kilobyte has 1,024 bytes under either name.
pub(super) fn bytes(text: &str) -> Value<u64> {
    const EXPECTED: &str = "a number of bytes like 64MB, 1GB or 1073741824";
    let lower = text.trim().to_ascii_lowercase();
    let unit_at = lower.find(|character: char| !character.is_ascii_digit()).unwrap_or(lower.len());
    let (digits, unit) = lower.split_at(unit_at);
    let power = match unit.trim() {
        "" | "b" => 0,
        "kb" | "kib" => 1,
        "mb" | "mib" => 2,
        "gb" | "gib" => 3,
        "tb" | "tib" => 4,
        _ => return Err(EXPECTED),
    };
    let number: u64 = digits.parse().map_err(|_| EXPECTED)?;
    number.checked_mul(1 << (10 * power)).ok_or(EXPECTED)
}

/// What the engine takes as the limit of a process instance's variables.
pub(super) fn root_variable_bytes(text: &str) -> Value<u64> {
    match bytes(text)? {
        bytes if !(1 << 20..=1 << 40).contains(&bytes) => Err("a number of bytes from 1MB to 1TB"),
        bytes => Ok(bytes),
    }
}

/// What is noted in the audit log.
pub(super) fn doings(text: &str) -> Value<readmodel::Noted> {
    readmodel::Noted::read(text).ok_or(
        "a list of what is noted, like 'user-tasks, cancel process-instance' or 'all, not variable': all, none, deployed-resources, \
         user-tasks, admin, process-instance, variable, incident, decision, resource, user-task, or create, cancel, modify, migrate, \
         update, resolve, evaluate, delete, assign, unassign and complete, with one of them behind it or alone",
    )
}

/// What an exporter may hold back: at least a segment of records, and the one behind it.
pub(super) fn backlog_bytes(text: &str) -> Value<u64> {
    match bytes(text)? {
        bytes if bytes < 64 << 20 => Err("a number of bytes of at least 64MB"),
        bytes => Ok(bytes),
    }
}

/// The shortest time in which anything can be done.
const SHORTEST: Duration = Duration::from_millis(10);

/// A duration that is not so short that nothing can be done in it.
pub(super) fn working_time(text: &str) -> Value<Duration> {
    match duration(text)? {
        time if time < SHORTEST => Err("a duration of at least 10ms and at most 7 days like 500ms, 15s or PT15S"),
        time => Ok(time),
    }
}

/// A duration. Nothing that has ended is deleted while a search waits, so it is short.
pub(super) fn search_wait(text: &str) -> Value<Duration> {
    const LONGEST_SEARCH_WAIT: Duration = Duration::from_secs(60);
    const EXPECTED: &str = "a duration of at most 60s like 0, 500ms, 2s or PT2S";
    duration(text).ok().filter(|time| *time <= LONGEST_SEARCH_WAIT).ok_or(EXPECTED)
}

/// `30d`, `P30D`, or a duration; at least a minute, so that nothing goes before it was seen.
pub(super) fn age(text: &str) -> Value<Duration> {
    const EXPECTED: &str = "an age of at least a minute like 12h, 30d or P30D";
    const DAY: u64 = 24 * 60 * 60;
    const LONGEST_DAYS: u64 = 36_500;
    let lower = text.trim().to_ascii_lowercase();
    let age = match lower.strip_suffix('d') {
        Some(days) => {
            let days: u64 = days.strip_prefix('p').unwrap_or(days).parse().map_err(|_| EXPECTED)?;
            if days > LONGEST_DAYS {
                return Err("an age of at most 36500 days");
            }
            Duration::from_secs(days * DAY)
        }
        None => duration(text).map_err(|_| EXPECTED)?,
    };
    if age < Duration::from_secs(60) { Err(EXPECTED) } else { Ok(age) }
}

/// `500ms`, `15s`, `10m`, `2h`, `PT15S` or a number of milliseconds.
pub(crate) fn duration(text: &str) -> Value<Duration> {
    const EXPECTED: &str = "a duration of at most 7 days like 500ms, 15s, 10m, PT15S or a number of milliseconds";
    const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
    let lower = text.trim().to_ascii_lowercase();
    let plain = lower.strip_prefix("pt").unwrap_or(&lower);
    let (digits, milliseconds) = if let Some(digits) = plain.strip_suffix("ms") {
        (digits, 1.0)
    } else if let Some(digits) = plain.strip_suffix('s') {
        (digits, 1e3)
    } else if let Some(digits) = plain.strip_suffix('m') {
        (digits, 60e3)
    } else if let Some(digits) = plain.strip_suffix('h') {
        (digits, 3600e3)
    } else {
        (plain, 1.0)
    };
    let number: f64 = digits.parse().map_err(|_| EXPECTED)?;
    let duration = Duration::try_from_secs_f64(number * milliseconds / 1e3).map_err(|_| EXPECTED)?;
    if duration > LONGEST { Err(EXPECTED) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_all_units() {
        for (text, expected) in [("0", 0), ("17", 17), ("3KB", 3 << 10), ("64 MiB", 64 << 20), ("2gb", 2 << 30)] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "MB", "-1", "1.5GB", "5 apples", "99999999TB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_in_all_notations() {
        for (text, milliseconds) in
            [("500ms", 500), ("15s", 15_000), ("PT0.5S", 500), ("PT15M", 900_000), ("2h", 7_200_000), ("250", 250)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "-1s", "1d", "nan", "1e99h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn clients_are_sent_to_a_host_with_or_without_a_port() {
        let of = |host: &str, port| Ok((host.to_owned(), port));
        assert_eq!(client_address("osmia-0"), of("osmia-0", None));
        assert_eq!(client_address("osmia-0:31000"), of("osmia-0", Some(31_000)));
        assert_eq!([client_address("::1"), client_address("[::1]:5")], [of("::1", None), of("::1", Some(5))]);
        for wrong in ["", ":1", "a:0", "a:", "[::1]5", "http://a:1", "a,b"] {
            assert!(client_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_search_waits_for_a_minute_at_most() {
        for (text, milliseconds) in [("0", 0), ("PT2S", 2_000), ("1m", 60_000)] {
            assert_eq!(search_wait(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["61s", "soon"] {
            assert!(search_wait(text).is_err_and(|said| said.contains("at most 60s")), "{text}");
        }
    }

    #[test]
    fn ages_have_days_and_are_not_so_short_that_nothing_is_seen() {
        const DAY: u64 = 24 * 60 * 60;
        for (text, seconds) in [("30d", 30 * DAY), ("P1D", DAY), ("36500d", 36_500 * DAY), ("90m", 5_400), ("60s", 60)]
        {
            assert_eq!(age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "d", "-1d", "0d", "59s", "36501d", "99999999999999999999d", "1.5d", "30 d"] {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
