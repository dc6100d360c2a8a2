//! Unary tests.

use super::{ParseError, Parser, Power};
use crate::functions;
use crate::lexer::Kind;
use crate::node::{Call, Comparison, Node, Target, Test};

/// So far is looked for the end of `not(…)`; what is longer is a test.
const NEGATED_TOKENS_MAX: usize = 1_000;

impl Parser<'_> {
    /// The tests of a decision table's cell: `-`, or alternatives, or `not(…)`.
    pub(super) fn unary_tests(&mut self) -> Result<Vec<Test>, ParseError> {
        let mut tests = vec![self.joined_tests()?];
        while self.take(Kind::Comma) {
            tests.push(self.joined_tests()?);
        }
        Ok(tests)
    }

    /// What follows `in`: one test, or several in parentheses.
    pub(super) fn in_tests(&mut self) -> Result<Vec<Test>, ParseError> {
        self.bindings.push_question();
        let tests = if self.kind() == Kind::LeftParenthesis { self.parenthesized_tests()? } else { vec![self.test()?] };
        self.bindings.pop(1);
        Ok(tests)
    }

    /// `(1..5)` is a range, `(1, 2)`, `(< 5, 7)` and `(x)` are tests.
    fn parenthesized_tests(&mut self) -> Result<Vec<Test>, ParseError> {
        self.advance();
        let first = self.joined_tests()?;
        if self.kind() == Kind::DotDot
            && let Test::Value { node, boolean } = first
        {
            let node = self.range_end(node, false)?;
            return Ok(vec![Test::Value { node, boolean }]);
        }
        let mut tests = vec![first];
        while self.take(Kind::Comma) {
            tests.push(self.joined_tests()?);
        }
        self.expect(Kind::RightParenthesis, "',' or ')'")?;
        Ok(tests)
    }

    /// One test, or several joined by `and` and `or` (`> 3 and < 7`, `? = 1 or x`): then it is a condition.
    fn joined_tests(&mut self) -> Result<Test, ParseError> {
        let used = self.bindings.question_uses();
        let first = self.test()?;
        if !self.is_word("and") && !self.is_word("or") {
            return Ok(first);
        }
        let mut conditions = vec![self.conjunction(condition(first))?];
        while self.is_word("or") {
            self.advance();
            let first = self.test()?;
            conditions.push(self.conjunction(condition(first))?);
        }
        let node = if conditions.len() == 1 { conditions.remove(0) } else { Node::Or(conditions) };
        let boolean = self.bindings.question_uses() > used || mentions_input(&node);
        Ok(Test::Value { node, boolean })
    }

    fn conjunction(&mut self, first: Node) -> Result<Node, ParseError> {
        if !self.is_word("and") {
            return Ok(first);
        }
        let mut conditions = vec![first];
        while self.is_word("and") {
            self.advance();
            conditions.push(condition(self.test()?));
        }
        Ok(Node::And(conditions))
    }

    /// Whether the `not(…)` at the cursor is all of a test: `not(p) = q` is a comparison with what the function gives.
    fn is_negated_test(&self) -> bool {
        let mut open = 0_usize;
        for ahead in 1..NEGATED_TOKENS_MAX {
            match self.kind_at(ahead) {
                Kind::LeftParenthesis => open += 1,
                // Ranges may have more of these.
                Kind::RightParenthesis => open = open.saturating_sub(1),
                Kind::End => return true,
                _ => {}
            }
            if open == 0 {
                let next = ahead + 1;
                return matches!(self.kind_at(next), Kind::Comma | Kind::RightParenthesis | Kind::End)
                    || matches!(self.word_at(next), Some("and" | "or"));
            }
        }
        true
    }

    fn test(&mut self) -> Result<Test, ParseError> {
        let comparison = match self.kind() {
            Kind::Less => Comparison::Less,
            Kind::LessEqual => Comparison::LessEqual,
            Kind::Greater => Comparison::Greater,
            Kind::GreaterEqual => Comparison::GreaterEqual,
            Kind::Equal => Comparison::Equal,
            Kind::NotEqual => Comparison::NotEqual,
            Kind::Minus if matches!(self.kind_at(1), Kind::Comma | Kind::RightParenthesis | Kind::End) => {
                self.advance();
                return Ok(Test::Any);
            }
            Kind::Word if self.is_word("not") && self.kind_at(1) == Kind::LeftParenthesis && self.is_negated_test() => {
                self.enter()?;
                self.advance();
                let tests = self.parenthesized_tests()?;
                self.leave();
                return Ok(Test::Not(tests.into_iter().map(inside_not).collect()));
            }
            // `(< 5)`: a single test in parentheses.
            Kind::LeftParenthesis if is_comparison(self.kind_at(1)) => {
                self.enter()?;
                self.advance();
                let test = self.joined_tests()?;
                self.expect(Kind::RightParenthesis, "')'")?;
                self.leave();
                return Ok(test);
            }
            _ => {
                let used = self.bindings.question_uses();
                // A condition on the input may be any expression; a plain value ends before `and` and `or`.
                let node = self.operation(Power::Comparison)?;
                return Ok(Test::Value { node, boolean: self.bindings.question_uses() > used });
            }
        };
        self.advance();
        Ok(Test::Compare(comparison, self.operation(Power::Sum)?))
    }
}

/// Whether a test on the input is among the conditions.
fn mentions_input(node: &Node) -> bool {
    match node {
        Node::And(operands) | Node::Or(operands) => operands.iter().any(mentions_input),
        node => matches!(node, Node::Test(_)),
    }
}

fn is_comparison(kind: Kind) -> bool {
    matches!(kind, Kind::Less | Kind::LessEqual | Kind::Greater | Kind::GreaterEqual | Kind::Equal | Kind::NotEqual)
}

/// `not(…)` inside of an expression or of another `not(…)`: of a condition it is the function, of anything else a test. With
/// whether the condition mentions the input.
fn negated_condition(mut tests: Vec<Test>) -> Result<(Node, bool), Vec<Test>> {
    let is_condition = match &tests[..] {
        [Test::Value { node: Node::Constant(value), .. }] => value.as_bool().is_some(),
        [Test::Value { node, .. }] => !matches!(node, Node::Range(_)),
        _ => false,
    };
    match (functions::find("not").filter(|_| is_condition), tests.pop()) {
        (Some(not), Some(Test::Value { node, boolean })) => {
            let call = Call { target: Target::Builtin(not), arguments: vec![node], names: Vec::new() };
            Ok((Node::Call(Box::new(call)), boolean))
        }
        (_, last) => {
            tests.extend(last);
            Err(tests)
        }
    }
}

/// A test inside of `not(…)`.
fn inside_not(test: Test) -> Test {
    match test {
        Test::Not(tests) => match negated_condition(tests) {
            Ok((node, boolean)) => Test::Value { node, boolean },
            Err(tests) => Test::Not(tests),
        },
        test => test,
    }
}

/// The node of one test: a comparison with the input remains a test, a separate condition is a node.
fn condition(test: Test) -> Node {
    match test {
        Test::Value { node: node @ Node::Range(_), .. } => Node::Test(Box::new(Test::Value { node, boolean: false })),
        Test::Value { node, .. } => node,
        Test::Not(tests) => match negated_condition(tests) {
            Ok((node, _)) => node,
            Err(tests) => Node::Test(Box::new(Test::Not(tests))),
        },
        test => Node::Test(Box::new(test)),
    }
}
