//! Names of one or several words, types.

use std::sync::Arc;

use super::{ParseError, Parser};
use crate::lexer::{Kind, Token};
use crate::node::Type;
use crate::simple_type::SimpleType;

/// Words that end a name of several words. `instance` does so before `of`.
const SEPARATORS: [&str; 13] =
    ["and", "between", "else", "every", "false", "if", "in", "null", "or", "return", "satisfies", "then", "true"];

/// Functions whose names contain such a word.
const NAMES_WITH_SEPARATORS: [&[&str]; 4] = [
    &["date", "and", "time"],
    &["years", "and", "months", "duration"],
    &["days", "and", "time", "duration"],
    &["get", "or", "else"],
];

pub(super) fn is_separator(word: &str) -> bool {
    SEPARATORS.contains(&word)
}

impl Parser<'_> {
    /// How many tokens from the cursor form a name. A first word counts even if it is a separator.
    fn name_length(&self) -> usize {
        for name in NAMES_WITH_SEPARATORS {
            let matches = name.iter().enumerate().all(|(ahead, word)| self.word_at(ahead) == Some(word));
            if matches && self.kind_at(name.len()) == Kind::LeftParenthesis {
                return name.len();
            }
        }
        let mut length = 1;
        while let Some(word) = self.word_at(length) {
            if is_separator(word) || word == "instance" && self.word_at(length + 1) == Some("of") {
                break;
            }
            length += 1;
        }
        length
    }

    /// The name at the cursor, its words joined by single spaces.
    pub(super) fn name(&mut self, expected: &str) -> Result<Arc<str>, ParseError> {
        match self.kind() {
            Kind::Backtick => {
                let token = self.advance();
                Ok(Arc::from(self.slice(token)))
            }
            Kind::Word => {
                let length = self.name_length();
                let name = if length == 1 {
                    Arc::from(self.slice(self.token()))
                } else {
                    let words: Vec<&str> = (0..length).filter_map(|ahead| self.word_at(ahead)).collect();
                    Arc::from(words.join(" "))
                };
                self.position += length;
                Ok(name)
            }
            _ => Err(self.error(expected)),
        }
    }

    /// Objects to a name from this token to the cursor that is known nowhere and begins or ends with `not`: it is a slip for
    /// `not(…)`, and would be null.
    pub(super) fn object_to_negation(&mut self, start: usize) {
        let (first, last) = (start, self.position - 1);
        let negates = |token: &Token| token.kind == Kind::Word && self.slice(*token) == "not";
        if first == last || self.objection.is_some() {
            return;
        }
        let Some(token) = [first, last].map(|at| self.tokens[at]).into_iter().find(negates) else {
            return;
        };
        let expected = "not(…) around what is negated, or backticks around a name of several words,";
        self.objection = Some(Box::new(ParseError::at(self.text, token.start(), expected)));
    }

    /// A type such as `number`, `list<string>` or `context<a: number>`.
    pub(super) fn type_name(&mut self) -> Result<Type, ParseError> {
        self.enter()?;
        let start = self.position;
        let mut words: Vec<&str> = Vec::new();
        // `and` belongs to `date and time` and the names of durations, else it is the operator.
        while let Some(word) = self.word_at(0) {
            let joins = word == "and" && matches!(words.last(), Some(&("date" | "days" | "years")));
            if is_separator(word) && word != "null" && !(joins && matches!(self.word_at(1), Some("time" | "months"))) {
                break;
            }
            words.push(word);
            self.advance();
            if self.kind() == Kind::Minus && matches!(word, "day" | "time" | "year" | "month") {
                self.advance();
            }
        }
        let found = match words.join(" ").as_str() {
            "Any" | "any" => Type::Any,
            "Null" | "null" => Type::Null,
            "list" => Type::List(Box::new(self.type_argument()?)),
            "range" => Type::Range(Box::new(self.type_argument()?)),
            "context" => Type::Context(self.context_type()?),
            "function" => self.function_type()?,
            joined => match SimpleType::named(joined).map(Type::Simple).or_else(|| self.defined_type(start, joined)) {
                Some(found) => found,
                None => {
                    self.position = start;
                    return Err(self.error("the name of a type"));
                }
            },
        };
        self.leave();
        Ok(found)
    }

    /// A type of the caller's: its name is made of these words, or is a name that is known as a whole.
    fn defined_type(&mut self, start: usize, words: &str) -> Option<Type> {
        if let Some(found) = self.names.defined_type(words) {
            return Some(Type::Defined(found.clone()));
        }
        let token = *self.tokens.get(start).filter(|token| token.kind == Kind::Backtick)?;
        let found = Type::Defined(self.names.defined_type(self.slice(token))?.clone());
        self.position = start + 1;
        Some(found)
    }

    fn type_argument(&mut self) -> Result<Type, ParseError> {
        if !self.take(Kind::Less) {
            return Ok(Type::Any);
        }
        let argument = self.type_name()?;
        self.expect(Kind::Greater, "'>'")?;
        Ok(argument)
    }

    fn context_type(&mut self) -> Result<Vec<(String, Type)>, ParseError> {
        let mut entries = Vec::new();
        if !self.take(Kind::Less) {
            return Ok(entries);
        }
        loop {
            let name = self.name("the name of an entry")?;
            self.expect(Kind::Colon, "':'")?;
            entries.push((name.to_string(), self.type_name()?));
            if !self.take(Kind::Comma) {
                self.expect(Kind::Greater, "',' or '>'")?;
                return Ok(entries);
            }
        }
    }

    /// The types of parameters and result are read, but a function value does not carry them.
    fn function_type(&mut self) -> Result<Type, ParseError> {
        if self.take(Kind::Less) {
            while !self.take(Kind::Greater) {
                self.type_name()?;
                if self.kind() != Kind::Greater {
                    self.expect(Kind::Comma, "',' or '>'")?;
                }
            }
            self.expect(Kind::Arrow, "'->'")?;
            self.type_name()?;
        }
        Ok(Type::Simple(SimpleType::Function))
    }
}
