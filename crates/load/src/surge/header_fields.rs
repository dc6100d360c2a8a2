//! The header fields of requests and answers as HTTP/2 packs them (RFC 7541), reduced to what creations need: all
//! requests of a connection have the same fields, and only the gRPC status of an answer is read.

/// Bits of the code of each octet and of the end of a text (RFC 7541, appendix B). The code is canonical, so the
/// lengths determine it.
const CODE_LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];
const LONGEST_CODE: usize = 30;

/// The header fields of every request: those of the first, which make the server remember them, and those of the
/// others, which refer to what it remembers.
pub(super) struct RequestFields {
    pub first: Vec<u8>,
    pub others: Vec<u8>,
}

/// The number that the newest remembered field has.
const NEWEST_REMEMBERED: u8 = 62;

impl RequestFields {
    /// For a server that remembers nothing both are the same.
    pub fn new(path: &str, authority: &str, timeout: &str, server_remembers: bool) -> Self {
        // Indexes of names in the static table; zero stands for a literal name.
        let fields: [(u8, &str, &str); 6] = [
            (4, ":path", path),
            (1, ":authority", authority),
            (31, "content-type", "application/grpc"),
            (58, "user-agent", "osmia-load"),
            (0, "te", "trailers"),
            (0, "grpc-timeout", timeout),
        ];
        // ":method: POST" and ":scheme: http" are in the static table.
        let (mut first, mut others) = (vec![0x83, 0x86], vec![0x83, 0x86]);
        for (place, (number, name, value)) in fields.into_iter().enumerate() {
            if server_remembers {
                first.push(0x40 | number);
                others.push(0x80 | (NEWEST_REMEMBERED + (fields.len() - 1 - place) as u8));
            } else {
                push_number(&mut first, 0x00, 4, usize::from(number));
            }
            if number == 0 {
                push_text(&mut first, name);
            }
            push_text(&mut first, value);
        }
        if !server_remembers {
            others.clone_from(&first);
        }
        RequestFields { first, others }
    }
}

fn push_text(block: &mut Vec<u8>, text: &str) {
    push_number(block, 0x00, 7, text.len());
    block.extend_from_slice(text.as_bytes());
}

/// A number whose first bits share an octet with flags.
fn push_number(block: &mut Vec<u8>, flags: u8, prefix_bits: u32, number: usize) {
    let prefix_limit = (1_usize << prefix_bits) - 1;
    if number < prefix_limit {
        return block.push(flags | number as u8);
    }
    block.push(flags | prefix_limit as u8);
    let mut rest = number - prefix_limit;
    while rest >= 0x80 {
        block.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    block.push(rest as u8);
}

/// What an answer says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerFields {
    pub status: Option<u8>,
    /// Empty unless it was asked for.
    pub message: String,
}

/// Reads the fields of answers.
pub(super) struct AnswerReader {
    counts: [u16; LONGEST_CODE + 1],
    symbols: Vec<u16>,
}

/// A string as encoded in a block.
struct Packed<'a> {
    octets: &'a [u8],
    coded: bool,
}

impl AnswerReader {
    pub fn new() -> Self {
        let mut counts = [0; LONGEST_CODE + 1];
        CODE_LENGTHS.iter().for_each(|length| counts[usize::from(*length)] += 1);
        let mut symbols: Vec<u16> = (0..CODE_LENGTHS.len() as u16).collect();
        symbols.sort_by_key(|symbol| (CODE_LENGTHS[usize::from(*symbol)], *symbol));
        AnswerReader { counts, symbols }
    }

    /// Finds the status. The message is decoded only when it is wanted for this status. None when the block is broken.
    pub fn read(&self, block: &[u8], wants_message: impl Fn(u8) -> bool) -> Option<AnswerFields> {
        let mut rest = block;
        let mut status = None;
        let mut message = None;
        while let Some(first) = rest.first() {
            let (prefix_bits, is_literal) = match first {
                0x80.. => (7, false),
                0x40.. => (6, true),
                // A new size of the table, which stays empty.
                0x20.. => (5, false),
                _ => (4, true),
            };
            let number = take_number(&mut rest, prefix_bits)?;
            if !is_literal {
                continue;
            }
            let name = if number == 0 { self.unpack(&take_text(&mut rest)?)? } else { Vec::new() };
            let value = take_text(&mut rest)?;
            match &name[..] {
                b"grpc-status" => status = std::str::from_utf8(&self.unpack(&value)?).ok()?.parse().ok(),
                b"grpc-message" => message = Some(value),
                _ => {}
            }
        }
        let message = match message {
            Some(message) if status.is_some_and(wants_message) => without_escapes(&self.unpack(&message)?),
            _ => String::new(),
        };
        Some(AnswerFields { status, message })
    }

    fn unpack(&self, text: &Packed<'_>) -> Option<Vec<u8>> {
        if !text.coded {
            return Some(text.octets.to_vec());
        }
        let mut unpacked = Vec::with_capacity(text.octets.len() * 8 / 5);
        // The index among the codes of the current length, and the first code and symbol of that length.
        let (mut code, mut first, mut index, mut length) = (0_u32, 0_u32, 0_usize, 0_usize);
        for bit in text.octets.iter().flat_map(|octet| (0..8).rev().map(move |place| octet >> place & 1)) {
            code |= u32::from(bit);
            length += 1;
            let count = u32::from(*self.counts.get(length)?);
            if code < first + count {
                let symbol = self.symbols[index + (code - first) as usize];
                unpacked.push(u8::try_from(symbol).ok()?);
                (code, first, index, length) = (0, 0, 0, 0);
                continue;
            }
            index += count as usize;
            first = (first + count) << 1;
            code <<= 1;
        }
        // The padding of the last octet is shorter.
        (length < 8).then_some(unpacked)
    }
}

fn take_number(rest: &mut &[u8], prefix_bits: u32) -> Option<usize> {
    let (first, mut after) = rest.split_first()?;
    let prefix_limit = (1_usize << prefix_bits) - 1;
    let mut number = usize::from(*first) & prefix_limit;
    if number == prefix_limit {
        let mut shift = 0;
        loop {
            let (octet, next) = after.split_first()?;
            after = next;
            number = number.checked_add(usize::from(octet & 0x7f).checked_shl(shift)?)?;
            shift += 7;
            if octet & 0x80 == 0 {
                break;
            }
            if shift > 28 {
                return None;
            }
        }
    }
    *rest = after;
    Some(number)
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<Packed<'a>> {
    let coded = rest.first()? & 0x80 != 0;
    let length = take_number(rest, 7)?;
    let (octets, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(Packed { octets, coded })
}

/// gRPC writes what is not plain ASCII as `%` and two digits.
fn without_escapes(text: &[u8]) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((octet, after)) = rest.split_first() {
        let escaped = after.get(..2).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match escaped {
            Some(escaped) if *octet == b'%' => {
                plain.push(escaped);
                rest = &after[2..];
            }
            _ => {
                plain.push(*octet);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(octets: &[u8]) -> Option<Vec<u8>> {
        AnswerReader::new().unpack(&Packed { octets, coded: true })
    }

    #[test]
    fn coded_texts_of_the_standard_are_unpacked() {
        // RFC 7541, C.4.1, C.4.3 and C.6.1.
        let host = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(unpack(&host).as_deref(), Some(&b"www.example.com"[..]));
        assert_eq!(
            unpack(&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf]).as_deref(),
            Some(&b"custom-value"[..])
        );
        assert_eq!(unpack(&[0x64, 0x02]).as_deref(), Some(&b"302"[..]));
        // Neither the end-of-string code nor a whole octet of padding is a character.
        assert_eq!(unpack(&[0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(unpack(&[0xff]), None);
    }

    #[test]
    fn the_status_is_found_among_other_fields() {
        let mut block = vec![0x3f, 0xe1, 0x1f, 0x88];
        block.push(0x5f);
        push_text(&mut block, "application/grpc");
        block.push(0x40);
        push_text(&mut block, "grpc-status");
        push_text(&mut block, "8");
        block.push(0x00);
        push_text(&mut block, "grpc-message");
        push_text(&mut block, "100%25 full: \u{2026}%2");
        let reader = AnswerReader::new();
        let answer = reader.read(&block, |status| status == 8).expect("a whole block");
        assert_eq!((answer.status, answer.message.as_str()), (Some(8), "100% full: \u{2026}%2"));
        let answer = reader.read(&block, |_| false).expect("a whole block");
        assert_eq!((answer.status, answer.message.as_str()), (Some(8), ""));
        for length in 0..block.len() {
            // Must not panic.
            let _ = reader.read(&block[..length], |_| true);
        }
        assert_eq!(reader.read(&block[..block.len() - 1], |_| true), None);
    }

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 14, 15, 30, 126, 127, 128, 254, 255, 1_337, 65_535, 2_000_000] {
            for prefix_bits in [4, 5, 6, 7] {
                let mut block = Vec::new();
                push_number(&mut block, 0, prefix_bits, number);
                let mut rest = &block[..];
                assert_eq!(take_number(&mut rest, prefix_bits), Some(number));
                assert!(rest.is_empty());
            }
        }
        assert_eq!(take_number(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..], 7), None);
    }

    #[test]
    fn requests_name_what_the_server_remembers() {
        let fields = RequestFields::new("/a", "b:1", "10S", true);
        assert_eq!(fields.others, [0x83, 0x86, 0xc3, 0xc2, 0xc1, 0xc0, 0xbf, 0xbe]);
        assert!(fields.first.windows(8).any(|text| text == b"trailers"));
        let fields = RequestFields::new("/a", "b:1", "10S", false);
        assert_eq!(fields.first, fields.others);
    }
}
