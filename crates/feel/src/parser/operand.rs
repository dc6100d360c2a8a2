//! Operands: literals, names, lists, contexts, ranges, calls, paths and filters.

use std::sync::Arc;

use super::{ParseError, Parser};
use crate::functions;
use crate::lexer::{self, Kind};
use crate::node::{Call, Dynamic, Filter, Node, RangeNode, Target};
use crate::number::Number;
use crate::value::Value;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Result<Node, ParseError> {
        match self.kind() {
            Kind::Number => {
                let token = self.token();
                let number = Number::parse(self.slice(token))
                    .ok_or_else(|| self.error("a number within the range of numbers"))?;
                self.advance();
                Ok(Node::Constant(Value::Number(number)))
            }
            Kind::String => {
                let token = self.advance();
                Ok(Node::Constant(Value::String(Arc::from(lexer::unescape(self.slice(token))))))
            }
            Kind::Temporal => {
                // A text that denotes nothing is null, as in the dialect.
                let token = self.advance();
                Ok(Node::Constant(functions::temporal_literal(self.slice(token)).unwrap_or_default()))
            }
            Kind::Question => {
                self.advance();
                Ok(self.resolve(Arc::from("?")))
            }
            Kind::LeftParenthesis => self.parenthesized(),
            Kind::LeftBracket => self.list_or_range(),
            Kind::RightBracket => {
                self.advance();
                let start = self.expression()?;
                self.range_end(start, false)
            }
            Kind::LeftBrace => self.context(),
            Kind::Word => self.word(),
            Kind::Backtick => self.named(),
            _ => Err(self.error("an expression")),
        }
    }

    fn word(&mut self) -> Result<Node, ParseError> {
        let called = self.kind_at(1) == Kind::LeftParenthesis;
        let constant = match self.word_at(0).unwrap_or_default() {
            "if" => return self.if_clause(),
            "for" if self.kind_at(1) == Kind::Word || self.kind_at(1) == Kind::Backtick => return self.for_clause(),
            "some" if matches!(self.kind_at(1), Kind::Word | Kind::Backtick) => {
                return self.quantified_clause(Node::Some);
            }
            "every" if matches!(self.kind_at(1), Kind::Word | Kind::Backtick) => {
                return self.quantified_clause(Node::Every);
            }
            "function" if called => return self.function_clause(),
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            "null" => Value::Null,
            "and" | "or" if called => return self.named(),
            word if super::names::is_separator(word) => return Err(self.error("an expression")),
            _ => return self.named(),
        };
        self.advance();
        Ok(Node::Constant(constant))
    }

    /// A name and, if parentheses follow, a call.
    fn named(&mut self) -> Result<Node, ParseError> {
        let start = self.position;
        let name = self.name("a name")?;
        if self.kind() != Kind::LeftParenthesis {
            let node = self.resolve(name);
            if !matches!(node, Node::Local(_)) {
                self.object_to_negation(start);
            }
            return Ok(node);
        }
        let resolution = self.bindings.resolve(&name);
        let builtin = functions::find(&name);
        if resolution.local.is_none() && builtin.is_none() {
            self.object_to_negation(start);
        }
        let target = match (resolution.local, builtin) {
            (Some(position), None) => Target::Value(Node::Local(position)),
            // `{count: count(items)}` makes a name of its own of many a function.
            (Some(position), Some(builtin)) => {
                self.uses_environment |= builtin.uses_environment;
                Target::ValueOrBuiltin(Node::Local(position), builtin)
            }
            (None, Some(builtin)) => {
                self.uses_environment |= builtin.uses_environment;
                Target::Builtin(builtin)
            }
            (None, None) => Target::Variable(self.variable(&name)),
        };
        self.call(target)
    }

    /// The node that reads a name.
    fn resolve(&mut self, name: Arc<str>) -> Node {
        let resolution = self.bindings.resolve(&name);
        let otherwise = match resolution.local {
            Some(position) => Node::Local(position),
            None => Node::Variable(self.variable(&name)),
        };
        // `item` itself is the item, unless an entry of this name hides it.
        if resolution.items.is_empty() {
            return otherwise;
        }
        Node::Dynamic(Box::new(Dynamic { name, items: resolution.items, otherwise }))
    }

    fn variable(&mut self, name: &Arc<str>) -> u32 {
        let index = match self.variable_indexes.get(name) {
            Some(index) => *index,
            None => {
                // The length limit of the text bounds the number of names.
                let index = self.variables.len() as u32;
                self.variables.push(name.clone());
                self.variable_indexes.insert(name.clone(), index);
                index
            }
        };
        if self.functions > 0 {
            self.function_variables.insert(index);
        }
        index
    }

    /// Arguments by position, or all by name.
    fn call(&mut self, target: Target) -> Result<Node, ParseError> {
        self.enter()?;
        self.advance();
        let (mut arguments, mut names) = (Vec::new(), Vec::new());
        let mut ended = self.take(Kind::RightParenthesis);
        while !ended {
            if let Some(name) = self.argument_name()? {
                if names.len() < arguments.len() {
                    return Err(self.error("only arguments without names, or a name for each"));
                }
                names.push(name);
            } else if !names.is_empty() {
                return Err(self.error("a name for each argument"));
            }
            let argument = self.expression()?;
            arguments.push(if let Target::Builtin(_) = target { argument } else { self.perhaps_builtin(argument) });
            ended = self.ends(Kind::RightParenthesis, "',' or ')'")?;
        }
        self.leave();
        Ok(Node::Call(Box::new(Call { target, arguments, names })))
    }

    /// Built-in functions can be handed to other functions. Elsewhere a variable that is missing is null whatever its name
    /// is, as in the dialect.
    fn perhaps_builtin(&mut self, argument: Node) -> Node {
        let Node::Variable(index) = argument else {
            return argument;
        };
        match functions::find(&self.variables[index as usize]) {
            Some(builtin) => {
                self.uses_environment |= builtin.uses_environment;
                Node::VariableOrBuiltin(index, builtin)
            }
            None => argument,
        }
    }

    /// The name before a colon, if an argument starts with one.
    fn argument_name(&mut self) -> Result<Option<Arc<str>>, ParseError> {
        let mut length = 0;
        while matches!(self.kind_at(length), Kind::Word | Kind::Backtick) {
            length += 1;
        }
        if length == 0 || self.kind_at(length) != Kind::Colon {
            return Ok(None);
        }
        let name = self.name("the name of a parameter")?;
        self.expect(Kind::Colon, "':'")?;
        Ok(Some(name))
    }

    fn parenthesized(&mut self) -> Result<Node, ParseError> {
        self.enter()?;
        self.advance();
        if let Some(range) = self.open_range()? {
            self.leave();
            return Ok(range);
        }
        let inner = self.expression()?;
        let node = if self.kind() == Kind::DotDot {
            self.range_end(inner, false)?
        } else {
            self.expect(Kind::RightParenthesis, "')'")?;
            inner
        };
        self.leave();
        Ok(node)
    }

    /// Behind an opening parenthesis: `< 10)`, a range without one of its ends, or `= 10)`, one of a single value.
    fn open_range(&mut self) -> Result<Option<Node>, ParseError> {
        let kind = self.kind();
        let is_test = matches!(kind, Kind::Less | Kind::LessEqual | Kind::Greater | Kind::GreaterEqual | Kind::Equal);
        if !is_test && kind != Kind::NotEqual {
            return Ok(None);
        }
        self.advance();
        let value = self.expression()?;
        self.expect(Kind::RightParenthesis, "')'")?;
        let none = Node::Constant(Value::Null);
        // No range has a hole: `(!= 10)` is a test, but no value.
        if kind == Kind::NotEqual {
            return Ok(Some(none));
        }
        let included = matches!(kind, Kind::LessEqual | Kind::GreaterEqual | Kind::Equal);
        let range = |start, start_included, end, end_included| RangeNode {
            start,
            start_included,
            end,
            end_included,
            is_comparison: true,
        };
        Ok(Some(Node::Range(Box::new(match kind {
            Kind::Less | Kind::LessEqual => range(none, false, Some(value), included),
            Kind::Equal => range(value, true, None, true),
            _ => range(value, included, Some(none), false),
        }))))
    }

    fn list_or_range(&mut self) -> Result<Node, ParseError> {
        self.enter()?;
        self.advance();
        let mut items = Vec::new();
        let mut ended = self.take(Kind::RightBracket);
        while !ended {
            items.push(self.expression()?);
            if items.len() == 1 && self.kind() == Kind::DotDot {
                let start = items.pop().expect("one item was pushed just before");
                self.leave();
                return self.range_end(start, true);
            }
            ended = self.ends(Kind::RightBracket, "',' or ']'")?;
        }
        self.leave();
        Ok(Node::List(items))
    }

    /// `..`, the end and the closing bracket of a range.
    pub(super) fn range_end(&mut self, start: Node, start_included: bool) -> Result<Node, ParseError> {
        self.expect(Kind::DotDot, "'..'")?;
        let end = self.expression()?;
        let end_included = match self.kind() {
            Kind::RightBracket => true,
            Kind::RightParenthesis | Kind::LeftBracket => false,
            _ => return Err(self.error("']' or ')' to end the range")),
        };
        self.advance();
        let end = Some(end);
        Ok(Node::Range(Box::new(RangeNode { start, start_included, end, end_included, is_comparison: false })))
    }

    /// Later entries see the earlier ones.
    fn context(&mut self) -> Result<Node, ParseError> {
        self.enter()?;
        self.advance();
        let mut entries = Vec::new();
        let mut ended = self.take(Kind::RightBrace);
        while !ended {
            let name = match self.kind() {
                Kind::String => {
                    let token = self.advance();
                    Arc::from(lexer::unescape(self.slice(token)))
                }
                _ => self.entry_name()?,
            };
            self.expect(Kind::Colon, "':'")?;
            let value = self.expression()?;
            self.bindings.push(name.clone());
            entries.push((name, value));
            ended = self.ends(Kind::RightBrace, "',' or '}'")?;
        }
        self.bindings.pop(entries.len());
        self.leave();
        Ok(Node::Context(entries))
    }

    /// The name of an entry ends at the colon: it may contain what is no name elsewhere (`{a-b: 1}`).
    fn entry_name(&mut self) -> Result<Arc<str>, ParseError> {
        let mut length = 0;
        let mut symbols = false;
        loop {
            match self.kind_at(length) {
                Kind::Colon if symbols => break,
                Kind::Colon
                | Kind::String
                | Kind::Backtick
                | Kind::LeftBrace
                | Kind::RightBrace
                | Kind::LeftBracket
                | Kind::RightBracket
                | Kind::Comma
                | Kind::End => return self.name("the name of an entry or '}'"),
                kind => symbols |= kind != Kind::Word,
            }
            length += 1;
        }
        let (first, last) = (self.token(), self.tokens[self.position + length - 1]);
        self.position += length;
        Ok(Arc::from(&self.text[first.start()..last.end()]))
    }

    /// Paths, filters and calls behind an operand.
    pub(super) fn postfix(&mut self, mut operand: Node) -> Result<Node, ParseError> {
        let mut links = 0;
        loop {
            match self.kind() {
                Kind::Dot => {
                    self.advance();
                    let start = self.position;
                    let name = self.name("the name of an entry")?;
                    self.object_to_negation(start);
                    operand = join_path(operand, name);
                }
                Kind::LeftBracket if !self.ends_range() => operand = self.filter(operand)?,
                Kind::LeftParenthesis
                    if matches!(
                        operand,
                        Node::Path(..) | Node::VariablePath(..) | Node::Call(_) | Node::Function(_) | Node::Constant(_)
                    ) =>
                {
                    operand = self.call(Target::Value(operand))?;
                }
                _ => break,
            }
            links += 1;
            if links > super::CHAIN_LIMIT {
                return Err(self.error("fewer paths and filters in a row"));
            }
        }
        Ok(operand)
    }

    /// Whether the opening bracket at the cursor is the end of a range like `[1..5[`: no condition can follow.
    fn ends_range(&self) -> bool {
        match self.kind_at(1) {
            Kind::End | Kind::RightParenthesis | Kind::RightBracket | Kind::RightBrace | Kind::Comma | Kind::Dot => {
                true
            }
            Kind::Word => self
                .word_at(1)
                .is_some_and(|word| matches!(word, "and" | "or" | "then" | "else" | "return" | "satisfies")),
            _ => false,
        }
    }

    fn filter(&mut self, base: Node) -> Result<Node, ParseError> {
        self.enter()?;
        self.advance();
        self.bindings.push_item();
        let condition = self.expression()?;
        let entries = self.bindings.pop_item();
        self.expect(Kind::RightBracket, "']'")?;
        self.leave();
        let constant_index = matches!(condition, Node::Constant(Value::Number(_)));
        Ok(Node::Filter(Box::new(Filter { base, condition, constant_index, entries })))
    }
}

fn join_path(operand: Node, name: Arc<str>) -> Node {
    match operand {
        Node::Variable(variable) => Node::VariablePath(variable, Box::new([name])),
        Node::VariablePath(variable, path) => {
            let mut path = path.into_vec();
            path.push(name);
            Node::VariablePath(variable, path.into_boxed_slice())
        }
        operand => Node::Path(Box::new(operand), name),
    }
}
