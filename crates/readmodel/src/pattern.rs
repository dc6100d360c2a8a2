//! Patterns of texts: `*` for any characters, `?` for one; a backslash takes the meaning from what follows.
//!
//! The pieces between the stars are looked for one after the other, so a text is read once, however the
//! pattern is made. A piece with question marks is looked for with a bit for each of its bytes at once.

use std::time::Instant;

use memchr::memmem;

/// So many bytes are looked at between two looks at the clock.
const LOOK_BYTES: usize = 64 << 10;

/// The time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late;

/// A pattern that was read once and is compared with many texts.
#[derive(Debug)]
pub struct Pattern {
    /// What a text begins with.
    first: Vec<Token>,
    /// What follows the stars; none without any star.
    rest: Option<Rest>,
}

#[derive(Debug)]
struct Rest {
    /// What stands between two stars, in this order.
    middle: Vec<Piece>,
    /// What a text ends with.
    last: Vec<Token>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// This byte.
    Byte(u8),
    /// Any character.
    One,
}

/// What is looked for anywhere.
#[derive(Debug)]
enum Piece {
    Literal(Box<memmem::Finder<'static>>),
    Masks(Masks),
}

/// A piece with question marks: which of its places a byte fits.
#[derive(Debug)]
struct Masks {
    /// For each byte, a bit for each place in words of 64.
    of_bytes: Vec<u64>,
    /// The places of any character.
    ones: Vec<u64>,
    places: usize,
    ends_with_one: bool,
}

/// Until when a text may be looked at.
#[derive(Debug, Clone, Copy)]
struct Clock(Option<Instant>);

impl Clock {
    fn look(self) -> Result<(), Late> {
        if self.0.is_some_and(|deadline| Instant::now() > deadline) { Err(Late) } else { Ok(()) }
    }
}

impl Pattern {
    /// Reads a pattern. Every text is one.
    pub fn new(pattern: &str) -> Pattern {
        let mut pieces = vec![Vec::new()];
        let mut bytes = pattern.bytes();
        while let Some(byte) = bytes.next() {
            let token = match byte {
                b'*' => {
                    pieces.push(Vec::new());
                    continue;
                }
                b'?' => Token::One,
                b'\\' => Token::Byte(bytes.next().unwrap_or(b'\\')),
                byte => Token::Byte(byte),
            };
            if let Some(piece) = pieces.last_mut() {
                piece.push(token);
            }
        }
        let last = if pieces.len() > 1 { pieces.pop() } else { None };
        let mut pieces = pieces.into_iter();
        let first = pieces.next().unwrap_or_default();
        let middle = pieces.filter(|piece| !piece.is_empty()).map(Piece::new).collect();
        Pattern { first, rest: last.map(|last| Rest { middle, last }) }
    }

    /// What every text that is like it begins with.
    pub fn beginning(&self) -> String {
        let literal = self.first.iter().map_while(|token| match token {
            Token::Byte(byte) => Some(*byte),
            Token::One => None,
        });
        String::from_utf8(literal.collect()).unwrap_or_default()
    }

    /// Whether a text is like it.
    pub fn is_like(&self, text: &str) -> bool {
        self.is_like_until(text.as_bytes(), None).unwrap_or_default()
    }

    /// The same, if it is found out in time.
    ///
    /// # Errors
    /// When the deadline has passed.
    pub fn is_like_until(&self, text: &[u8], deadline: Option<Instant>) -> Result<bool, Late> {
        let clock = Clock(deadline);
        clock.look()?;
        let Some(begin) = after(&self.first, text) else { return Ok(false) };
        let Some(rest) = &self.rest else { return Ok(begin == text.len()) };
        let text = &text[begin..];
        let Some(end) = before(&rest.last, text) else { return Ok(false) };
        let mut text = &text[..end];
        for piece in &rest.middle {
            let Some(end) = piece.first_end(text, clock)? else { return Ok(false) };
            text = &text[end..];
        }
        Ok(true)
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// Where what a text begins with ends.
fn after(tokens: &[Token], text: &[u8]) -> Option<usize> {
    let mut at = 0;
    for token in tokens {
        let byte = *text.get(at)?;
        at += 1;
        match token {
            Token::Byte(wanted) if *wanted != byte => return None,
            Token::Byte(_) => {}
            Token::One => at += continuations(&text[at..]),
        }
    }
    Some(at)
}

/// Where what a text ends with begins.
fn before(tokens: &[Token], text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    for token in tokens.iter().rev() {
        end = end.checked_sub(1)?;
        match token {
            Token::Byte(wanted) if *wanted != text[end] => return None,
            Token::Byte(_) => {}
            Token::One => end -= text[..=end].iter().rev().take_while(|byte| is_continuation(**byte)).count().min(end),
        }
    }
    Some(end)
}

/// How many bytes belong to the character before them.
fn continuations(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_continuation(**byte)).count()
}

impl Piece {
    fn new(tokens: Vec<Token>) -> Piece {
        if tokens.contains(&Token::One) {
            return Piece::Masks(Masks::new(&tokens));
        }
        let literal: Vec<u8> = tokens
            .into_iter()
            .filter_map(|token| match token {
                Token::Byte(byte) => Some(byte),
                Token::One => None,
            })
            .collect();
        Piece::Literal(Box::new(memmem::Finder::new(&literal).into_owned()))
    }

    /// Where the first place ends at which it stands.
    fn first_end(&self, text: &[u8], clock: Clock) -> Result<Option<usize>, Late> {
        match self {
            Piece::Literal(finder) => {
                let length = finder.needle().len();
                let mut begin = 0;
                loop {
                    let end = text.len().min(begin + LOOK_BYTES + length);
                    if let Some(at) = finder.find(&text[begin..end]) {
                        return Ok(Some(begin + at + length));
                    }
                    if end == text.len() {
                        return Ok(None);
                    }
                    begin += LOOK_BYTES;
                    clock.look()?;
                }
            }
            Piece::Masks(masks) => masks.first_end(text, clock),
        }
    }
}

impl Masks {
    fn new(tokens: &[Token]) -> Masks {
        let words = tokens.len().div_ceil(64);
        let mut masks = Masks {
            of_bytes: vec![0; 256 * words],
            ones: vec![0; words],
            places: tokens.len(),
            ends_with_one: tokens.last() == Some(&Token::One),
        };
        for (place, token) in tokens.iter().enumerate() {
            let (word, bit) = (place / 64, 1_u64 << (place % 64));
            match token {
                Token::Byte(byte) => masks.of_bytes[usize::from(*byte) * words + word] |= bit,
                Token::One => {
                    masks.ones[word] |= bit;
                    for byte in (0..=u8::MAX).filter(|byte| !is_continuation(*byte)) {
                        masks.of_bytes[usize::from(byte) * words + word] |= bit;
                    }
                }
            }
        }
        masks
    }

    fn first_end(&self, text: &[u8], clock: Clock) -> Result<Option<usize>, Late> {
        let words = self.ones.len();
        let (last_word, last_bit) = ((self.places - 1) / 64, (self.places - 1) % 64);
        // A bit for each place up to which the piece stands right before the next byte.
        let mut reached = vec![0_u64; words];
        for (at, byte) in text.iter().enumerate() {
            if at % LOOK_BYTES == LOOK_BYTES - 1 {
                clock.look()?;
            }
            let fitting = &self.of_bytes[usize::from(*byte) * words..][..words];
            let stays = if is_continuation(*byte) { u64::MAX } else { 0 };
            let mut carried = 1;
            for ((reached, fitting), ones) in reached.iter_mut().zip(fitting).zip(&self.ones) {
                let next = (*reached << 1 | carried) & fitting | *reached & ones & stays;
                carried = *reached >> 63;
                *reached = next;
            }
            if reached[last_word] >> last_bit & 1 == 1 {
                let end = at + 1;
                return Ok(Some(if self.ends_with_one { end + continuations(&text[end..]) } else { end }));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// The same by trying everything.
    fn is_like_by_trying(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', rest @ ..] => (0..=text.len()).any(|skipped| is_like_by_trying(rest, &text[skipped..])),
            ['?', rest @ ..] => !text.is_empty() && is_like_by_trying(rest, &text[1..]),
            ['\\', literal, rest @ ..] | [literal, rest @ ..] => {
                text.first() == Some(literal) && is_like_by_trying(rest, &text[1..])
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn what_is_like_a_pattern_is_found_as_by_trying(pattern in r"[ab*?\\é]{0,10}", text in "[abé*]{0,12}") {
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = is_like_by_trying(&characters(&pattern), &characters(&text));
            prop_assert_eq!(Pattern::new(&pattern).is_like(&text), expected, "{} {}", pattern, text);
        }
    }

    #[test]
    fn pieces_are_found_across_words_and_looks() {
        let filling = "é".repeat(LOOK_BYTES / 2 - 30);
        for piece in ["x".repeat(64), format!("{}?", "x".repeat(63)), format!("{}?{}", "x".repeat(63), "y".repeat(200))]
        {
            let text = format!("{filling}{}{filling}", piece.replace('?', "ü"));
            assert!(Pattern::new(&format!("*{piece}*é")).is_like(&text), "{piece}");
            assert!(!Pattern::new(&format!("*{piece}z*")).is_like(&text), "{piece}");
        }
    }

    #[test]
    fn the_time_is_looked_at_inside_of_a_text() {
        let text = "a".repeat(4 << 20);
        let over = Instant::now() - Duration::from_secs(1);
        for pattern in [format!("*{}b*", "a".repeat(900)), format!("*{}?b*", "a".repeat(900))] {
            assert_eq!(Pattern::new(&pattern).is_like_until(text.as_bytes(), Some(over)), Err(Late));
            let piece =
                &Pattern::new(&pattern).rest.expect("a star").middle[0].first_end(text.as_bytes(), Clock(Some(over)));
            assert_eq!(*piece, Err(Late), "{pattern}");
        }
    }

    #[test]
    fn the_beginning_ends_at_the_first_sign() {
        for (pattern, beginning) in [("ab*", "ab"), ("é?x", "é"), (r"a\*b", "a*b"), ("*a", ""), ("a", "a")] {
            assert_eq!(Pattern::new(pattern).beginning(), beginning, "{pattern}");
        }
    }
}
