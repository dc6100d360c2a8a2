//! Writes JSON, with texts that are JSON already as they are.

use protocol::{Key, Text};

/// An object that is being written, property by property.
pub(super) struct JsonObject(Vec<u8>);

impl JsonObject {
    pub(super) fn new() -> JsonObject {
        JsonObject(vec![b'{'])
    }

    /// With room for that many bytes.
    pub(super) fn with_capacity(bytes: usize) -> JsonObject {
        let mut text = Vec::with_capacity(bytes);
        text.push(b'{');
        JsonObject(text)
    }

    fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        write_text(&mut self.0, name);
        self.0.push(b':');
        &mut self.0
    }

    pub(super) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        write_text(self.name(name), value);
        self
    }

    /// A text that is absent when it is empty.
    pub(super) fn text_or_null(&mut self, name: &str, value: &str) -> &mut Self {
        if value.is_empty() { self.null(name) } else { self.text(name, value) }
    }

    /// An object, or null when there is none.
    pub(super) fn object_or_null(&mut self, name: &str, value: Option<JsonObject>) -> &mut Self {
        match value {
            Some(value) => self.name(name).extend(value.finish()),
            None => self.name(name).extend_from_slice(b"null"),
        }
        self
    }

    pub(super) fn number(&mut self, name: &str, value: impl Into<i64>) -> &mut Self {
        let digits = value.into().to_string();
        self.name(name).extend_from_slice(digits.as_bytes());
        self
    }

    pub(super) fn flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.name(name).extend_from_slice(if value { b"true" } else { b"false" });
        self
    }

    pub(super) fn null(&mut self, name: &str) -> &mut Self {
        self.name(name).extend_from_slice(b"null");
        self
    }

    /// Keys are texts: programs in JavaScript have no such large numbers.
    pub(super) fn key(&mut self, name: &str, key: Key) -> &mut Self {
        self.text(name, &key.to_string())
    }

    pub(super) fn texts(&mut self, name: &str, values: &[Text]) -> &mut Self {
        self.list(name, values.iter(), |text, value| write_text(text, value))
    }

    pub(super) fn objects(&mut self, name: &str, values: impl IntoIterator<Item = JsonObject>) -> &mut Self {
        self.list(name, values.into_iter(), |text, value| text.extend(value.finish()))
    }

    fn list<T>(&mut self, name: &str, values: impl Iterator<Item = T>, write: impl Fn(&mut Vec<u8>, T)) -> &mut Self {
        let text = self.name(name);
        text.push(b'[');
        for (index, value) in values.enumerate() {
            if index > 0 {
                text.push(b',');
            }
            write(text, value);
        }
        text.push(b']');
        self
    }

    /// An object as it is in the state: its text, or an empty one for none.
    pub(super) fn variables(&mut self, name: &str, json: &str) -> &mut Self {
        self.name(name).extend_from_slice(if json.is_empty() { b"{}" } else { json.as_bytes() });
        self
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

fn write_text(text: &mut Vec<u8>, value: &str) {
    serde_json::to_writer(text, value).expect("writing a text to memory cannot fail");
}

#[cfg(test)]
mod tests {
    use protocol::PartitionId;

    use super::*;

    #[test]
    fn properties_are_written_in_order() {
        let mut inner = JsonObject::new();
        inner.number("n", 1);
        let mut object = JsonObject::with_capacity(100);
        object.text("t", "a\"\n").number("i", -7).flag("f", true).null("z").key("k", Key::new(PartitionId(1), 1));
        object.texts("tags", &["a".into(), "b".into()]).objects("o", [inner]).variables("v", "{\"a\": 1.0}");
        object.variables("none", "").texts("empty", &[]);
        let text = String::from_utf8(object.finish()).unwrap();
        let expected = r#"{"t":"a\"\n","i":-7,"f":true,"z":null,"k":"2251799813685249","tags":["a","b"],"o":[{"n":1}],"v":{"a": 1.0},"none":{},"empty":[]}"#;
        assert_eq!(text, expected);
        serde_json::from_str::<serde_json::Value>(&text).expect("it is JSON");
    }
}
