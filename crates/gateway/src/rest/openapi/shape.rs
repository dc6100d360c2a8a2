//! The forms of values, and their schemas.

use serde_json::{Map, Value, json};

/// What a value looks like.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// Digits as a text.
    Key,
    Text,
    /// A number of 32 or of 64 bits.
    Integer,
    Long,
    Boolean,
    /// One of these texts.
    Names(&'static [&'static str]),
    Texts,
    /// Variables by their names.
    Variables,
    /// A file.
    Binary,
    Object(&'static [Property]),
    Objects(&'static [Property]),
    /// Files.
    Binaries,
    /// Any JSON.
    Any,
}

/// A property of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Property {
    pub name: &'static str,
    pub shape: Shape,
    pub is_required: bool,
    pub is_nullable: bool,
}

/// It is always there.
pub(super) const fn always(name: &'static str, shape: Shape) -> Property {
    Property { name, shape, is_required: true, is_nullable: false }
}

/// It is always there, and may be null.
pub(super) const fn nullable(name: &'static str, shape: Shape) -> Property {
    Property { name, shape, is_required: true, is_nullable: true }
}

/// It may be missing or null.
pub(super) const fn optional(name: &'static str, shape: Shape) -> Property {
    Property { name, shape, is_required: false, is_nullable: true }
}

pub(super) fn key() -> Value {
    json!({"type": "string", "pattern": "^-?[0-9]+$"})
}

pub(super) fn array(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

pub(super) fn instant() -> Value {
    json!({"type": "string", "format": "date-time"})
}

/// The same value, or null.
pub(super) fn or_null(mut schema: Value) -> Value {
    schema["nullable"] = true.into();
    schema
}

pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> Value {
    json!({"type": "string", "enum": names.into_iter().collect::<Vec<_>>()})
}

/// An object that has these properties and no others.
pub(super) fn object(properties: impl IntoIterator<Item = (&'static str, Value, bool)>) -> Value {
    let (mut schemas, mut required) = (Map::new(), Vec::new());
    for (name, schema, is_required) in properties {
        schemas.insert(name.to_owned(), schema);
        required.extend(is_required.then_some(name));
    }
    let mut schema = json!({"type": "object", "additionalProperties": false, "properties": schemas});
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

pub(super) fn schema_of_object(properties: &[Property]) -> Value {
    object(properties.iter().map(|property| {
        let schema = schema(property.shape);
        (property.name, if property.is_nullable { or_null(schema) } else { schema }, property.is_required)
    }))
}

fn schema(shape: Shape) -> Value {
    match shape {
        Shape::Key => key(),
        Shape::Text => json!({"type": "string"}),
        Shape::Integer => json!({"type": "integer", "format": "int32"}),
        Shape::Long => json!({"type": "integer", "format": "int64"}),
        Shape::Boolean => json!({"type": "boolean"}),
        Shape::Names(of) => names(of.iter().copied()),
        Shape::Texts => array(json!({"type": "string"})),
        Shape::Variables => json!({"type": "object", "additionalProperties": true}),
        Shape::Binary => json!({"type": "string", "format": "binary"}),
        Shape::Any => json!({"nullable": true}),
        Shape::Binaries => array(schema(Shape::Binary)),
        Shape::Object(properties) => schema_of_object(properties),
        Shape::Objects(properties) => array(schema_of_object(properties)),
    }
}
