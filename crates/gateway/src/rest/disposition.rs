//! What a part of a form says about itself: its name, and that of the file in it.
//!
//! Names that are not ASCII come in four ways: as they are (browsers, most libraries), with their
//! bytes in percent (`filename*`, RFC 5987), as encoded words of mail (RFC 2047), or, from .NET, in
//! the latter two at once. `filename*` says most and wins.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The parameters of `Content-Disposition` that mean something here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Disposition {
    pub name: Option<String>,
    pub file_name: Option<String>,
}

impl Disposition {
    /// # Errors
    /// When a name is in an encoding that cannot be read. Says what is wrong with it.
    pub(super) fn read(header: &[u8]) -> Result<Disposition, String> {
        let (mut name, mut file_name, mut extended) = (None, None, None);
        for (key, value) in parameters(header) {
            let is = |known: &[u8]| key.eq_ignore_ascii_case(known);
            // What is given twice is what it was first, as for other readers of forms.
            if is(b"name") && name.is_none() {
                name = Some(plain(&value)?);
            } else if is(b"filename") && file_name.is_none() {
                file_name = Some(value);
            } else if is(b"filename*") && extended.is_none() {
                extended = Some(value);
            }
        }
        let file_name = match (extended, file_name) {
            (Some(value), _) => Some(from_percent(&value)?),
            (None, Some(value)) => Some(from_words(&plain(&value)?)?),
            (None, None) => None,
        };
        Ok(Disposition { name, file_name })
    }
}

/// Keys and values after the type, without quotes.
fn parameters(header: &[u8]) -> Vec<(&[u8], Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = after(header, b';');
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'=' | b';')) {
        if rest[at] == b';' {
            // A parameter without a value.
            rest = &rest[at + 1..];
            continue;
        }
        let key = rest[..at].trim_ascii();
        let value = rest[at + 1..].trim_ascii_start();
        let (value, next) = match value.strip_prefix(b"\"") {
            Some(quoted) => unquoted(quoted),
            None => {
                let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
                (value[..end].trim_ascii_end().to_vec(), &value[end..])
            }
        };
        found.push((key, value));
        rest = after(next, b';');
    }
    found
}

/// What comes after a byte.
fn after(text: &[u8], byte: u8) -> &[u8] {
    text.iter().position(|found| *found == byte).map_or(&[], |at| &text[at + 1..])
}

/// A value up to its quotation mark, and what comes after that. Only the mark is escaped: a
/// backslash may be part of a path.
fn unquoted(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut value = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            (b'"', _) => return (value, &text[at + 1..]),
            (b'\\', Some(b'"')) => {
                value.push(b'"');
                at += 2;
            }
            (byte, _) => {
                value.push(byte);
                at += 1;
            }
        }
    }
    (value, &[])
}

fn plain(value: &[u8]) -> Result<String, String> {
    let text = str::from_utf8(value).map_err(|_| "a name in Content-Disposition is not UTF-8")?;
    Ok(text.to_owned())
}

/// `UTF-8'en'Proze%C3%9F.bpmn`.
fn from_percent(value: &[u8]) -> Result<String, String> {
    let mut parts = value.splitn(3, |byte| *byte == b'\'');
    let (Some(charset), Some(_language), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("filename* in Content-Disposition has no character encoding, as in UTF-8''name.bpmn".to_owned());
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, next @ ..] = rest {
        rest = next;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, next @ ..] = rest else { return Err(not_readable("filename*")) };
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return Err(not_readable("filename*")) };
        bytes.push(high << 4 | low);
        rest = next;
    }
    decoded("filename*", charset, bytes)
}

/// `=?utf-8?B?UHJvemXDny5icG1u?=`, one word or several with space between them; all else as it is.
fn from_words(text: &str) -> Result<String, String> {
    if !(text.starts_with("=?") && text.ends_with("?=")) {
        return Ok(text.to_owned());
    }
    let mut decoded_text = String::new();
    for word in text.split_ascii_whitespace() {
        let mut parts = word.strip_prefix("=?").and_then(|word| word.strip_suffix("?=")).unwrap_or_default().split('?');
        let (Some(charset), Some(encoding), Some(content), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            // It only looks like one.
            return Ok(text.to_owned());
        };
        let bytes = match encoding {
            "B" | "b" => STANDARD.decode(content).map_err(|_| not_readable("filename"))?,
            "Q" | "q" => {
                let spaced = content.replace('_', " ").replace('%', "%25").replace('=', "%");
                let charset = charset.split('*').next().unwrap_or_default();
                decoded_text += &from_percent(format!("{charset}''{spaced}").as_bytes())?;
                continue;
            }
            _ => return Ok(text.to_owned()),
        };
        decoded_text += &decoded("filename", charset.split('*').next().unwrap_or_default().as_bytes(), bytes)?;
    }
    Ok(decoded_text)
}

fn decoded(of: &str, charset: &[u8], bytes: Vec<u8>) -> Result<String, String> {
    let is = |names: &[&str]| names.iter().any(|name| charset.eq_ignore_ascii_case(name.as_bytes()));
    if is(&["utf-8", "utf8", "us-ascii", "ascii"]) {
        return String::from_utf8(bytes).map_err(|_| not_readable(of));
    }
    if is(&["iso-8859-1", "latin1"]) {
        return Ok(bytes.into_iter().map(char::from).collect());
    }
    let charset = String::from_utf8_lossy(&charset[..charset.len().min(40)]).into_owned();
    Err(format!("{of} in Content-Disposition is in the character encoding '{charset}'; send it in UTF-8"))
}

fn not_readable(of: &str) -> String {
    format!("{of} in Content-Disposition is not what its encoding says")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_name(parameters: &str) -> Result<String, String> {
        let found = Disposition::read(format!("form-data; name=resources; {parameters}").as_bytes())?;
        assert_eq!(found.name.as_deref(), Some("resources"), "{parameters}");
        Ok(found.file_name.unwrap_or_default())
    }

    #[test]
    fn a_file_has_the_name_that_its_client_means() {
        for parameters in [
            // .NET
            r#"filename="=?utf-8?B?UHJvemXDny5icG1u?="; filename*=utf-8''Proze%C3%9F.bpmn"#,
            "filename*=UTF-8'de'Proze%c3%9f.bpmn",
            "filename*=iso-8859-1''Proze%DF.bpmn; filename=other.bpmn",
            // Spring
            r#"filename="=?UTF-8?Q?Proze=C3=9F.bpmn?="; filename*=UTF-8''Proze%C3%9F.bpmn"#,
            r#"filename="=?utf-8?B?UHJvemXDny5icG1u?=""#,
            "filename==?utf-8?b?UHJvemXDny5icG1u?=",
            r#"filename="=?ISO-8859-1?Q?Proze=DF?= =?utf-8*en?q?.bpmn?=""#,
            // browsers
            r#"filename="Prozeß.bpmn""#,
            "FileName = Prozeß.bpmn ",
        ] {
            assert_eq!(file_name(parameters).as_deref(), Ok("Prozeß.bpmn"), "{parameters}");
        }
        for (parameters, name) in [
            (r#"filename="a; name=b.bpmn""#, "a; name=b.bpmn"),
            (r#"filename="a\"b\c.bpmn"; x"#, r#"a"b\c.bpmn"#),
            (r#"filename="b%20c.bpmn""#, "b%20c.bpmn"),
            (r#"filename="=?what?=""#, "=?what?="),
            (r#"filename="100%_=?.bpmn""#, "100%_=?.bpmn"),
            (r#"filename="=?utf-8?Q?a_b=5F100%?=""#, "a b_100%"),
            ("filename=a b.bpmn; filename=c", "a b.bpmn"),
            (r#"filename="open"#, "open"),
            ("", ""),
        ] {
            assert_eq!(file_name(parameters).as_deref(), Ok(name), "{parameters}");
        }
    }

    #[test]
    fn a_name_that_cannot_be_read_is_refused() {
        for (parameters, sentence) in [
            ("filename*=a.bpmn", "has no character encoding"),
            ("filename*=utf-8''%C3.bpmn", "filename* in Content-Disposition is not what its encoding says"),
            ("filename*=utf-8''%C", "filename* in Content-Disposition is not what its encoding says"),
            ("filename*=koi8-r''a.bpmn", "in the character encoding 'koi8-r'; send it in UTF-8"),
            (r#"filename="=?utf-8?B?!?=""#, "filename in Content-Disposition is not what its encoding says"),
        ] {
            let found = file_name(parameters).unwrap_err();
            assert!(found.contains(sentence), "{parameters}: {found}");
        }
        assert!(Disposition::read(b"form-data; name=\"\xff\"").unwrap_err().contains("not UTF-8"));
        assert_eq!(Disposition::read(b"form-data"), Ok(Disposition::default()));
    }
}
