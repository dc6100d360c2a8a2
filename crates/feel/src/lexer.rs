//! Splits an expression into tokens. Words stay words: the parser decides which of them form a name, and, for variables, at
//! evaluation.

use crate::names::Names;
use crate::parser::ParseError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or keyword.
    Word,
    /// A name in backticks, which the range excludes, or a known name of more than a word.
    Backtick,
    Number,
    /// A text in double quotes; the range excludes them.
    String,
    /// A temporal literal `@"…"`; the range is that of the text.
    Temporal,
    LeftParenthesis,
    RightParenthesis,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Comma,
    Colon,
    Dot,
    DotDot,
    Plus,
    Minus,
    Star,
    StarStar,
    Slash,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// The input value of a unary test.
    Question,
    Arrow,
    End,
}

/// A piece of an expression. A long expression has very many of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    start: u32,
    end: u32,
}

impl Token {
    fn new(kind: Kind, start: usize, end: usize) -> Token {
        let place = |at| u32::try_from(at).expect("invariant: an expression is not too long for it");
        Token { kind, start: place(start), end: place(end) }
    }

    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) fn end(self) -> usize {
        self.end as usize
    }
}

fn is_word_start(character: char) -> bool {
    match character {
        'a'..='z' | 'A'..='Z' | '_' | '$' => true,
        _ => {
            !character.is_ascii() && !character.is_whitespace() && !character.is_control() && !is_typographic(character)
        }
    }
}

/// Quotation marks and dashes as word processors put them in place of the ASCII ones: never part of a name.
fn is_typographic(character: char) -> bool {
    ('\u{2010}'..='\u{201f}').contains(&character) || character == '\u{2026}'
}

pub(crate) fn is_word_part(character: char) -> bool {
    character.is_ascii_digit() || is_word_start(character)
}

pub(crate) fn tokens(text: &str, names: &Names) -> Result<Vec<Token>, ParseError> {
    let mut lexer = Lexer { text, names, position: 0 };
    // There are no more of them than bytes. To grow with a long expression would take longer than to read it.
    let mut tokens = Vec::with_capacity(text.len() + 1);
    loop {
        lexer.skip_blank()?;
        let token = lexer.token()?;
        tokens.push(token);
        if token.kind == Kind::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    names: &'a Names,
    position: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn error(&self, offset: usize, expected: &str) -> ParseError {
        ParseError::at(self.text, offset, expected)
    }

    /// Passes over white space and comments.
    fn skip_blank(&mut self) -> Result<(), ParseError> {
        loop {
            let rest = self.rest();
            let trimmed =
                rest.trim_start_matches(|character: char| character.is_whitespace() || character == '\u{feff}');
            self.position += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.position += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                let length =
                    comment.find("*/").ok_or_else(|| self.error(self.text.len(), "'*/' to end the comment"))?;
                self.position += length + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token, ParseError> {
        let start = self.position;
        let bytes = self.text.as_bytes();
        let Some(&byte) = bytes.get(start) else {
            return Ok(Token::new(Kind::End, start, start));
        };
        if let Some(length) = self.names.length_at(self.rest()) {
            self.position += length;
            return Ok(Token::new(Kind::Backtick, start, self.position));
        }
        let next = bytes.get(start + 1).copied();
        let (kind, length) = match (byte, next) {
            (b'0'..=b'9', _) => return Ok(self.number()),
            (b'.', Some(b'0'..=b'9')) => return Ok(self.number()),
            (b'"', _) => return self.string(Kind::String, start + 1),
            (b'@', Some(b'"')) => return self.string(Kind::Temporal, start + 2),
            (b'`', _) => return self.backtick(),
            (b'.', Some(b'.')) => (Kind::DotDot, 2),
            (b'*', Some(b'*')) => (Kind::StarStar, 2),
            (b'!', Some(b'=')) => (Kind::NotEqual, 2),
            (b'<', Some(b'=')) => (Kind::LessEqual, 2),
            (b'>', Some(b'=')) => (Kind::GreaterEqual, 2),
            (b'-', Some(b'>')) => (Kind::Arrow, 2),
            (b'(', _) => (Kind::LeftParenthesis, 1),
            (b')', _) => (Kind::RightParenthesis, 1),
            (b'[', _) => (Kind::LeftBracket, 1),
            (b']', _) => (Kind::RightBracket, 1),
            (b'{', _) => (Kind::LeftBrace, 1),
            (b'}', _) => (Kind::RightBrace, 1),
            (b',', _) => (Kind::Comma, 1),
            (b':', _) => (Kind::Colon, 1),
            (b'.', _) => (Kind::Dot, 1),
            (b'+', _) => (Kind::Plus, 1),
            (b'-', _) => (Kind::Minus, 1),
            (b'*', _) => (Kind::Star, 1),
            (b'/', _) => (Kind::Slash, 1),
            (b'=', _) => (Kind::Equal, 1),
            (b'<', _) => (Kind::Less, 1),
            (b'>', _) => (Kind::Greater, 1),
            (b'?', _) => (Kind::Question, 1),
            _ => return self.word(),
        };
        self.position += length;
        Ok(Token::new(kind, start, self.position))
    }

    fn skip_digits(&mut self) {
        while self.text.as_bytes().get(self.position).is_some_and(u8::is_ascii_digit) {
            self.position += 1;
        }
    }

    /// Digits, a point only if a digit follows (`1..3` is a range), an exponent only if it is complete.
    fn number(&mut self) -> Token {
        let start = self.position;
        let bytes = self.text.as_bytes();
        self.skip_digits();
        if bytes.get(self.position) == Some(&b'.') && bytes.get(self.position + 1).is_some_and(u8::is_ascii_digit) {
            self.position += 1;
            self.skip_digits();
        }
        if let Some(b'e' | b'E') = bytes.get(self.position) {
            let signed = matches!(bytes.get(self.position + 1), Some(b'+' | b'-'));
            let digits = self.position + 1 + usize::from(signed);
            if bytes.get(digits).is_some_and(u8::is_ascii_digit) {
                self.position = digits;
                self.skip_digits();
            }
        }
        Token::new(Kind::Number, start, self.position)
    }

    fn string(&mut self, kind: Kind, start: usize) -> Result<Token, ParseError> {
        let bytes = self.text.as_bytes();
        let mut at = start;
        loop {
            match bytes.get(at) {
                None => return Err(self.error(self.text.len(), "'\"' to end the string")),
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
            }
        }
        self.position = at + 1;
        Ok(Token::new(kind, start, at))
    }

    fn backtick(&mut self) -> Result<Token, ParseError> {
        let start = self.position + 1;
        match self.text[start..].find('`') {
            Some(0) => Err(self.error(start, "a name between the backticks")),
            Some(length) => {
                self.position = start + length + 1;
                Ok(Token::new(Kind::Backtick, start, start + length))
            }
            None => Err(self.error(self.text.len(), "'`' to end the name")),
        }
    }

    fn word(&mut self) -> Result<Token, ParseError> {
        let start = self.position;
        let rest = self.rest();
        if !rest.starts_with(is_word_start) {
            return Err(self.error(start, "an expression"));
        }
        self.position += rest.find(|character| !is_word_part(character)).unwrap_or(rest.len());
        Ok(Token::new(Kind::Word, start, self.position))
    }
}

/// Decodes the escapes of a string literal. An unknown escape is kept, including its backslash: patterns like `\d` need no
/// doubling.
pub(crate) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let (character, used) = match escape.chars().next() {
            Some('n') => ('\n', 1),
            Some('r') => ('\r', 1),
            Some('t') => ('\t', 1),
            Some('b') => ('\u{8}', 1),
            Some('f') => ('\u{c}', 1),
            Some('"') => ('"', 1),
            Some('\'') => ('\'', 1),
            Some('\\') => ('\\', 1),
            Some('u') => code_point(escape, 4),
            Some('U') => code_point(escape, 6),
            _ => ('\\', 0),
        };
        out.push(character);
        rest = &escape[used..];
    }
    out.push_str(rest);
    out
}

/// Reads `u` with four hexadecimal digits or `U` with six; two `\u` surrogates form one character. Incomplete ones leave the backslash.
fn code_point(escape: &str, digits: usize) -> (char, usize) {
    let unit = |at: usize| {
        let text = escape.get(at..at + digits)?;
        if text.bytes().all(|byte| byte.is_ascii_hexdigit()) { u32::from_str_radix(text, 16).ok() } else { None }
    };
    let Some(code) = unit(1) else {
        return ('\\', 0);
    };
    if (0xd800..0xdc00).contains(&code)
        && escape.get(5..7) == Some("\\u")
        && let Some(low) = unit(7).filter(|low| (0xdc00..0xe000).contains(low))
    {
        let combined = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(combined).unwrap_or('\u{fffd}'), 11);
    }
    (char::from_u32(code).unwrap_or('\u{fffd}'), digits + 1)
}
