//! `if`, `for`, `some`, `every` and function definitions.

use std::sync::Arc;

use super::{ParseError, Parser};
use crate::lexer::Kind;
use crate::node::{Domain, FunctionNode, Loop, Node};

impl Parser<'_> {
    pub(super) fn if_clause(&mut self) -> Result<Node, ParseError> {
        self.advance();
        let condition = self.expression()?;
        self.expect_word("then")?;
        let then = self.expression()?;
        self.expect_word("else")?;
        let otherwise = self.expression()?;
        Ok(Node::If(Box::new([condition, then, otherwise])))
    }

    pub(super) fn for_clause(&mut self) -> Result<Node, ParseError> {
        self.advance();
        let domains = self.domains()?;
        self.expect_word("return")?;
        let used = self.bindings.partial_uses();
        self.bindings.push(Arc::from("partial"));
        let body = self.expression()?;
        self.leave_domains(&domains);
        self.bindings.pop(domains.len() + 1);
        let uses_partial = self.bindings.partial_uses() > used;
        Ok(Node::For(Box::new(Loop { domains, body, uses_partial })))
    }

    pub(super) fn quantified_clause(&mut self, build: fn(Box<Loop>) -> Node) -> Result<Node, ParseError> {
        self.advance();
        let domains = self.domains()?;
        self.expect_word("satisfies")?;
        let body = self.expression()?;
        self.leave_domains(&domains);
        self.bindings.pop(domains.len());
        Ok(build(Box::new(Loop { domains, body, uses_partial: false })))
    }

    /// `x in xs, y in 1..3`; leaves the variables bound. Each is a loop inside the one before, and counts as a level of
    /// nesting until [`Parser::leave_domains`].
    fn domains(&mut self) -> Result<Vec<Domain>, ParseError> {
        let mut domains = Vec::new();
        loop {
            self.enter()?;
            let name = self.name("the name of a variable")?;
            self.expect_word("in")?;
            let first = self.expression()?;
            domains.push(if self.take(Kind::DotDot) {
                Domain::Numbers(first, self.expression()?)
            } else {
                Domain::Items(first)
            });
            self.bindings.push(name);
            if !self.take(Kind::Comma) {
                return Ok(domains);
            }
        }
    }

    fn leave_domains(&mut self, domains: &[Domain]) {
        for _ in domains {
            self.leave();
        }
    }

    /// `function(a, b: number) a + b`
    pub(super) fn function_clause(&mut self) -> Result<Node, ParseError> {
        self.advance();
        self.expect(Kind::LeftParenthesis, "'('")?;
        let mut parameters = Vec::new();
        let mut ended = self.take(Kind::RightParenthesis);
        while !ended {
            parameters.push(self.name("the name of a parameter")?);
            if self.take(Kind::Colon) {
                self.type_name()?;
            }
            ended = self.ends(Kind::RightParenthesis, "',' or ')'")?;
        }
        if self.is_word("external") {
            return Err(self.error("a function body written in FEEL (external functions are not supported)"));
        }
        for parameter in &parameters {
            self.bindings.push(parameter.clone());
        }
        self.bindings.capture();
        self.functions += 1;
        let body = self.expression()?;
        self.functions -= 1;
        self.bindings.pop(parameters.len());
        Ok(Node::Function(Arc::new(FunctionNode { parameters, body })))
    }
}
