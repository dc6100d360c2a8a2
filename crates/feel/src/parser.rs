//! A Pratt parser that compiles an expression to its tree in one pass.
//!
//! It knows the local names at every place but not the variables: a sequence of words that is no local name is one
//! name, looked up as a whole at evaluation.

mod binding;
mod clauses;
mod names;
mod operand;
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::evaluate::Source;
use crate::lexer::{self, Kind, Token};
use crate::names::Names;
use crate::node::{Comparison, Node, Operator, Test};

use binding::Bindings;

/// How deeply an expression may be nested.
pub const NESTING_LIMIT: u32 = 100;
/// How many paths, filters, calls or comparisons may follow one operand.
pub const CHAIN_LIMIT: u32 = 32;
/// How long an expression may be.
pub const LENGTH_LIMIT_BYTES: usize = 1 << 20;

/// Why an expression cannot be compiled, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Failed to parse the expression '{expression}': expected {expected} at line {line}, column {column}, but found {found}."
)]
pub struct ParseError {
    /// The expression, shortened if it is long.
    pub expression: String,
    /// What is allowed there.
    pub expected: String,
    /// What was found there.
    pub found: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted in characters from 1.
    pub column: usize,
}

impl ParseError {
    #[cold]
    pub(crate) fn at(text: &str, offset: usize, expected: &str) -> ParseError {
        let offset = (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let found = match text[offset..].split_whitespace().next() {
            None => "the end of the expression".to_owned(),
            Some(word) => format!("'{}'", shorten(word, 20)),
        };
        ParseError {
            expression: shorten(text, 200),
            expected: expected.to_owned(),
            found,
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

fn shorten(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// What was compiled, and what it refers to.
pub(crate) struct Parsed<T> {
    pub(crate) root: T,
    pub(crate) source: Source,
    pub(crate) uses_environment: bool,
    /// What the dialect refuses though it can be read as something.
    pub(crate) objection: Option<Box<ParseError>>,
}

pub(crate) fn parse(text: &str, names: &Names) -> Result<Parsed<Node>, ParseError> {
    let mut parser = Parser::new(text, names)?;
    let root = parser.expression()?;
    parser.parsed(root, "an operator or the end of the expression")
}

pub(crate) fn parse_unary_tests(text: &str, input_name: &str, names: &Names) -> Result<Parsed<Vec<Test>>, ParseError> {
    let mut parser = Parser::new(text, names)?;
    parser.bindings.push_input(input_name);
    let root = parser.unary_tests()?;
    parser.parsed(root, "',' or the end of the unary tests")
}

/// How tightly an operator binds; larger binds tighter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Power {
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Exponent,
}

#[derive(Clone, Copy)]
enum Infix {
    Or,
    And,
    Compare(Comparison),
    Between,
    In,
    InstanceOf,
    Arithmetic(Operator),
}

struct Parser<'a> {
    text: &'a str,
    names: &'a Names,
    tokens: Vec<Token>,
    position: usize,
    depth: u32,
    bindings: Bindings,
    variables: Vec<Arc<str>>,
    variable_indexes: BTreeMap<Arc<str>, u32>,
    uses_environment: bool,
    /// In how many function bodies the cursor is, and the variables that were mentioned in any.
    functions: u32,
    function_variables: BTreeSet<u32>,
    objection: Option<Box<ParseError>>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, names: &'a Names) -> Result<Parser<'a>, ParseError> {
        if text.len() > LENGTH_LIMIT_BYTES {
            let expected = format!("an expression of at most {LENGTH_LIMIT_BYTES} bytes");
            return Err(ParseError::at(text, LENGTH_LIMIT_BYTES, &expected));
        }
        let tokens = lexer::tokens(text, names)?;
        Ok(Parser {
            text,
            names,
            tokens,
            position: 0,
            depth: 0,
            bindings: Bindings::default(),
            variables: Vec::new(),
            variable_indexes: BTreeMap::new(),
            uses_environment: false,
            functions: 0,
            function_variables: BTreeSet::new(),
            objection: None,
        })
    }

    fn parsed<T>(self, root: T, expected: &str) -> Result<Parsed<T>, ParseError> {
        if self.kind() != Kind::End {
            return Err(self.error(expected));
        }
        let source = Source {
            text: Box::from(self.text),
            variables: self.variables.into_boxed_slice(),
            function_variables: self.function_variables.into_iter().collect(),
        };
        Ok(Parsed { root, source, uses_environment: self.uses_environment, objection: self.objection })
    }

    fn token(&self) -> Token {
        self.tokens[self.position]
    }

    fn kind(&self) -> Kind {
        self.token().kind
    }

    fn kind_at(&self, ahead: usize) -> Kind {
        self.tokens.get(self.position + ahead).map_or(Kind::End, |token| token.kind)
    }

    fn slice(&self, token: Token) -> &'a str {
        &self.text[token.start()..token.end()]
    }

    /// The word at the cursor, counted from it.
    fn word_at(&self, ahead: usize) -> Option<&'a str> {
        let token = *self.tokens.get(self.position + ahead)?;
        (token.kind == Kind::Word).then(|| self.slice(token))
    }

    fn is_word(&self, word: &str) -> bool {
        self.word_at(0) == Some(word)
    }

    /// Moves on; the last token, the end, is never passed.
    fn advance(&mut self) -> Token {
        let token = self.token();
        if token.kind != Kind::End {
            self.position += 1;
        }
        token
    }

    fn take(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, kind: Kind, expected: &str) -> Result<Token, ParseError> {
        if self.kind() == kind { Ok(self.advance()) } else { Err(self.error(expected)) }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), ParseError> {
        if self.is_word(word) {
            self.advance();
            return Ok(());
        }
        Err(self.error(&format!("'{word}'")))
    }

    /// After an item: a comma with another item behind it (false), or the end of the items (true).
    fn ends(&mut self, close: Kind, expected: &str) -> Result<bool, ParseError> {
        if self.take(close) {
            return Ok(true);
        }
        self.expect(Kind::Comma, expected)?;
        if self.kind() == close { Err(self.error("another item behind the comma")) } else { Ok(false) }
    }

    #[cold]
    fn error(&self, expected: &str) -> ParseError {
        let token = self.token();
        let quoted = token.kind == Kind::String || self.text[..token.start()].ends_with('`');
        ParseError::at(self.text, token.start() - usize::from(quoted), expected)
    }

    fn enter(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > NESTING_LIMIT {
            return Err(self.error(&format!("at most {NESTING_LIMIT} levels of nesting")));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    fn expression(&mut self) -> Result<Node, ParseError> {
        self.operation(Power::Or)
    }

    /// An operand and all operators behind it that bind at least as tightly as `minimum`.
    fn operation(&mut self, minimum: Power) -> Result<Node, ParseError> {
        self.enter()?;
        let mut left = self.unary()?;
        let mut links = 0;
        while let Some((infix, power, tokens)) = self.infix() {
            if power < minimum {
                break;
            }
            for _ in 0..tokens {
                self.advance();
            }
            left = self.infix_operation(left, infix)?;
            // Operators that join any number of operands are one link; the rest are comparisons of comparisons.
            links += 1;
            if links > CHAIN_LIMIT {
                return Err(self.error("fewer comparisons in a row"));
            }
        }
        self.leave();
        Ok(left)
    }

    /// The operator at the cursor, how tightly it binds and how many tokens it has.
    fn infix(&self) -> Option<(Infix, Power, usize)> {
        let compare = |comparison| Some((Infix::Compare(comparison), Power::Comparison, 1));
        let arithmetic = |operator, power| Some((Infix::Arithmetic(operator), power, 1));
        match self.kind() {
            Kind::Plus => arithmetic(Operator::Add, Power::Sum),
            Kind::Minus => arithmetic(Operator::Subtract, Power::Sum),
            Kind::Star => arithmetic(Operator::Multiply, Power::Product),
            Kind::Slash => arithmetic(Operator::Divide, Power::Product),
            Kind::StarStar => arithmetic(Operator::Power, Power::Exponent),
            Kind::Equal => compare(Comparison::Equal),
            Kind::NotEqual => compare(Comparison::NotEqual),
            Kind::Less => compare(Comparison::Less),
            Kind::LessEqual => compare(Comparison::LessEqual),
            Kind::Greater => compare(Comparison::Greater),
            Kind::GreaterEqual => compare(Comparison::GreaterEqual),
            Kind::Word => match self.word_at(0)? {
                "or" => Some((Infix::Or, Power::Or, 1)),
                "and" => Some((Infix::And, Power::And, 1)),
                "between" => Some((Infix::Between, Power::Comparison, 1)),
                "in" => Some((Infix::In, Power::Comparison, 1)),
                "instance" if self.word_at(1) == Some("of") => Some((Infix::InstanceOf, Power::Comparison, 2)),
                _ => None,
            },
            _ => None,
        }
    }

    fn infix_operation(&mut self, left: Node, infix: Infix) -> Result<Node, ParseError> {
        Ok(match infix {
            Infix::Or => {
                let mut operands = vec![left, self.operation(Power::And)?];
                while self.is_word("or") {
                    self.advance();
                    operands.push(self.operation(Power::And)?);
                }
                Node::Or(operands)
            }
            Infix::And => {
                let mut operands = vec![left, self.operation(Power::Comparison)?];
                while self.is_word("and") {
                    self.advance();
                    operands.push(self.operation(Power::Comparison)?);
                }
                Node::And(operands)
            }
            Infix::Compare(comparison) => {
                let right = self.operation(Power::Sum)?;
                Node::Comparison(comparison, Box::new((left, right)))
            }
            Infix::Between => {
                let low = self.operation(Power::Sum)?;
                self.expect_word("and")?;
                let high = self.operation(Power::Sum)?;
                Node::Between(Box::new([left, low, high]))
            }
            Infix::In => Node::In(Box::new((left, self.in_tests()?))),
            Infix::InstanceOf => Node::InstanceOf(Box::new((left, self.type_name()?))),
            Infix::Arithmetic(operator) => self.arithmetic(left, operator)?,
        })
    }

    /// All operators of the precedence of the first one, from left to right.
    fn arithmetic(&mut self, left: Node, first: Operator) -> Result<Node, ParseError> {
        let own = match first {
            Operator::Add | Operator::Subtract => Power::Sum,
            Operator::Multiply | Operator::Divide => Power::Product,
            Operator::Power => Power::Exponent,
        };
        let mut rest = vec![(first, self.arithmetic_operand(own)?)];
        while let Some((Infix::Arithmetic(operator), power, _)) = self.infix() {
            if power != own {
                break;
            }
            self.advance();
            rest.push((operator, self.arithmetic_operand(own)?));
        }
        Ok(Node::Arithmetic(Box::new((left, rest))))
    }

    fn arithmetic_operand(&mut self, operator: Power) -> Result<Node, ParseError> {
        match operator {
            Power::Sum => self.operation(Power::Product),
            Power::Product => self.operation(Power::Exponent),
            _ => self.unary(),
        }
    }

    /// Signs bind tighter than every operator: `-2 ** 2` is 4.
    fn unary(&mut self) -> Result<Node, ParseError> {
        if !self.take(Kind::Minus) {
            let operand = self.primary()?;
            return self.postfix(operand);
        }
        self.enter()?;
        let operand = self.unary()?;
        self.leave();
        Ok(match operand {
            Node::Constant(crate::value::Value::Number(number)) => {
                Node::Constant(crate::value::Value::Number(number.negate()))
            }
            operand => Node::Negate(Box::new(operand)),
        })
    }
}
