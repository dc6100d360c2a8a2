//! From the bytes of a file to its text.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::{Advice, MAXIMUM_RESOURCE_BYTES, find};

/// The text of a file. A byte order mark decides on the encoding, or else the XML declaration; without both it is UTF-8, or
/// UTF-16 if every second byte of its start is zero.
///
/// # Errors
/// When the file is too large, before or after decoding, when it is not in its encoding, or when that is not known, with a
/// sentence for those who deploy it.
pub fn decode<'a>(content: &'a [u8], advice: &Advice) -> Result<Cow<'a, str>, String> {
    check_size(content.len(), "", advice)?;
    let text = match content {
        [0xFE, 0xFF, rest @ ..] => decode_utf16(rest, UTF_16BE)?,
        [0xFF, 0xFE, rest @ ..] => decode_utf16(rest, UTF_16LE)?,
        [0xEF, 0xBB, 0xBF, rest @ ..] => decode_utf8(rest)?,
        [0, b'<', 0, _, ..] => decode_utf16(content, UTF_16BE)?,
        [b'<', 0, _, 0, ..] => decode_utf16(content, UTF_16LE)?,
        _ => match declared_encoding(content) {
            Some(name) => decode_declared(content, &name)?,
            None => decode_utf8(content)?,
        },
    };
    check_size(text.len(), " as UTF-8", advice)?;
    Ok(text)
}

fn check_size(bytes: usize, form: &str, advice: &Advice) -> Result<(), String> {
    if bytes <= MAXIMUM_RESOURCE_BYTES {
        return Ok(());
    }
    Err(format!(
        "The file has {bytes} bytes{form}, but at most {MAXIMUM_RESOURCE_BYTES} bytes are read. {}",
        advice.too_large
    ))
}

fn decode_utf8(content: &[u8]) -> Result<Cow<'_, str>, String> {
    std::str::from_utf8(content).map(Cow::Borrowed).map_err(|error| {
        format!(
            "The file is not valid UTF-8: the byte at offset {} does not fit. Save the file as UTF-8.",
            error.valid_up_to()
        )
    })
}

fn decode_utf16<'a>(content: &'a [u8], encoding: &'static Encoding) -> Result<Cow<'a, str>, String> {
    encoding
        .decode_without_bom_handling_and_without_replacement(content)
        .ok_or_else(|| "The file is not valid UTF-16 as its first bytes say. Save the file as UTF-8.".to_owned())
}

/// A file whose declaration, read as ASCII, names its encoding.
fn decode_declared<'a>(content: &'a [u8], name: &str) -> Result<Cow<'a, str>, String> {
    const SHOWN_CHARACTERS: usize = 60;
    let shown: String = name.chars().take(SHOWN_CHARACTERS).collect();
    let Some(encoding) = Encoding::for_label_no_replacement(name.as_bytes()) else {
        return Err(format!(
            "The encoding '{shown}' that the file declares is not supported here. Save the file as UTF-8."
        ));
    };
    if encoding == UTF_16BE || encoding == UTF_16LE {
        return Err(format!(
            "The file declares the encoding '{shown}', but it is not written in it. Save the file as UTF-8, and declare that."
        ));
    }
    let label = name.trim_ascii().to_ascii_lowercase();
    if encoding == UTF_8 || label.contains("ascii") {
        return decode_utf8(content);
    }
    // The web takes some of ISO's encodings for those of Windows, which have other characters in place of control characters.
    let is_iso = encoding.is_single_byte()
        && ["iso", "latin", "csiso", "l1", "l5", "cp819", "ibm819"].iter().any(|start| label.starts_with(start));
    if is_iso && encoding.name().starts_with("windows-") {
        return Ok(Cow::Owned(decode_with_controls(content, encoding)));
    }
    encoding.decode_without_bom_handling_and_without_replacement(content).ok_or_else(|| {
        format!("The file is not valid {} as it declares. Save the file as UTF-8, and declare that.", encoding.name())
    })
}

/// Decodes an encoding of single bytes, with the control characters of Unicode from 0x80 to 0x9F.
fn decode_with_controls(content: &[u8], encoding: &'static Encoding) -> String {
    let mut text = String::with_capacity(content.len());
    for part in content.chunk_by(|a, b| is_control(*a) == is_control(*b)) {
        if part.first().copied().is_some_and(is_control) {
            text.extend(part.iter().copied().map(char::from));
        } else {
            text.push_str(&encoding.decode_without_bom_handling(part).0);
        }
    }
    text
}

fn is_control(byte: u8) -> bool {
    matches!(byte, 0x80..=0x9F)
}

/// The encoding that the XML declaration names, if there is one.
fn declared_encoding(content: &[u8]) -> Option<String> {
    let declaration = content.strip_prefix(b"<?xml")?;
    let end = find(declaration, b"?>")?;
    let declaration = declaration.get(..end)?;
    let after = declaration.get(find(declaration, b"encoding")? + b"encoding".len()..)?.trim_ascii_start();
    let after = after.strip_prefix(b"=")?.trim_ascii_start();
    let (&quote, value) = after.split_first().filter(|(byte, _)| matches!(byte, b'"' | b'\''))?;
    let length = value.iter().position(|byte| *byte == quote)?;
    Some(String::from_utf8_lossy(value.get(..length)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVICE: Advice = Advice { too_large: "Split it.", too_deep: "" };

    fn declared(name: &str, bytes: &[u8]) -> Vec<u8> {
        let mut content = format!("<?xml version=\"1.0\" encoding=\"{name}\"?><a>").into_bytes();
        content.extend_from_slice(bytes);
        content.extend_from_slice(b"</a>");
        content
    }

    fn text_of(name: &str, bytes: &[u8]) -> Result<String, String> {
        let content = declared(name, bytes);
        let text = decode(&content, &ADVICE)?;
        let (_, rest) = text.split_once("<a>").expect("the element");
        Ok(rest.strip_suffix("</a>").expect("the end of the element").to_owned())
    }

    #[test]
    fn encodings_are_known_by_all_their_names() {
        let cases: [(&str, &[u8], &str); 21] = [
            ("UTF-8", "ü€".as_bytes(), "ü€"),
            ("utf8", "ü€".as_bytes(), "ü€"),
            ("US-ASCII", b"a", "a"),
            ("windows-1252", b"\xfc\x80\x99", "ü€™"),
            ("WINDOWS-1252", b"\xfc\x80", "ü€"),
            ("Cp1252", b"\xfc\x80", "ü€"),
            ("ISO-8859-1", b"\xfc\x80", "ü\u{80}"),
            ("latin1", b"\xfc\xdf", "üß"),
            ("ISO8859-1", b"\xfc", "ü"),
            ("iso-8859-2", b"\xb1", "ą"),
            ("windows-1250", b"\xb9", "ą"),
            ("windows-1251", b"\xcf", "П"),
            ("KOI8-R", b"\xf0", "П"),
            ("ISO-8859-5", b"\xbf", "П"),
            ("ISO-8859-7", b"\xe1", "α"),
            ("ISO-8859-9", b"\xf0\x85", "ğ\u{85}"),
            ("windows-1254", b"\xf0\x85", "ğ…"),
            ("ISO-8859-15", b"\xa4", "€"),
            ("macintosh", b"\x8a", "ä"),
            ("Shift_JIS", b"\x83\x65", "テ"),
            ("GB18030", b"\xc4\xe3", "你"),
        ];
        for (name, bytes, expected) in cases {
            assert_eq!(text_of(name, bytes).as_deref(), Ok(expected), "{name}");
        }
    }

    #[test]
    fn utf_16_is_read_with_and_without_a_byte_order_mark() {
        let document = "<?xml version=\"1.0\" encoding=\"UTF-16\"?><a>ü😀</a>";
        let big: Vec<u8> = document.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let little: Vec<u8> = document.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (mark, bytes) in [(&b"\xfe\xff"[..], &big), (b"\xff\xfe", &little), (b"", &big), (b"", &little)] {
            let content = [mark, bytes].concat();
            assert_eq!(decode(&content, &ADVICE).as_deref(), Ok(document));
        }
        let odd = [&big[..], b"\0"].concat();
        assert!(decode(&odd, &ADVICE).unwrap_err().contains("not valid UTF-16"));
        let marked = [&b"\xef\xbb\xbf"[..], "<a>ü</a>".as_bytes()].concat();
        assert_eq!(decode(&marked, &ADVICE).as_deref(), Ok("<a>ü</a>"));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_name_of_the_encoding() {
        for name in ["EBCDIC-CP-US", "UTF-7", "UTF-32", "iso-2022-kr", "\u{1f41d}", ""] {
            let refusal = text_of(name, b"a").expect_err(name);
            assert!(
                refusal.contains(&format!("The encoding '{name}' that the file declares is not supported")),
                "{refusal}"
            );
        }
        let refusal = text_of("UTF-16", b"a").expect_err("it is ASCII");
        assert!(refusal.contains("declares the encoding 'UTF-16', but it is not written in it"), "{refusal}");
        assert!(text_of("Shift_JIS", b"\x83\xff").expect_err("no character").contains("not valid Shift_JIS"));
        assert!(text_of("UTF-8", b"\xff").expect_err("no character").contains("the byte at offset 41"));
        assert!(text_of("us-ascii", b"\xff").expect_err("no character").contains("not valid UTF-8"));
    }

    #[test]
    fn a_file_is_limited_before_and_after_decoding() {
        let large = vec![b'a'; MAXIMUM_RESOURCE_BYTES + 1];
        assert!(decode(&large, &ADVICE).unwrap_err().contains("4194305 bytes, but at most 4194304"));
        let wide = declared("windows-1252", &vec![0x80; 2 << 20]);
        let refusal = decode(&wide, &ADVICE).unwrap_err();
        assert!(refusal.contains("bytes as UTF-8, but at most 4194304") && refusal.ends_with("Split it."), "{refusal}");
        assert!(decode(&declared("windows-1252", &vec![0x80; 1 << 20]), &ADVICE).is_ok());
    }
}
