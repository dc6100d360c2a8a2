//! Due dates of timers, and what is refused.

use std::time::{Duration, Instant};

use bpmn::timer::{ENDLESS, MAXIMUM_TEXT_BYTES, Timer, TimerKind};
use chance::Chance;
use jiff::Timestamp;

/// Kind; text; when it starts; by how many milliseconds it is seen late each time; repetitions; due dates.
///
/// The expected values were computed with the classes of Camunda 8.8 on `java.time` and cron-utils 9.2.1, in UTC.
const DUE_DATES: &str = "
# Durations
duration; PT1S; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T00:00:01Z
duration; PT1H30M; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T01:30:00Z
duration; PT10S; 2025-01-01T00:00:00.250Z; 0; 1; 2025-01-01T00:00:10.250Z
duration; PT0S; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T00:00:00Z
duration; PT36H; 2025-02-28T12:00:00Z; 0; 1; 2025-03-02T00:00:00Z
duration; PT1.5S; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T00:00:01.500Z
duration; PT1,25S; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T00:00:01.250Z
duration; PT0.000999999S; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T00:00:00Z
duration; PT2.S; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T00:00:02Z
duration; PT-0.0015S; 2025-01-01T00:00:00Z; 0; 1; 2024-12-31T23:59:59.999Z
duration; -PT0.0005S; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T00:00:00Z
duration; -PT15M; 2025-01-01T00:00:00Z; 0; 1; 2024-12-31T23:45:00Z
duration; PT-15M; 2025-01-01T00:00:00Z; 0; 1; 2024-12-31T23:45:00Z
duration; -PT-6H+3M; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T05:57:00Z
duration; +PT5M; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T00:05:00Z
duration; PT0090M; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T01:30:00Z
duration; PT2h3m4s; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T02:03:04Z
duration; pT2H; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T02:00:00Z
duration; P1D; 2025-03-29T12:00:00Z; 0; 1; 2025-03-30T12:00:00Z
duration; p1d; 2025-03-29T12:00:00Z; 0; 1; 2025-03-30T12:00:00Z
duration; P1W; 2025-12-28T00:00:00Z; 0; 1; 2026-01-04T00:00:00Z
duration; P1W2D; 2025-12-28T00:00:00Z; 0; 1; 2026-01-06T00:00:00Z
duration; P1M; 2025-01-31T10:00:00Z; 0; 1; 2025-02-28T10:00:00Z
duration; P1M; 2024-01-31T10:00:00Z; 0; 1; 2024-02-29T10:00:00Z
duration; P1M; 2024-01-29T10:00:00Z; 0; 1; 2024-02-29T10:00:00Z
duration; P3M; 2025-11-30T10:00:00Z; 0; 1; 2026-02-28T10:00:00Z
duration; P13M; 2025-01-31T10:00:00Z; 0; 1; 2026-02-28T10:00:00Z
duration; P1Y; 2024-02-29T10:00:00Z; 0; 1; 2025-02-28T10:00:00Z
duration; P4Y; 2024-02-29T10:00:00Z; 0; 1; 2028-02-29T10:00:00Z
duration; P100Y; 2000-02-29T10:00:00Z; 0; 1; 2100-02-28T10:00:00Z
duration; P1M1D; 2025-01-31T10:00:00Z; 0; 1; 2025-03-01T10:00:00Z
duration; P1Y2M3DT4H; 2025-01-01T00:00:00Z; 0; 1; 2026-03-04T04:00:00Z
duration; P1Y2M3W4DT5H6M7.008S; 2025-01-01T00:00:00Z; 0; 1; 2026-03-26T05:06:07.008Z
duration; -P1M; 2025-03-31T10:00:00Z; 0; 1; 2025-02-28T10:00:00Z
duration; P-1M; 2024-03-31T10:00:00Z; 0; 1; 2024-02-29T10:00:00Z
duration; P-1DT2H; 2025-01-01T00:00:00Z; 0; 1; 2024-12-31T02:00:00Z
duration; -P1DT2H; 2025-01-01T00:00:00Z; 0; 1; 2024-12-30T22:00:00Z
duration; -P1Y-1M; 2025-01-31T00:00:00Z; 0; 1; 2024-02-29T00:00:00Z
duration; P1Y-12M; 2025-01-31T00:00:00Z; 0; 1; 2025-01-31T00:00:00Z
duration; P1Y-12MT-0.0005S; 2025-01-31T00:00:00Z; 0; 1; 2025-01-30T23:59:59.999Z
duration; P0D; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T00:00:00Z
duration; P1MT-1H; 2025-01-31T00:30:00Z; 0; 1; 2025-02-27T23:30:00Z
duration; P1D; 1969-12-31T23:59:59.999Z; 0; 1; 1970-01-01T23:59:59.999Z
duration; P1M; 1900-01-31T00:00:00Z; 0; 1; 1900-02-28T00:00:00Z
duration; P2000Y; 2025-02-28T00:00:00Z; 0; 1; 4025-02-28T00:00:00Z
duration; /PT1H; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T01:00:00Z
duration; 2025-06-01T00:00:00Z/PT1H; 2025-01-01T00:00:00Z; 0; 1; 2025-06-01T00:00:00Z
duration; 2024-06-01T00:00:00Z/PT1H; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T00:00:00Z
# Dates
date; 2025-01-01T00:00:00Z; 2024-12-01T00:00:00Z; 0; 1; 2025-01-01T00:00:00Z
date; 2025-01-01T00:00:00Z; 2025-06-01T00:00:00Z; 0; 1; 2025-01-01T00:00:00Z
date; 2025-01-01T00:00Z; 2024-12-01T00:00:00Z; 0; 1; 2025-01-01T00:00:00Z
date; 2025-01-01t00:00:00z; 2024-12-01T00:00:00Z; 0; 1; 2025-01-01T00:00:00Z
date; 2025-01-01T00:00:00.123456789Z; 2024-12-01T00:00:00Z; 0; 1; 2025-01-01T00:00:00.123Z
date; 2025-01-01T00:00:00.Z; 2024-12-01T00:00:00Z; 0; 1; 2025-01-01T00:00:00Z
date; 2025-01-01T00:00:00.5-00:30; 2024-12-01T00:00:00Z; 0; 1; 2025-01-01T00:30:00.500Z
date; 1969-12-31T23:59:59.9999Z; 2024-12-01T00:00:00Z; 0; 1; 1969-12-31T23:59:59.999Z
date; 2025-01-01T00:00:00+01:00; 2024-12-01T00:00:00Z; 0; 1; 2024-12-31T23:00:00Z
date; 2025-01-01T00:00:00+01; 2024-12-01T00:00:00Z; 0; 1; 2024-12-31T23:00:00Z
date; 2025-01-01T00:00:00-05:30; 2024-12-01T00:00:00Z; 0; 1; 2025-01-01T05:30:00Z
date; 2025-01-01T00:00:00+18:00; 2024-12-01T00:00:00Z; 0; 1; 2024-12-31T06:00:00Z
date; 2025-01-01T00:00:00-17:59:59; 2024-12-01T00:00:00Z; 0; 1; 2025-01-01T17:59:59Z
date; 2025-01-01T00:00:00+01:00[Europe/Berlin]; 2024-12-01T00:00:00Z; 0; 1; 2024-12-31T23:00:00Z
date; 2025-01-01T00:00:00+02:00[Europe/Berlin]; 2024-12-01T00:00:00Z; 0; 1; 2024-12-31T22:00:00Z
date; 2025-07-01T00:00:00Z[America/New_York]; 2024-12-01T00:00:00Z; 0; 1; 2025-07-01T00:00:00Z
date; 2025-07-01T00:00:00Z[UTC]; 2024-12-01T00:00:00Z; 0; 1; 2025-07-01T00:00:00Z
date; 2025-07-01T00:00:00+05:00[+05:00]; 2024-12-01T00:00:00Z; 0; 1; 2025-06-30T19:00:00Z
date; 2025-07-01T00:00:00Z[UTC+05:00]; 2024-12-01T00:00:00Z; 0; 1; 2025-07-01T00:00:00Z
date; 2025-07-01T00:00:00Z[Z]; 2024-12-01T00:00:00Z; 0; 1; 2025-07-01T00:00:00Z
date; 2024-02-29T23:59:59Z; 2024-12-01T00:00:00Z; 0; 1; 2024-02-29T23:59:59Z
date; 0001-01-01T00:00:00Z; 2024-12-01T00:00:00Z; 0; 1; 0001-01-01T00:00:00Z
date; -0001-12-31T00:00:00Z; 2024-12-01T00:00:00Z; 0; 1; -000001-12-31T00:00:00Z
# Repeating intervals
cycle; R3/PT10S; 2025-01-01T00:00:00Z; 0; 3; 2025-01-01T00:00:10Z 2025-01-01T00:00:20Z 2025-01-01T00:00:30Z
cycle; R/PT10S; 2025-01-01T00:00:00Z; 0; -1; 2025-01-01T00:00:10Z 2025-01-01T00:00:20Z 2025-01-01T00:00:30Z 2025-01-01T00:00:40Z
cycle; R1/PT10S; 2025-01-01T00:00:00Z; 0; 1; 2025-01-01T00:00:10Z
cycle; R0/PT10S; 2025-01-01T00:00:00Z; 0; 0; 2025-01-01T00:00:10Z
cycle; R-1/PT10S; 2025-01-01T00:00:00Z; 0; -1; 2025-01-01T00:00:10Z 2025-01-01T00:00:20Z 2025-01-01T00:00:30Z
cycle; R-5/PT10S; 2025-01-01T00:00:00Z; 0; -5; 2025-01-01T00:00:10Z
cycle; R+2/PT10S; 2025-01-01T00:00:00Z; 0; 2; 2025-01-01T00:00:10Z 2025-01-01T00:00:20Z
cycle; R2147483647/PT10S; 2025-01-01T00:00:00Z; 0; 2147483647; 2025-01-01T00:00:10Z 2025-01-01T00:00:20Z
cycle; R//PT10S; 2025-01-01T00:00:00Z; 0; -1; 2025-01-01T00:00:10Z 2025-01-01T00:00:20Z
cycle; R3/PT10S; 2025-01-01T00:00:00.500Z; 1500; 3; 2025-01-01T00:00:10.500Z 2025-01-01T00:00:20.500Z 2025-01-01T00:00:30.500Z
cycle; R4/PT10S; 2025-01-01T00:00:00Z; 25000; 4; 2025-01-01T00:00:10Z 2025-01-01T00:00:35Z 2025-01-01T00:01:00Z 2025-01-01T00:01:25Z
cycle; R3/PT0S; 2025-01-01T00:00:00Z; 100; 3; 2025-01-01T00:00:00Z 2025-01-01T00:00:00.100Z 2025-01-01T00:00:00.200Z
cycle; R3/-PT10S; 2025-01-01T00:00:00Z; 0; 3; 2024-12-31T23:59:50Z 2025-01-01T00:00:00Z 2025-01-01T00:00:00Z
cycle; R3/PT0.0015S; 2025-01-01T00:00:00Z; 0; 3; 2025-01-01T00:00:00.001Z 2025-01-01T00:00:00.002Z 2025-01-01T00:00:00.003Z
cycle; R3/-PT0.0005S; 2025-01-01T00:00:00Z; 0; 3; 2025-01-01T00:00:00Z 2025-01-01T00:00:00Z 2025-01-01T00:00:00Z
cycle; R/P1D; 2025-03-29T12:00:00Z; 0; -1; 2025-03-30T12:00:00Z 2025-03-31T12:00:00Z 2025-04-01T12:00:00Z
cycle; R/P1M; 2025-01-31T12:00:00Z; 0; -1; 2025-02-28T12:00:00Z 2025-03-28T12:00:00Z 2025-04-28T12:00:00Z 2025-05-28T12:00:00Z
cycle; R/P1M; 2024-01-31T12:00:00Z; 1; -1; 2024-02-29T12:00:00Z 2024-03-29T12:00:00Z 2024-04-29T12:00:00Z
cycle; R/P1Y; 2024-02-29T12:00:00Z; 0; -1; 2025-02-28T12:00:00Z 2026-02-28T12:00:00Z 2027-02-28T12:00:00Z
cycle; R/P1W; 2025-12-28T12:00:00Z; 0; -1; 2026-01-04T12:00:00Z 2026-01-11T12:00:00Z 2026-01-18T12:00:00Z
cycle; R3/P1MT12H; 2025-01-31T00:00:00Z; 0; 3; 2025-02-28T12:00:00Z 2025-03-29T00:00:00Z 2025-04-29T12:00:00Z
cycle; R5/2025-01-01T00:00:00Z/P1D; 2024-12-30T00:00:00Z; 0; 5; 2025-01-01T00:00:00Z 2025-01-02T00:00:00Z 2025-01-03T00:00:00Z 2025-01-04T00:00:00Z 2025-01-05T00:00:00Z
cycle; R5/2025-01-01T00:00:00Z/P1D; 2025-01-03T12:00:00Z; 0; 5; 2025-01-03T12:00:00Z 2025-01-04T12:00:00Z 2025-01-05T12:00:00Z
cycle; R3/2025-01-01T00:00:00Z/PT1H; 2025-01-01T00:00:00Z; 0; 3; 2025-01-01T00:00:00Z 2025-01-01T01:00:00Z 2025-01-01T02:00:00Z
cycle; R/2025-01-01T00:00:00.0009Z/PT1H; 2024-12-31T00:00:00Z; 0; -1; 2025-01-01T00:00:00Z 2025-01-01T01:00:00Z
cycle; R/2025-01-31T09:00:00+01:00/P1M; 2025-01-01T00:00:00Z; 0; -1; 2025-01-31T08:00:00Z 2025-02-28T08:00:00Z 2025-03-28T08:00:00Z 2025-04-28T08:00:00Z
cycle; R/2025-01-31T00:30:00+01:00/P1M; 2025-01-01T00:00:00Z; 0; -1; 2025-01-30T23:30:00Z 2025-02-27T23:30:00Z 2025-03-27T23:30:00Z 2025-04-27T23:30:00Z
cycle; R/2025-01-01T00:00:00Z/P1D; 2024-12-30T00:00:00Z; 200000000; -1; 2025-01-01T00:00:00Z 2025-01-03T07:33:20Z 2025-01-05T15:06:40Z
cycle; R/2025-03-28T09:00:00+01:00[Europe/Berlin]/P1D; 2025-03-01T00:00:00Z; 0; -1; 2025-03-28T08:00:00Z 2025-03-29T08:00:00Z 2025-03-30T07:00:00Z 2025-03-31T07:00:00Z
cycle; R/2025-03-28T02:30:00+01:00[Europe/Berlin]/P1D; 2025-03-01T00:00:00Z; 0; -1; 2025-03-28T01:30:00Z 2025-03-29T01:30:00Z 2025-03-30T01:30:00Z 2025-03-31T01:30:00Z
cycle; R/2025-10-25T02:30:00+02:00[Europe/Berlin]/P1D; 2025-10-01T00:00:00Z; 0; -1; 2025-10-25T00:30:00Z 2025-10-26T00:30:00Z 2025-10-27T01:30:00Z
cycle; R/2025-10-26T02:30:00+01:00[Europe/Berlin]/P1D; 2025-10-01T00:00:00Z; 0; -1; 2025-10-26T01:30:00Z 2025-10-27T01:30:00Z
cycle; R/2025-10-19T02:30:00+01:00[Europe/Berlin]/P1W; 2025-10-01T00:00:00Z; 0; -1; 2025-10-19T01:30:00Z 2025-10-26T02:30:00Z 2025-11-02T02:30:00Z
cycle; R/2025-03-29T09:00:00+01:00[Europe/Berlin]/PT24H; 2025-03-01T00:00:00Z; 0; -1; 2025-03-29T08:00:00Z 2025-03-30T08:00:00Z 2025-03-31T08:00:00Z
cycle; R/2025-03-29T09:00:00+01:00[Europe/Berlin]/P1DT1H; 2025-03-01T00:00:00Z; 0; -1; 2025-03-29T08:00:00Z 2025-03-30T08:00:00Z 2025-03-31T09:00:00Z
cycle; R/2025-02-28T23:00:00-05:00[America/New_York]/P1M; 2025-02-01T00:00:00Z; 0; -1; 2025-03-01T04:00:00Z 2025-03-29T03:00:00Z 2025-04-29T03:00:00Z
cycle; R/2011-12-28T12:00:00-10:00[Pacific/Apia]/P1D; 2011-12-01T00:00:00Z; 0; -1; 2011-12-28T22:00:00Z 2011-12-29T22:00:00Z 2011-12-30T22:00:00Z 2011-12-31T22:00:00Z
cycle; R/2025-04-05T02:00:00+11:00[Australia/Lord_Howe]/P1D; 2025-04-01T00:00:00Z; 0; -1; 2025-04-04T15:00:00Z 2025-04-05T15:30:00Z 2025-04-06T15:30:00Z
cycle; R/2025-03-28T09:00:00+01:00[UTC+01:00]/P1D; 2025-03-01T00:00:00Z; 0; -1; 2025-03-28T08:00:00Z 2025-03-29T08:00:00Z 2025-03-30T08:00:00Z 2025-03-31T08:00:00Z
# Cron expressions
cycle; * * * * * *; 2025-01-01T00:00:00Z; 0; -1; 2025-01-01T00:00:01Z 2025-01-01T00:00:02Z 2025-01-01T00:00:03Z
cycle; * * * * * *; 2025-01-01T00:00:00.250Z; 0; -1; 2025-01-01T00:00:01.250Z 2025-01-01T00:00:02.250Z 2025-01-01T00:00:03.250Z
cycle; 0 * * * * *; 2025-01-01T00:00:00Z; 0; -1; 2025-01-01T00:01:00Z 2025-01-01T00:02:00Z 2025-01-01T00:03:00Z
cycle; 0 * * * * *; 2025-01-01T00:00:00.001Z; 0; -1; 2025-01-01T00:01:00Z 2025-01-01T00:02:00Z
cycle; 0 * * * * *; 2024-12-31T23:59:59.999Z; 0; -1; 2025-01-01T00:00:00Z 2025-01-01T00:01:00Z
cycle; 0-1 * * * * *; 2025-01-01T00:00:00.500Z; 0; -1; 2025-01-01T00:00:01.500Z 2025-01-01T00:01:00Z 2025-01-01T00:01:01Z
cycle; */15 * * * * *; 2025-01-01T00:00:07Z; 0; -1; 2025-01-01T00:00:15Z 2025-01-01T00:00:30Z 2025-01-01T00:00:45Z 2025-01-01T00:01:00Z
cycle; /20 * * * * *; 2025-01-01T00:00:07Z; 0; -1; 2025-01-01T00:00:20Z 2025-01-01T00:00:40Z 2025-01-01T00:01:00Z 2025-01-01T00:01:20Z
cycle; */7 * * * * *; 2025-01-01T00:00:50Z; 0; -1; 2025-01-01T00:00:56Z 2025-01-01T00:01:00Z 2025-01-01T00:01:07Z
cycle; 5/20 * * * * *; 2025-01-01T00:00:50Z; 0; -1; 2025-01-01T00:01:05Z 2025-01-01T00:01:25Z 2025-01-01T00:01:45Z 2025-01-01T00:02:05Z
cycle; 10-20/5 * * * * *; 2025-01-01T00:00:12Z; 0; -1; 2025-01-01T00:00:15Z 2025-01-01T00:00:20Z 2025-01-01T00:01:10Z 2025-01-01T00:01:15Z
cycle; 0 0,30 * * * *; 2025-01-01T00:10:00Z; 0; -1; 2025-01-01T00:30:00Z 2025-01-01T01:00:00Z 2025-01-01T01:30:00Z
cycle; 0 0 9-17 * * MON-FRI; 2025-01-03T16:30:00Z; 0; -1; 2025-01-03T17:00:00Z 2025-01-06T09:00:00Z 2025-01-06T10:00:00Z
cycle; 0 0 9-17 * * mon-fri; 2025-01-03T17:00:00Z; 0; -1; 2025-01-06T09:00:00Z 2025-01-06T10:00:00Z
cycle; 0  0   8 * * *; 2025-01-01T08:00:00Z; 0; -1; 2025-01-02T08:00:00Z 2025-01-03T08:00:00Z
cycle; 00 08 008 * * *; 2025-01-01T08:00:00Z; 0; -1; 2025-01-01T08:08:00Z 2025-01-02T08:08:00Z
cycle; 0 0 8 * * *; 2025-01-01T08:00:00Z; 1000000000; -1; 2025-01-02T08:00:00Z 2025-01-14T08:00:00Z 2025-01-26T08:00:00Z
cycle; 0 0 0 31 * *; 2025-01-31T00:00:00Z; 0; -1; 2025-03-31T00:00:00Z 2025-05-31T00:00:00Z 2025-07-31T00:00:00Z 2025-08-31T00:00:00Z
cycle; 0 0 0 29 2 *; 2025-01-01T00:00:00Z; 0; -1; 2028-02-29T00:00:00Z 2032-02-29T00:00:00Z 2036-02-29T00:00:00Z
cycle; 0 0 0 29 FEB ?; 2096-02-29T00:00:00Z; 0; -1; 2104-02-29T00:00:00Z 2108-02-29T00:00:00Z
cycle; 0 0 0 29 2 MON; 2025-01-01T00:00:00Z; 0; -1; 2044-02-29T00:00:00Z 2072-02-29T00:00:00Z 2112-02-29T00:00:00Z
cycle; 0 0 0 29 2 5; 2080-01-01T00:00:00Z; 0; -1; 2092-02-29T00:00:00Z 2104-02-29T00:00:00Z
cycle; 0 0 0 13 * FRI; 2025-01-01T00:00:00Z; 0; -1; 2025-06-13T00:00:00Z 2026-02-13T00:00:00Z 2026-03-13T00:00:00Z 2026-11-13T00:00:00Z
cycle; 0 0 0 1 JAN,APR,JUL,OCT ?; 2025-01-01T00:00:00Z; 0; -1; 2025-04-01T00:00:00Z 2025-07-01T00:00:00Z 2025-10-01T00:00:00Z 2026-01-01T00:00:00Z
cycle; 0 0 0 1 */3 ?; 2025-01-01T00:00:00Z; 0; -1; 2025-04-01T00:00:00Z 2025-07-01T00:00:00Z 2025-10-01T00:00:00Z 2026-01-01T00:00:00Z
cycle; 0 0 0 1 FEB/5 ?; 2025-01-01T00:00:00Z; 0; -1; 2025-02-01T00:00:00Z 2025-07-01T00:00:00Z 2025-12-01T00:00:00Z
cycle; 0 0 0 10-20/4 6 ?; 2025-01-01T00:00:00Z; 0; -1; 2025-06-10T00:00:00Z 2025-06-14T00:00:00Z 2025-06-18T00:00:00Z 2026-06-10T00:00:00Z
cycle; 0 0 0 */10 2 *; 2025-01-01T00:00:00Z; 0; -1; 2025-02-01T00:00:00Z 2025-02-11T00:00:00Z 2025-02-21T00:00:00Z 2026-02-01T00:00:00Z
cycle; 0 0 0 ? * 0; 2025-01-01T00:00:00Z; 0; -1; 2025-01-05T00:00:00Z 2025-01-12T00:00:00Z
cycle; 0 0 0 ? * 7; 2025-01-01T00:00:00Z; 0; -1; 2025-01-05T00:00:00Z 2025-01-12T00:00:00Z
cycle; 0 0 0 ? * SUN; 2025-01-01T00:00:00Z; 0; -1; 2025-01-05T00:00:00Z 2025-01-12T00:00:00Z
cycle; 0 0 0 ? * L; 2025-01-01T00:00:00Z; 0; -1; 2025-01-05T00:00:00Z 2025-01-12T00:00:00Z
cycle; 0 0 0 ? * FRI-MON; 2025-01-01T00:00:00Z; 0; -1; 2025-01-03T00:00:00Z 2025-01-04T00:00:00Z 2025-01-05T00:00:00Z 2025-01-06T00:00:00Z
cycle; 0 0 0 ? * 5-7; 2025-01-01T00:00:00Z; 0; -1; 2025-01-03T00:00:00Z 2025-01-04T00:00:00Z 2025-01-05T00:00:00Z 2025-01-10T00:00:00Z
cycle; 0 0 0 ? * */2; 2025-01-01T00:00:00Z; 0; -1; 2025-01-02T00:00:00Z 2025-01-04T00:00:00Z 2025-01-05T00:00:00Z 2025-01-07T00:00:00Z
cycle; 0 0 0 ? * MON/3; 2025-01-01T00:00:00Z; 0; -1; 2025-01-02T00:00:00Z 2025-01-05T00:00:00Z 2025-01-06T00:00:00Z 2025-01-09T00:00:00Z
cycle; 0 0 0 ? * SUN/3; 2025-01-01T00:00:00Z; 0; -1; 2025-01-04T00:00:00Z 2025-01-05T00:00:00Z 2025-01-08T00:00:00Z 2025-01-11T00:00:00Z
cycle; 0 0 0 ? * MON-FRI/2; 2025-01-01T00:00:00Z; 0; -1; 2025-01-03T00:00:00Z 2025-01-06T00:00:00Z 2025-01-08T00:00:00Z 2025-01-10T00:00:00Z
cycle; 0 0 0 L * ?; 2025-01-15T00:00:00Z; 0; -1; 2025-01-31T00:00:00Z 2025-02-28T00:00:00Z 2025-03-31T00:00:00Z
cycle; 0 0 0 L 2 ?; 2025-01-15T00:00:00Z; 0; -1; 2025-02-28T00:00:00Z 2026-02-28T00:00:00Z 2027-02-28T00:00:00Z 2028-02-29T00:00:00Z
cycle; 0 0 0 L-3 * ?; 2025-01-15T00:00:00Z; 0; -1; 2025-01-28T00:00:00Z 2025-02-25T00:00:00Z 2025-03-28T00:00:00Z
cycle; 0 0 0 L-30 * ?; 2025-01-15T00:00:00Z; 0; -1; 2025-03-01T00:00:00Z 2025-05-01T00:00:00Z 2025-07-01T00:00:00Z
cycle; 0 0 0 l * *; 2025-01-15T00:00:00Z; 0; -1; 2025-01-31T00:00:00Z
cycle; 0 0 0 L * FRI; 2025-01-15T00:00:00Z; 0; -1; 2025-01-31T00:00:00Z 2025-02-28T00:00:00Z 2025-10-31T00:00:00Z
cycle; 0 0 0 LW * ?; 2025-01-15T00:00:00Z; 0; -1; 2025-01-31T00:00:00Z 2025-02-28T00:00:00Z 2025-03-31T00:00:00Z 2025-04-30T00:00:00Z 2025-05-30T00:00:00Z
cycle; 0 0 0 1W * ?; 2025-02-01T00:00:00Z; 0; -1; 2025-02-03T00:00:00Z 2025-03-03T00:00:00Z 2025-04-01T00:00:00Z 2025-05-01T00:00:00Z 2025-06-02T00:00:00Z
cycle; 0 0 0 15W * ?; 2025-01-15T00:00:00Z; 0; -1; 2025-02-14T00:00:00Z 2025-03-14T00:00:00Z 2025-04-15T00:00:00Z 2025-05-15T00:00:00Z 2025-06-16T00:00:00Z 2025-07-15T00:00:00Z
cycle; 0 0 0 28W 2 ?; 2026-01-01T00:00:00Z; 0; -1; 2026-02-27T00:00:00Z 2027-02-28T00:00:00Z 2028-02-28T00:00:00Z
cycle; 0 0 0 ? * 5L; 2025-01-15T00:00:00Z; 0; -1; 2025-01-31T00:00:00Z 2025-02-28T00:00:00Z 2025-03-28T00:00:00Z
cycle; 0 0 0 ? * SUNL; 2025-01-15T00:00:00Z; 0; -1; 2025-01-26T00:00:00Z 2025-02-23T00:00:00Z 2025-03-30T00:00:00Z
cycle; 0 0 0 ? * MON#1; 2025-01-15T00:00:00Z; 0; -1; 2025-02-03T00:00:00Z 2025-03-03T00:00:00Z 2025-04-07T00:00:00Z
cycle; 0 0 0 ? * 7#5; 2025-01-15T00:00:00Z; 0; -1; 2025-03-30T00:00:00Z 2025-06-29T00:00:00Z 2025-08-31T00:00:00Z
cycle; 0 0 0 ? * MON#1,5L,WED; 2025-01-27T00:00:00Z; 0; -1; 2025-01-29T00:00:00Z 2025-01-31T00:00:00Z 2025-02-03T00:00:00Z 2025-02-05T00:00:00Z 2025-02-12T00:00:00Z 2025-02-19T00:00:00Z
cycle; 0 0 0 13 * 5#2; 2025-01-15T00:00:00Z; 0; -1; 2025-06-13T00:00:00Z 2026-02-13T00:00:00Z
cycle; 0 0 8|17 * * *; 2025-01-01T08:00:00Z; 0; -1; 2025-01-01T17:00:00Z 2025-01-02T08:00:00Z 2025-01-02T17:00:00Z
cycle; 0 0|30 8|17 * * *; 2025-01-01T08:00:00Z; 0; -1; 2025-01-01T17:30:00Z 2025-01-02T08:00:00Z 2025-01-02T17:30:00Z
cycle; 0 0 0 1 * ?||0 0 0 L * ?; 2025-01-01T00:00:00Z; 0; -1; 2025-01-31T00:00:00Z 2025-02-01T00:00:00Z 2025-02-28T00:00:00Z 2025-03-01T00:00:00Z
cycle; 0 0 0 30 2 ?||@yearly; 2025-01-01T00:00:00Z; 0; -1; 2026-01-01T00:00:00Z 2027-01-01T00:00:00Z
cycle; @yearly; 2025-01-01T00:00:00Z; 0; -1; 2026-01-01T00:00:00Z 2027-01-01T00:00:00Z
cycle; @annually; 2025-06-01T00:00:00Z; 0; -1; 2026-01-01T00:00:00Z 2027-01-01T00:00:00Z
cycle; @monthly; 2025-01-31T00:00:00Z; 0; -1; 2025-02-01T00:00:00Z 2025-03-01T00:00:00Z
cycle; @weekly; 2025-01-01T00:00:00Z; 0; -1; 2025-01-05T00:00:00Z 2025-01-12T00:00:00Z
cycle; @daily; 2025-01-01T00:00:00Z; 0; -1; 2025-01-02T00:00:00Z 2025-01-03T00:00:00Z
cycle; @midnight; 2025-01-01T00:00:00.001Z; 0; -1; 2025-01-02T00:00:00Z 2025-01-03T00:00:00Z
cycle; @hourly; 2025-01-01T00:00:00Z; 0; -1; 2025-01-01T01:00:00Z 2025-01-01T02:00:00Z
cycle; @hourly; 1969-12-31T23:30:00Z; 0; -1; 1970-01-01T00:00:00Z 1970-01-01T01:00:00Z
cycle; 59 59 23 31 12 ?; 2025-12-31T23:59:58Z; 0; -1; 2025-12-31T23:59:59Z 2026-12-31T23:59:59Z
cycle; 59 59 23 31 12 ?; 2025-12-31T23:59:59Z; 0; -1; 2026-12-31T23:59:59Z 2027-12-31T23:59:59Z
";

/// Kind; text; what the error says.
const REFUSED: &str = "
# Dates
date; ; does not start with a year
date; 2025; does not start with a date
date; 2025-1-1T00:00:00Z; does not start with a date
date; 12025-01-01T00:00:00Z; does not start with a year
date; +2025-01-01T00:00:00Z; does not start with a year
date; -0000-01-01T00:00:00Z; the year 0 has no sign
date; 2025-13-01T00:00:00Z; the calendar does not have this date
date; 2025-02-29T00:00:00Z; the calendar does not have this date
date; 1900-02-29T00:00:00Z; the calendar does not have this date
date; 2025-01-00T00:00:00Z; the calendar does not have this date
date; +1000000000-01-01T00:00:00Z; the calendar does not have this date
date; 2025-01-01; there is no 'T'
date; 2025-01-01 00:00:00Z; there is no 'T'
date; 2025-01-01T24:00:00Z; no time from 00:00 to 23:59
date; 2025-01-01T1:00:00Z; no time from 00:00 to 23:59
date; 2025-01-01T00:60:00Z; no time from 00:00 to 23:59
date; 2025-01-01T00:00:60Z; two digits from 00 to 59
date; 2025-01-01T00:00:00.1234567890Z; more than 9 digits
date; 2025-01-01T00:00:00; no offset from UTC
date; 2025-01-01T00:00:00 Z; no offset from UTC
date; 2025-01-01T00:00:00[Europe/Berlin]; no offset from UTC
date; 2025-01-01T00:00:00@Europe/Berlin; no offset from UTC
date; 2025-01-01T00:00:00+1; does not start with two digits
date; 2025-01-01T00:00:00+0100; not a zone in brackets
date; 2025-01-01T00:00:00+01:; minutes and seconds of the offset
date; 2025-01-01T00:00:00+01:60; minutes and seconds of the offset
date; 2025-01-01T00:00:00+18:01; more than 18 hours
date; 2025-01-01T00:00:00Z[Europe/Nowhere]; 'Europe/Nowhere' is not a zone
date; 2025-01-01T00:00:00Z[europe/berlin]; 'europe/berlin' is not a zone
date; 2025-01-01T00:00:00Z[UTC+1]; 'UTC+1' is not a zone
date; 2025-01-01T00:00:00Z[]; '' is not a zone
date; 2025-01-01T00:00:00Z[UTC; not a zone in brackets
date; +292278995-01-01T00:00:00Z; timestamps end
date; -292275056-01-01T00:00:00Z; timestamps end
date; PT10S; does not start with a year
# Durations
duration; ; a duration starts with 'P'
duration; 10s; a duration starts with 'P'
duration; --P1D; a duration starts with 'P'
duration; P; no amount behind the 'P'
duration; PT; no amount behind the 'T'
duration; P1DT; no amount behind the 'T'
duration; pt1h; does not start with a number
duration; P1; no unit behind '1'
duration; PT5; no unit behind '5'
duration; P-D; does not start with a number
duration; PT--5S; does not start with a number
duration; PT.5S; does not start with a number
duration; P1H; 'H' is not a unit
duration; PT1D; 'D' is not a unit
duration; PT1\u{2009}H; is not a unit
duration; P1D1W; 'W' comes twice or too late
duration; PT1M1M; 'M' comes twice or too late
duration; P1.5D; only seconds can have a fraction
duration; PT1.5H; only seconds can have a fraction
duration; PT0.1234567890S; more than 9 digits
duration; P2147483648D; 2147483648 is beyond the largest amount
duration; -P-2147483648D; -2147483648 is beyond the largest amount
duration; P306783379W; the sum of weeks and days is beyond
duration; PT9223372036854775808S; 9223372036854775808 is beyond the largest amount
duration; PT2562047788015216H; 2562047788015216 is beyond the largest amount
duration; PT1H9223372036854775807S; the sum of hours, minutes and seconds is beyond
duration; -PT-9223372036854775808S; the sum of hours, minutes and seconds is beyond
duration; 2025-01-01/PT1H; '2025-01-01' before the last '/' is not a date with time and zone: behind the date
duration; 2025-01-01T00:00:00Z/1H; '1H' behind the last '/' is not a duration: a duration starts with 'P'
duration; 2025-01-01T00:00:00Z; a duration starts with 'P'
duration; R/PT1H; before the last '/' is not a date
# Cycles
cycle; R; no '/'
cycle; R3; no '/'
cycle; R/; '' is not an interval: a duration starts with 'P'
cycle; R3/10S; '10S' is not an interval
cycle; Rx/PT10S; 'x' behind the 'R' is not a number
cycle; R 3/PT10S; ' 3' behind the 'R' is not a number
cycle; R2147483648/PT10S; is not a number of repetitions
cycle; R3/2025-01-01T00:00:00Z; a duration starts with 'P'
cycle; R3/2025-01-01T00:00:00/PT1H; no offset from UTC
cycle; R3/2025-01-01T00:00:00Z/2025-01-02T00:00:00Z; a duration starts with 'P'
cycle; R3/PT1H/2025-01-02T00:00:00Z; before the last '/' is not a date
cycle; r3/PT10S; and not 1
cycle; PT10S; has 6 fields (second, minute, hour, day of month, month, day of week) and not 1
cycle; ; and not 0
cycle; ||; and not 0
cycle; * * * * *; and not 5
cycle; * * * * * * *; and not 7
cycle; @reboot; '@reboot' is none of @yearly
cycle; @Daily; '@Daily' is none of @yearly
cycle; 60 * * * * *; the second '60' is not a number from 0 to 59
cycle; * 60 * * * *; the minute '60' is not a number from 0 to 59
cycle; * * 24 * * *; the hour '24' is not a number from 0 to 23
cycle; * * * 0 * *; the day of month '0' is not a number from 1 to 31
cycle; * * * 32 * *; the day of month '32' is not a number from 1 to 31
cycle; * * * * 13 *; the month '13' is neither a number from 1 to 12 nor one of JAN, FEB
cycle; * * * * JANUARY *; the month 'JANUARY' is neither
cycle; * * * * * 8; the day of week '8' is neither a number from 0 to 7 nor one of MON, TUE
cycle; +5 * * * * *; the second '+5' is not a number
cycle; 256 * * * * *; the second '256' is not a number
cycle; ? * * * * *; the second '?' is not a number
cycle; L * * * * *; the second 'L' is not a number
cycle; * * * ?,1 * *; the day of month '?' is not a number
cycle; * * * ? * ?; both '?'
cycle; 1, * * * * *; the second '' is not a number
cycle; 1,,2 * * * * *; the second '' is not a number
cycle; 1- * * * * *; the second '' is not a number
cycle; 1-2-3 * * * * *; the second '2-3' is not a number
cycle; 30-10 * * * * *; the second '30-10' is a range that goes backwards
cycle; * * * 25-5 * *; the day of month '25-5' is a range that goes backwards
cycle; * * * * NOV-FEB *; the month 'NOV-FEB' is a range that goes backwards
cycle; * * * * * FRI-MON/2; the day of week 'FRI-MON' is a range that goes backwards
cycle; 5/ * * * * *; the second '5/' has a step behind the '/'
cycle; */0 * * * * *; the second '*/0' has a step behind the '/' that is not a number from 1 to 59
cycle; */60 * * * * *; the second '*/60' has a step
cycle; * * */24 * * *; the hour '*/24' has a step
cycle; * * * * * */8; the day of week '*/8' has a step
cycle; * * * 1,L * *; the day of month '1,L' has 'L' or 'W' in a list
cycle; * * * 15W,LW * *; has 'L' or 'W' in a list
cycle; * * * 15L * *; the day of month '15L' is none of
cycle; * * * W * *; the day of month 'W' is none of
cycle; * * * L-0 * *; the day of month 'L-0' is none of
cycle; * * * 32W * *; the day of month '32W' is none of
cycle; * * * 15W/2 * *; the day of month '15W/2' is none of
cycle; * * * * * 5W; the day of week '5W' is neither
cycle; * * * * * MON#0; the day of week 'MON#0' does not have a number from 1 to 5
cycle; * * * * * MON#6; the day of week 'MON#6' does not have a number from 1 to 5
cycle; * * * * * MON#; does not have a number from 1 to 5
cycle; * * * * * #1; the day of week '' is neither
cycle; * * * MON#1 * *; the day of month 'MON#1' is not a number
cycle; * * * 30 2 *; there is no date that it matches
cycle; * * * 31 4,6,9,11 *; there is no date that it matches
cycle; * * * 8 * MON#1; there is no date that it matches
cycle; * * * L-31 * *; there is no date that it matches
cycle; * * * 31W FEB *; there is no date that it matches
cycle; * * * 30 2 *||* * * 31 4 *; there is no date that it matches
cycle; 0 0|30 1|2|3 * * *; different numbers of alternatives
cycle; 0 0 1| * * *; nothing on one side of a '|'
cycle; 0 0 |1 * * *; nothing on one side of a '|'
";

fn kind(name: &str) -> TimerKind {
    match name {
        "date" => TimerKind::Date,
        "duration" => TimerKind::Duration,
        "cycle" => TimerKind::Cycle,
        _ => panic!("'{name}' is not a kind of timer"),
    }
}

fn milliseconds(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap_or_else(|error| panic!("{text}: {error}")).as_millisecond()
}

fn rows<const COLUMNS: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; COLUMNS]> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let columns: Vec<&str> = line.splitn(COLUMNS, "; ").collect();
        columns.try_into().unwrap_or_else(|_| panic!("'{line}' does not have {COLUMNS} columns"))
    })
}

fn cycle(text: &str) -> Timer {
    Timer::parse(TimerKind::Cycle, text).unwrap_or_else(|error| panic!("{error}"))
}

fn duration(text: &str) -> Timer {
    Timer::parse(TimerKind::Duration, text).unwrap_or_else(|error| panic!("{error}"))
}

/// The due dates of a timer that is seen this many milliseconds late each time.
fn due_dates(timer: &Timer, now: i64, late: i64, count: usize) -> Vec<i64> {
    let mut dates = Vec::new();
    let mut now = now;
    let mut next = timer.first_due(now);
    while let Some(due) = next
        && dates.len() < count
    {
        dates.push(due);
        now = now.max(due) + late;
        let is_over = timer.repetitions() != ENDLESS && dates.len() >= timer.repetitions().try_into().unwrap_or(0);
        next = if is_over { None } else { timer.next_due(due, now) };
    }
    dates
}

#[test]
fn due_dates_are_those_of_camunda() {
    let mut count = 0;
    for [kind_name, text, now, late, repetitions, expected] in rows(DUE_DATES) {
        let timer = Timer::parse(kind(kind_name), text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(timer.repetitions().to_string(), repetitions, "{text}");
        let expected: Vec<i64> = expected.split(' ').map(milliseconds).collect();
        let late = late.parse().expect("a number of milliseconds");
        // One more is asked for where the timer must end by itself.
        let is_counted = (0..=4).contains(&timer.repetitions());
        let dates = due_dates(&timer, milliseconds(now), late, expected.len() + usize::from(is_counted));
        assert_eq!(dates, expected, "{text} from {now}");
        count += 1;
    }
    assert!(count >= 170, "only {count} rows were found");
}

#[test]
fn errors_name_the_text_and_say_why() {
    for [kind_name, text, expected] in rows(REFUSED) {
        let error = Timer::parse(kind(kind_name), text).expect_err(text);
        assert!(error.starts_with(&format!("The timer {kind_name} '{text}' is not valid, since ")), "{error}");
        assert!(error.contains(expected), "'{expected}' is not in: {error}");
        assert!(error.contains(". Write ") && error.ends_with('.'), "{error}");
    }
}

#[test]
fn errors_are_sentences() {
    assert_eq!(
        Timer::parse(TimerKind::Duration, "10s").expect_err("no duration"),
        "The timer duration '10s' is not valid, since a duration starts with 'P'. \
         Write it in the form of ISO 8601, such as PT15M, P1DT12H or P1Y6M."
    );
    assert_eq!(
        Timer::parse(TimerKind::Cycle, "0 0 25 * * *").expect_err("no hour"),
        "The timer cycle '0 0 25 * * *' is not valid, since the hour '25' is not a number from 0 to 23. Write a \
         repeating interval, such as R3/PT10S, R/P1D or R5/2025-01-31T09:00:00Z/P1M, or a cron expression of 6 fields, \
         such as '0 0 9-17 * * MON-FRI'."
    );
}

#[test]
fn dates_and_durations_are_due_once() {
    let date = Timer::parse(TimerKind::Date, "2025-01-01T00:00:00Z").expect("a date");
    for timer in [date, duration("PT10S"), cycle("R1/PT10S"), cycle("R0/PT10S"), cycle("R-2/PT10S")] {
        assert!(timer.first_due(0).is_some());
        assert_eq!(timer.next_due(0, 0), None);
    }
}

#[test]
fn nothing_is_due_beyond_the_range_of_timestamps() {
    for text in ["PT1S", "P1D", "P1M", "P2147483647Y2147483647M2147483647DT9223372036854775807S"] {
        assert_eq!(duration(text).first_due(i64::MAX - 1), None, "{text}");
    }
    for text in ["-PT1S", "-P1D", "-P1M", "-P2147483647Y2147483647M2147483647DT9223372036854775807S"] {
        assert_eq!(duration(text).first_due(i64::MIN + 1), None, "{text}");
    }
    assert_eq!(duration("PT9223372036854775807S").first_due(0), None);
    assert_eq!(duration("P1000000000Y").first_due(0), None);
    assert_eq!(duration("PT0S").first_due(i64::MAX), Some(i64::MAX));
    assert_eq!(duration("PT0S").first_due(i64::MIN), Some(i64::MIN));
    assert_eq!(cycle("R/PT1S").next_due(i64::MAX, 0), None);
    assert_eq!(cycle("R/-P1D").next_due(i64::MIN, 0), None);
    for text in ["* * * * * *", "0 0 0 29 2 *", "@yearly", "0 0 0 LW * ?"] {
        assert_eq!(cycle(text).first_due(i64::MAX), None, "{text}");
        assert!(cycle(text).first_due(i64::MIN).is_some_and(|due| due > i64::MIN), "{text}");
    }
    // What is in between can be farther away than a timestamp.
    let seconds = 400_000_000 / 400 * 146_097 * 86_400_i64;
    assert_eq!(duration(&format!("P400000000YT-{seconds}S")).first_due(7), Some(7));
    // The farthest years, with a zone whose clocks are set.
    let berlin = cycle("R/2025-07-01T00:00:00+02:00[Europe/Berlin]/P1M");
    assert_eq!(berlin.next_due(i64::MAX - 1_000, 0), None);
    assert!(berlin.next_due(i64::MIN, i64::MIN).is_some_and(|due| due > i64::MIN));
}

#[test]
fn clocks_are_set_in_far_years_as_well() {
    let timer = cycle("R/2025-03-01T09:00:00+01:00[Europe/Berlin]/P1D");
    let due = milliseconds("2025-03-29T08:00:00Z");
    let next = milliseconds("2025-03-30T07:00:00Z");
    assert_eq!(timer.next_due(due, due), Some(next));
    // The calendar is the same again after 400 years.
    for cycles in [1, 10, 19, 20, 21, 700_000] {
        let later = 146_097 * 86_400_000 * cycles;
        assert_eq!(timer.next_due(due + later, 0), Some(next + later), "{cycles} times 400 years later");
    }
    // Clocks were not yet set.
    let earlier = 146_097 * 86_400_000 * 700_000;
    assert_eq!(timer.next_due(due - earlier, i64::MIN), Some(due + 86_400_000 - earlier));
}

#[test]
fn equal_texts_are_equal_timers() {
    assert_eq!(cycle("R3/PT60S"), cycle("R3/PT1M"));
    assert_ne!(cycle("R3/PT60S"), cycle("R/PT1M"));
    assert_eq!(cycle("0 0 0 * * SUN"), cycle("0 0 0 ? * 7"));
    assert_eq!(cycle("@daily").clone(), cycle("0 0 0 1-31 1-12 MON-SUN"));
}

/// Random schedules, the same in every run.
struct Schedules(Chance);

impl Schedules {
    fn below(&mut self, bound: usize) -> usize {
        self.0.index(bound)
    }

    fn one_of(&mut self, texts: &[&str]) -> String {
        texts[self.below(texts.len())].to_owned()
    }

    /// Between 1902 and 2106.
    fn second(&mut self) -> i64 {
        i64::try_from(self.below(1 << 31)).expect("31 bits fit") * 3 - 2_147_483_648
    }

    fn field(&mut self, minimum: usize, maximum: usize) -> String {
        let first = minimum + self.below(maximum - minimum + 1);
        let last = first + self.below(maximum - first + 1);
        match self.below(6) {
            0 => "*".into(),
            1 => format!("*/{}", 1 + self.below(maximum)),
            2 => format!("{first}-{last}"),
            3 => format!("{first}-{last}/{}", 1 + self.below(maximum)),
            4 => format!("{first},{last}"),
            _ => first.to_string(),
        }
    }

    fn cron(&mut self) -> String {
        let day_of_month = match self.below(4) {
            0 => self.one_of(&["?", "L", "LW", "L-2", "1W", "15W", "31W"]),
            _ => self.field(1, 31),
        };
        let day_of_week = match self.below(3) {
            0 => self.one_of(&["*", "MON-FRI", "FRI-MON", "5L", "MON#1", "TUE#5,SAT"]),
            _ => self.field(0, 7),
        };
        let [second, minute, hour] = [self.field(0, 59), self.field(0, 59), self.field(0, 23)];
        format!("{second} {minute} {hour} {day_of_month} {} {day_of_week}", self.field(1, 12))
    }

    fn repeating_interval(&mut self) -> String {
        let repetitions = self.one_of(&["", "3", "1000"]);
        let start = self.one_of(&["", "", "2025-03-29T02:30:00+01:00[Europe/Berlin]/", "1999-12-31T23:59:59.999Z/"]);
        let days = self.below(40);
        let period = match self.below(4) {
            0 => format!("P{}M{days}D", 1 + self.below(30)),
            1 => format!("P{}W", 1 + self.below(9)),
            2 => format!("P{days}DT{}.{}S", 1 + self.below(100_000), self.below(1_000)),
            _ => format!("PT{}M", 1 + self.below(10_000)),
        };
        format!("R{repetitions}/{start}{period}")
    }
}

#[test]
fn cron_expressions_are_due_at_the_first_match_after_the_time() {
    let mut random = Schedules(Chance::new(7));
    let mut accepted = 0;
    for _ in 0..5_000 {
        let text = random.cron();
        let Ok(timer) = Timer::parse(TimerKind::Cycle, &text) else {
            continue;
        };
        accepted += 1;
        assert_eq!(timer.repetitions(), ENDLESS);
        let now = random.second() * 1_000;
        let due = timer.first_due(now).expect("within range");
        assert!(due > now && due % 1_000 == 0, "{text} at {now}: {due}");
        assert_eq!(timer.next_due(now - 5_000, now), Some(due), "the last due date does not matter");
        // Whenever it is looked up before it is due, nothing else is due earlier.
        let between = now + i64::try_from(random.below(1 << 31)).expect("31 bits fit") % (due - now);
        assert_eq!(timer.first_due(between.div_euclid(1_000) * 1_000), Some(due), "{text} at {between}");
        let later = timer.first_due(now + 86_400_000).expect("within range");
        assert!(later >= due, "{text}: an earlier start is not due later");
    }
    assert!(accepted > 3_000, "only {accepted} expressions were accepted");
}

#[test]
fn repeating_intervals_go_on_from_the_last_due_date_but_not_before_now() {
    let mut random = Schedules(Chance::new(8));
    for _ in 0..5_000 {
        let text = random.repeating_interval();
        let timer = cycle(&text);
        let now = random.second() * 1_000 + 1;
        let mut due = timer.first_due(now).expect("within range");
        assert!(due >= now, "{text} at {now}: {due}");
        for _ in 0..4 {
            let next = timer.next_due(due, due).expect("within range");
            assert!(next > due, "{text} after {due}: {next}");
            assert_eq!(timer.next_due(due, next - 1), Some(next), "{text}: delays do not add up");
            assert_eq!(timer.next_due(due, next + 1), Some(next + 1), "{text}: what was missed is due at once");
            due = next;
        }
    }
}

#[test]
fn mutated_texts_never_panic() {
    const PIECES: [&str; 24] = [
        "",
        "P",
        "T",
        "R",
        "/",
        "-",
        "+",
        "0",
        "9",
        "99999999999999999999",
        ".",
        ",",
        "*",
        "?",
        "L",
        "W",
        "#",
        "|",
        "||",
        " ",
        "Z",
        "[",
        "]",
        "\u{1F552}",
    ];
    let texts: Vec<&str> = rows::<6>(DUE_DATES).map(|row| row[1]).collect();
    let mut random = Schedules(Chance::new(9));
    let mut accepted = 0;
    for round in 0..60_000 {
        let mut characters: Vec<char> = texts[round % texts.len()].chars().collect();
        for _ in 0..1 + random.below(2) {
            let at = random.below(characters.len() + 1);
            let end = (at + random.below(3)).min(characters.len());
            characters.splice(at..end, PIECES[random.below(PIECES.len())].chars());
        }
        let text: String = characters.into_iter().collect();
        for kind in [TimerKind::Date, TimerKind::Duration, TimerKind::Cycle] {
            if let Ok(timer) = Timer::parse(kind, &text) {
                accepted += 1;
                for now in [i64::MIN, -1, 0, 1_735_689_600_123, i64::MAX] {
                    let _ = timer.first_due(now);
                    assert!(timer.next_due(now, 0).is_none_or(|due| due >= 0), "{text}");
                    assert!(timer.next_due(0, now).is_none_or(|due| due >= now), "{text}");
                }
            }
        }
    }
    assert!(accepted > 1_000, "only {accepted} texts were accepted");
}

#[test]
fn every_truncation_is_understood_or_refused() {
    for [kind_name, text, ..] in rows::<6>(DUE_DATES) {
        for end in 0..text.len() {
            if let Err(error) = Timer::parse(kind(kind_name), &text[..end]) {
                assert!(error.ends_with('.'), "{error}");
            }
        }
    }
}

#[test]
fn texts_up_to_the_limit_are_read() {
    let padded = |digits: usize| format!("PT{}5S", "0".repeat(digits));
    let longest = padded(MAXIMUM_TEXT_BYTES - 4);
    assert_eq!(longest.len(), MAXIMUM_TEXT_BYTES);
    assert_eq!(duration(&longest).first_due(0), Some(5_000));
    let error = Timer::parse(TimerKind::Duration, &padded(MAXIMUM_TEXT_BYTES - 3)).expect_err("a byte more");
    assert!(error.contains("it is longer than 1024 bytes"), "{error}");
    let alternatives = |count: usize| vec!["@daily"; count].join("||");
    assert!(Timer::parse(TimerKind::Cycle, &alternatives(64)).is_ok());
    let error = Timer::parse(TimerKind::Cycle, &alternatives(65)).expect_err("one more");
    assert!(error.contains("more than 64 alternatives"), "{error}");
}

/// The bound is far above what it takes, so that only work without an end fails.
#[test]
fn hostile_texts_are_refused_quickly_and_briefly() {
    let mut texts = Vec::new();
    for piece in ["9", "P", "-", "/", "*,", "1,", "|", "||", " ", "* ", "[", "0-", "L", "#", "\u{1F552}"] {
        for prefix in ["", "P", "PT", "R", "R/", "R3/P", "* * * ", "2025-01-01T00:00:00."] {
            texts.push(format!("{prefix}{}", piece.repeat((MAXIMUM_TEXT_BYTES - prefix.len()) / piece.len())));
            texts.push(format!("{prefix}{}", piece.repeat(200_000)));
        }
    }
    texts.push(format!("{} * * * * *", vec!["*"; 490].join("|")));
    texts.push(vec!["* * * 30 2 *"; 64].join("||"));
    let start = Instant::now();
    for text in &texts {
        for kind in [TimerKind::Date, TimerKind::Duration, TimerKind::Cycle] {
            let error = Timer::parse(kind, text).expect_err("no timer");
            assert!(error.len() < 2_000, "an error of {} bytes", error.len());
        }
    }
    assert!(start.elapsed() < Duration::from_secs(600), "{:?} for {} texts", start.elapsed(), texts.len());
}
