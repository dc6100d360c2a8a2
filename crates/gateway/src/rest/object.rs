//! Reads the object of a request, property by property, so that every mistake is told with the name of its property.

use std::borrow::Cow;

use protocol::Text;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::problem::Problem;
use crate::validation::{Variables, excerpt, texts};

/// No request has more properties, or more items in a list.
const PROPERTIES_MAX: usize = 64;
const ITEMS_MAX: usize = 10_000;

#[cfg(test)]
thread_local! {
    /// The names of all properties that were asked for on this thread, for the test of what is documented.
    pub(super) static ASKED: std::cell::RefCell<std::collections::BTreeSet<String>> = const { std::cell::RefCell::new(std::collections::BTreeSet::new()) };
}

/// The properties of a request that nobody has asked for yet. Their values are JSON and not read further.
#[derive(Debug)]
pub(super) struct Object<'a> {
    properties: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// The body of a request, which may be missing.
    pub(super) fn read(body: &'a [u8]) -> Result<Object<'a>, Problem> {
        if body.is_empty() {
            return Ok(Object { properties: Vec::new() });
        }
        serde_json::from_slice(body).map_err(|error| {
            Problem::bad_request(format!("The request body is not a JSON object that can be read: {error}."))
        })
    }

    /// The value of a property; none for null.
    pub(super) fn take<T: Property<'a>>(&mut self, name: &str) -> Result<Option<T>, Problem> {
        #[cfg(test)]
        ASKED.with_borrow_mut(|asked| asked.insert(name.to_owned()));
        let Some(at) = self.properties.iter().position(|(given, _)| given == name) else { return Ok(None) };
        let (_, value) = self.properties.swap_remove(at);
        if value.get() == "null" {
            return Ok(None);
        }
        match T::read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(Problem::bad_request(format!(
                "Request property [{name}] cannot be parsed: expected {}, but it is {}.",
                T::EXPECTED,
                excerpt(value.get())
            ))),
        }
    }

    /// The value of a property without which the request means nothing.
    pub(super) fn require<T: Property<'a>>(&mut self, name: &str) -> Result<T, Problem> {
        self.take(name)?.ok_or_else(|| invalid(format!("No {name} provided.")))
    }

    /// The objects of a list.
    pub(super) fn take_objects(&mut self, name: &str) -> Result<Vec<Object<'a>>, Problem> {
        Ok(self.take(name)?.unwrap_or_default())
    }

    /// A tenant that is named if it is there, as the API has it for messages and signals.
    pub(super) fn take_tenant(&mut self) -> Result<String, Problem> {
        let Some(given) = self.take::<String>("tenantId")? else { return Ok(String::new()) };
        match given.trim().is_empty() {
            true => Err(invalid("The tenantId must not be empty. Leave it out to mean the default tenant.")),
            false => Ok(given),
        }
    }

    /// The number that the client finds again in every record.
    pub(super) fn take_operation_reference(&mut self) -> Result<Option<u64>, Problem> {
        let Some(given) = self.take::<i64>("operationReference")? else { return Ok(None) };
        match u64::try_from(given) {
            Ok(reference @ 1..) => Ok(Some(reference)),
            _ => Err(invalid(format!("The value for operationReference is '{given}' but must be > 0."))),
        }
    }

    /// All properties that were not asked for and are not null, with their values.
    pub(super) fn into_properties(self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.properties.into_iter().filter(|(_, value)| value.get() != "null")
    }

    /// Whether a property is there that nobody has asked for yet, and is not null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.properties.iter().any(|(given, value)| given == name && value.get() != "null")
    }

    /// The value of a property that nobody has asked for yet.
    pub(super) fn value(&self, name: &str) -> Option<&'a RawValue> {
        self.properties.iter().find(|(given, _)| given == name).map(|(_, value)| *value)
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    /// A property that was not asked for means nothing here.
    pub(super) fn finish(self) -> Result<(), Problem> {
        match self.properties.first() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::bad_request(format!(
                "Request property [{}] cannot be parsed: this request has no such property.",
                excerpt(name)
            ))),
        }
    }
}

/// What can be read and means nothing: all that is wrong with it is told at once.
#[derive(Debug, Default)]
pub(super) struct Violations(Vec<String>);

impl Violations {
    /// A sentence with its dot.
    pub(super) fn add(&mut self, sentence: impl Into<String>) {
        self.0.push(sentence.into());
    }

    /// A value without which the request means nothing. What stands in for it is not used.
    pub(super) fn require<T: Default>(&mut self, name: &str, value: Option<T>) -> T {
        value.unwrap_or_else(|| {
            self.add(format!("No {name} provided."));
            T::default()
        })
    }

    /// The same for a text, which must say something.
    pub(super) fn require_text(&mut self, name: &str, value: Option<Text>) -> Text {
        self.require(name, value.filter(|text| !text.trim().is_empty()))
    }

    /// The same for a number that counts something.
    pub(super) fn require_positive<T: Into<i64> + Copy + Default>(&mut self, name: &str, value: Option<T>) -> T {
        match value.map(Into::into) {
            Some(number @ ..1) => self.add(format!("The value for {name} is '{number}' but must be > 0.")),
            _ => return self.require(name, value),
        }
        T::default()
    }

    /// One of two ways to name something.
    pub(super) fn require_one_of(&mut self, names: [&str; 2], given: [bool; 2]) {
        let names = names.join(", ");
        match given {
            [false, false] => self.add(format!("At least one of [{names}] is required.")),
            [true, true] => self.add(format!("Only one of [{names}] is allowed.")),
            _ => {}
        }
    }

    /// # Errors
    /// When something is wrong.
    pub(super) fn check(self) -> Result<(), Problem> {
        if self.0.is_empty() { Ok(()) } else { Err(invalid(self.0.join(" "))) }
    }
}

/// What can be read and means nothing.
pub(super) fn invalid(detail: impl Into<String>) -> Problem {
    Problem { title: "INVALID_ARGUMENT".into(), ..Problem::bad_request(detail) }
}

/// A key in the path of a request.
pub(super) fn path_key(name: &str, given: &str) -> Result<i64, Problem> {
    number_of_key(given).ok_or_else(|| {
        Problem::bad_request(format!(
            "Expected {name} to be the number of a key, but it was '{}'. Was an id given instead of a key?",
            excerpt(given)
        ))
    })
}

/// A number as keys are written everywhere: digits, and a minus before those that mean none.
pub(super) fn number_of_key(text: &str) -> Option<i64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Properties;
        impl<'de> Visitor<'de> for Properties {
            type Value = Object<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut properties: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    if properties.len() >= PROPERTIES_MAX {
                        return Err(A::Error::custom(format_args!("it has more than {PROPERTIES_MAX} properties")));
                    }
                    if properties.iter().any(|(known, _)| *known == name) {
                        return Err(A::Error::custom(format_args!("it has the property [{}] twice", excerpt(&name))));
                    }
                    properties.push((name, value));
                }
                Ok(Object { properties })
            }
        }
        deserializer.deserialize_map(Properties)
    }
}

/// The name of a property; a part of the body unless it has escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A kind of value.
pub(super) trait Property<'a>: Sized {
    /// What it is, for the sentence that says that it is not.
    const EXPECTED: &'static str;

    fn read(value: &'a RawValue) -> Option<Self>;
}

impl Property<'_> for Text {
    const EXPECTED: &'static str = "a text";

    fn read(value: &RawValue) -> Option<Self> {
        String::read(value).map(Text::from)
    }
}

impl Property<'_> for String {
    const EXPECTED: &'static str = "a text";

    fn read(value: &RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }
}

impl Property<'_> for bool {
    const EXPECTED: &'static str = "true or false";

    fn read(value: &RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }
}

impl Property<'_> for i32 {
    const EXPECTED: &'static str = "a whole number of 32 bits";

    fn read(value: &RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }
}

impl Property<'_> for i64 {
    const EXPECTED: &'static str = "a whole number of 64 bits";

    fn read(value: &RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }
}

/// A key: a text of digits, or a number from those who do not mind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GivenKey(pub i64);

impl Property<'_> for GivenKey {
    const EXPECTED: &'static str = "a key, which is a text of digits";

    fn read(value: &RawValue) -> Option<Self> {
        let number = i64::read(value).or_else(|| number_of_key(&String::read(value)?));
        number.map(GivenKey)
    }
}

impl Property<'_> for Variables {
    const EXPECTED: &'static str = "an object";

    fn read(value: &RawValue) -> Option<Self> {
        value.get().starts_with('{').then(|| Variables::Json(value.get().into()))
    }
}

/// Anything at all.
impl<'a> Property<'a> for &'a RawValue {
    const EXPECTED: &'static str = "a value";

    fn read(value: &'a RawValue) -> Option<Self> {
        Some(value)
    }
}

impl<'a> Property<'a> for Vec<&'a RawValue> {
    const EXPECTED: &'static str = "a list of at most 10000 values";

    fn read(value: &'a RawValue) -> Option<Self> {
        let values: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
        (values.len() <= ITEMS_MAX).then_some(values)
    }
}

impl Property<'_> for Vec<String> {
    const EXPECTED: &'static str = "a list of at most 10000 texts";

    fn read(value: &RawValue) -> Option<Self> {
        let texts: Vec<String> = serde_json::from_str(value.get()).ok()?;
        (texts.len() <= ITEMS_MAX).then_some(texts)
    }
}

impl Property<'_> for Vec<Text> {
    const EXPECTED: &'static str = <Vec<String> as Property<'_>>::EXPECTED;

    fn read(value: &RawValue) -> Option<Self> {
        Vec::<String>::read(value).map(texts)
    }
}

impl<'a> Property<'a> for Object<'a> {
    const EXPECTED: &'static str = "an object";

    fn read(value: &'a RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }
}

impl<'a> Property<'a> for Vec<Object<'a>> {
    const EXPECTED: &'static str = "a list of at most 10000 objects";

    fn read(value: &'a RawValue) -> Option<Self> {
        let objects: Vec<Object<'a>> = serde_json::from_str(value.get()).ok()?;
        (objects.len() <= ITEMS_MAX).then_some(objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(body: &str) -> Object<'_> {
        Object::read(body.as_bytes()).unwrap_or_else(|problem| panic!("{body}: {problem:?}"))
    }

    #[test]
    fn values_of_all_kinds_are_read() {
        let mut given = object(
            r#"{"text":"a\u00e9","num\u0062er":-7,"flag":true,"key":"2251799813685249","plain":5,"null":null,
               "variables": {"a": 1.0 },"list":["a","b"],"objects":[{"id":"x"},{}]}"#,
        );
        assert_eq!(given.take::<Text>("text").unwrap().unwrap(), "aé");
        assert_eq!(given.take("number").unwrap(), Some(-7_i32));
        assert_eq!(given.take("flag").unwrap(), Some(true));
        assert_eq!(given.take("key").unwrap(), Some(GivenKey(2_251_799_813_685_249)));
        assert_eq!(given.take("plain").unwrap(), Some(GivenKey(5)));
        assert_eq!(given.take::<String>("null").unwrap(), None);
        assert_eq!(given.take::<String>("absent").unwrap(), None);
        let variables = given.take::<Variables>("variables").unwrap().unwrap();
        assert_eq!(variables.check().unwrap(), r#"{"a": 1.0 }"#, "as it came");
        assert_eq!(given.take::<Vec<Text>>("list").unwrap().unwrap(), ["a", "b"]);
        let mut objects = given.take_objects("objects").unwrap();
        assert_eq!(objects[0].require::<Text>("id").unwrap(), "x");
        assert_eq!(objects.len(), 2);
        given.finish().unwrap();
        object("").finish().unwrap();
    }

    #[test]
    fn keys_have_no_plus() {
        assert_eq!(path_key("jobKey", "5").ok(), Some(5));
        assert!(path_key("jobKey", "+5").is_err());
        assert!(object(r#"{"key":"+5"}"#).take::<GivenKey>("key").is_err());
    }

    #[test]
    fn mistakes_are_told_with_the_name_of_their_property() {
        for (problem, detail) in [
            (object(r#"{"a":1}"#).finish().unwrap_err(), "Request property [a] cannot be parsed"),
            (
                object(r#"{"a":1}"#).take::<Text>("a").unwrap_err(),
                "[a] cannot be parsed: expected a text, but it is 1.",
            ),
            (object(r#"{"a":"x"}"#).take::<GivenKey>("a").unwrap_err(), "expected a key"),
            (object(r#"{"a":1.5}"#).take::<i32>("a").unwrap_err(), "expected a whole number"),
            (object(r#"{"a":[]}"#).take::<Variables>("a").unwrap_err(), "expected an object"),
            (object(r#"{"a":[1]}"#).take::<Vec<Text>>("a").unwrap_err(), "expected a list"),
            (object("{}").require::<Text>("name").unwrap_err(), "No name provided."),
            (Object::read(b"[]").unwrap_err(), "not a JSON object"),
            (Object::read(b"{").unwrap_err(), "not a JSON object"),
            (Object::read(b"{\"a\":\"\xff\"}").unwrap_err(), "not a JSON object"),
            (Object::read(br#"{"a":1,"a":2}"#).unwrap_err(), "the property [a] twice"),
            (path_key("jobKey", "order").unwrap_err(), "Expected jobKey to be the number of a key, but it was 'order'"),
        ] {
            assert_eq!(problem.status.as_u16(), 400);
            assert!(problem.detail.contains(detail), "{problem:?}");
        }
        let many: Vec<String> = (0..=PROPERTIES_MAX).map(|number| format!("\"p{number}\":1")).collect();
        let problem = Object::read(format!("{{{}}}", many.join(",")).as_bytes()).map(|_| ()).unwrap_err();
        assert!(problem.detail.contains("more than 64 properties"), "{problem:?}");
    }

    #[test]
    fn values_that_nest_deep_are_passed_over() {
        let deep = format!(r#"{{"variables":{{"a":{}{}}}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(object(&deep).take::<Variables>("variables").unwrap().is_some());
    }
}
