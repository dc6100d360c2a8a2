//! Random expressions and unary tests, mostly of the right types, from a seed.

/// The variables that the expressions mention, as a JSON object. `missing` is none of them.
pub const VARIABLES: &str = r#"{"n":3,"m":-2.5,"big":12345678901234567890.125,"zero":0,"s":"Hello World","t":"a,b;c","empty":"","b":true,"f":false,"nothing":null,"order value":42,"ns":[3,1,2,2,-7.5],"ss":["b","a","c","a"],"bs":[true,false,true],"nested":[[1,2],[3,[4]],5],"nones":[],"customer":{"name":"Ada","tier":"gold","age":36,"address":{"city":"Berlin","zip":null}},"items":[{"name":"x","price":5,"tags":["a"]},{"name":"y","price":15.5,"tags":[]},{"name":"z","price":25,"tags":["a","b"]}]}"#;

/// The type of what is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Number,
    /// A whole number near zero: positions, lengths, scales.
    Small,
    /// A whole number without anything computed.
    Whole,
    Text,
    Pattern,
    Boolean,
    Date,
    Time,
    DateTime,
    Months,
    Duration,
    Numbers,
    Texts,
    Booleans,
    List,
    Context,
    Contexts,
    Key,
    Range,
    Comparison,
    Any,
}

const TYPES: [Type; 14] = [
    Type::Number,
    Type::Small,
    Type::Text,
    Type::Boolean,
    Type::Date,
    Type::Time,
    Type::DateTime,
    Type::Months,
    Type::Duration,
    Type::Numbers,
    Type::Texts,
    Type::List,
    Type::Context,
    Type::Any,
];

/// What makes a value of a type: `{x}` stands for an operand of the type with the letter `x` in [`of_letter`].
const NUMBERS: &[&str] = &[
    "{n} + {n}",
    "{n} - {n}",
    "{n} * {n}",
    "{n} / {n}",
    "{n} ** {i}",
    "-({n})",
    "({n} + {n}) * {n}",
    "{n} ** 0.5",
    "decimal({n}, {i})",
    "decimal({n}, {i}, \"HALF_UP\")",
    "floor({n})",
    "floor({n}, {i})",
    "ceiling({n})",
    "ceiling({n}, {i})",
    "round up({n}, {i})",
    "round down({n}, {i})",
    "round half up({n}, {i})",
    "round half down({n}, {i})",
    "abs({n})",
    "modulo({n}, {n})",
    "sqrt({n})",
    "log({n})",
    "exp({i})",
    "string length({s})",
    "number({s})",
    "number(\"1,234.5\", \",\")",
    "number(\"1.234,5\", \".\", \",\")",
    "count({l})",
    "min({N})",
    "max({N})",
    "sum({N})",
    "product({N})",
    "mean({N})",
    "median({N})",
    "stddev({N})",
    "min({n}, {n})",
    "sum({n}, {n}, {n})",
    "{N}[{i}]",
    "{d}.year",
    "{d}.month",
    "{d}.day",
    "{d}.weekday",
    "{T}.hour",
    "{D}.minute",
    "{D}.second",
    "{y}.years",
    "{y}.months",
    "{u}.days",
    "{u}.hours",
    "{u}.seconds",
    "day of year({d})",
    "week of year({d})",
    "if {b} then {n} else {n}",
    "{c}.age",
    "customer.age",
    "{y} / @\"P1M\"",
    "{u} / @\"PT1S\"",
    "get or else({n}, {n})",
    "{C}[{i}].price",
    "count({l}[{b}])",
    "{{f: function(x, y) x * y, r: f({n}, {n})}}.r",
    "{{f: function(x) x + {n}, r: f({n})}}.r",
    "get value(customer, \"age\")",
    "index of({l}, {a})[1]",
    "count(distinct values({l}))",
    "[{n}, {n}][{i}]",
];
const TEXTS: &[&str] = &[
    "{s} + {s}",
    "substring({s}, {i})",
    "substring({s}, {i}, {i})",
    "upper case({s})",
    "lower case({s})",
    "substring before({s}, {s})",
    "substring after({s}, {s})",
    "replace({s}, {p}, {s})",
    "replace({s}, {p}, \"$0!\")",
    "trim({s})",
    "string({a})",
    "string({n})",
    "string({d})",
    "string({D})",
    "string({y})",
    "string({u})",
    "string join({S})",
    "string join({S}, {s})",
    "string join({S}, {s}, \"<\", \">\")",
    "to base64({s})",
    "day of week({d})",
    "month of year({d})",
    "if {b} then {s} else {s}",
    "{S}[{i}]",
    "{c}.name",
    "customer.name",
    "{D}.timezone",
    "min({S})",
    "max({S})",
    "get or else({s}, {s})",
    "{C}[{i}].name",
    "customer.address.city",
    "replace({s}, {p}, {s}, \"i\")",
    "substring(string: {s}, start position: {i})",
];
const BOOLEANS: &[&str] = &[
    "{n} {o} {n}",
    "{s} {o} {s}",
    "{d} {o} {d}",
    "{T} {o} {T}",
    "{D} {o} {D}",
    "{y} {o} {y}",
    "{u} {o} {u}",
    "{b} and {b}",
    "{b} or {b}",
    "{b} and {b} or {b}",
    "not({b})",
    "{a} = {a}",
    "{a} != {a}",
    "{l} = {l}",
    "{c} = {c}",
    "{b} = {b}",
    "{n} between {n} and {n}",
    "{d} between {d} and {d}",
    "{n} in {r}",
    "{n} in (< {n}, > {n})",
    "{n} in ({n}, {n})",
    "{n} in ({r}, {r})",
    "{s} in ({s}, {s})",
    "{n} in {N}",
    "{n} in ({N})",
    "{s} in {S}",
    "{n} in > {n}",
    "contains({s}, {s})",
    "starts with({s}, {s})",
    "ends with({s}, {s})",
    "matches({s}, {p})",
    "matches({s}, {p}, \"i\")",
    "is blank({s})",
    "list contains({l}, {a})",
    "all({B})",
    "any({B})",
    "all({b}, {b})",
    "is empty({l})",
    "odd({n})",
    "even({n})",
    "is defined({a})",
    "is defined(missing)",
    "some x in {N} satisfies x > {n}",
    "every x in {N} satisfies x > {n}",
    "some x in {N}, y in {N} satisfies x = y",
    "{a} instance of number",
    "{a} instance of string",
    "{a} instance of boolean",
    "{a} instance of list",
    "{a} instance of context",
    "{d} instance of date",
    "{D} instance of date and time",
    "{a} instance of Any",
    "{u} instance of days and time duration",
    "{y} instance of years and months duration",
    "{T} instance of time",
    "before({n}, {n})",
    "before({n}, {r})",
    "after({r}, {n})",
    "before({r}, {r})",
    "after({r}, {r})",
    "meets({r}, {r})",
    "met by({r}, {r})",
    "overlaps({r}, {r})",
    "overlaps before({r}, {r})",
    "overlaps after({r}, {r})",
    "finishes({n}, {r})",
    "finishes({r}, {r})",
    "finished by({r}, {n})",
    "finished by({r}, {r})",
    "includes({r}, {n})",
    "includes({r}, {r})",
    "during({n}, {r})",
    "during({r}, {r})",
    "starts({n}, {r})",
    "starts({r}, {r})",
    "started by({r}, {n})",
    "started by({r}, {r})",
    "coincides({n}, {n})",
    "coincides({r}, {r})",
    "if {b} then {b} else {b}",
    "{B}[{i}]",
    "{c}.name = {s}",
    "count({C}[price > {n}]) > {i}",
    "{d} in [{d}..{d}]",
    "before({d}, {d})",
    "{s} {o} {n}",
    "{a} {o} {a}",
];
const DATES: &[&str] = &[
    "{d} + {y}",
    "{d} - {y}",
    "{d} + {u}",
    "{d} - {u}",
    "{y} + {d}",
    "date({D})",
    "date({i}, {i}, {i})",
    "date(2020, {i}, {i})",
    "last day of month({d})",
    "if {b} then {d} else {d}",
    "date(\"2020-02-30\")",
    "min({d}, {d})",
];
const TIMES: &[&str] = &[
    "{T} + {u}",
    "{T} - {u}",
    "time({D})",
    "time({i}, {i}, {i})",
    "time({i}, {i}, {i}, {u})",
    "{u} + {T}",
    "time(12, 30, 15.5)",
];
const DATE_TIMES: &[&str] = &[
    "{D} + {u}",
    "{D} - {u}",
    "{D} + {y}",
    "{D} - {y}",
    "date and time({d}, {T})",
    "date and time({D}, {T})",
    "{u} + {D}",
    "date and time({D}, \"Europe/Berlin\")",
    "date and time({D}, \"America/New_York\")",
    "max({D}, {D})",
];
const MONTHS: &[&str] = &[
    "{y} + {y}",
    "{y} - {y}",
    "{y} * {w}",
    "{w} * {y}",
    "{y} / {w}",
    "years and months duration({d}, {d})",
    "years and months duration({D}, {D})",
    "abs({y})",
];
const DURATIONS: &[&str] = &[
    "{u} + {u}",
    "{u} - {u}",
    "{u} * {w}",
    "{w} * {u}",
    "{u} / {w}",
    "{d} - {d}",
    "{T} - {T}",
    "{D} - {D}",
    "abs({u})",
    "{D}.time offset",
];
const NUMBER_LISTS: &[&str] = &[
    "[{n}, {n}, {n}]",
    "{N}[item > {n}]",
    "for x in {N} return x + {n}",
    "for i in 1..4 return i * {n}",
    "for i in {i}..{i} return i",
    "for x in {N}, y in [1, 2] return x * y",
    "sort({N}, function(x, y) x < y)",
    "sort({N}, function(x, y) x > y)",
    "append({N}, {n})",
    "concatenate({N}, {N})",
    "insert before({N}, {i}, {n})",
    "remove({N}, {i})",
    "reverse({N})",
    "index of({N}, {n})",
    "union({N}, {N})",
    "distinct values({N})",
    "duplicate values({N})",
    "flatten({l})",
    "sublist({N}, {i})",
    "sublist({N}, {i}, {i})",
    "mode({N})",
    "{C}.price",
    "{C}[price > {n}].price",
    "for i in 1..4 return if i <= 2 then 1 else partial[-1] + partial[-2]",
    "{N}[{b}]",
    "for x in {C} return x.price",
];
const TEXT_LISTS: &[&str] = &[
    "[{s}, {s}]",
    "split({s}, {p})",
    "extract({s}, {p})",
    "{C}.name",
    "for x in {S} return upper case(x)",
    "{S}[item = {s}]",
    "sort({S}, function(x, y) x < y)",
    "append({S}, {s})",
    "distinct values({S})",
    "{C}[price > {n}].name",
    "reverse({S})",
    "sublist({S}, {i}, {i})",
    "for e in get entries({c}) return e.key",
];
const LISTS: &[&str] = &[
    "[{a}, {a}]",
    "partition({l}, {i})",
    "append({l}, {a})",
    "concatenate({l}, {l})",
    "reverse({l})",
    "flatten({l})",
    "union({l}, {l})",
    "distinct values({l})",
    "remove({l}, {i})",
    "insert before({l}, {i}, {a})",
    "sublist({l}, {i})",
    "{l}[{b}]",
    "{C}.tags",
    "for x in {l} return [x]",
    "get entries({c})",
    "{l}[item = {a}]",
    "duplicate values({l})",
    "index of({l}, {a})",
    "[]",
    "for x in {l} return x.name",
];
const CONTEXTS: &[&str] = &[
    "{{a: {n}, b: {s}}}",
    "{{name: {s}, age: {n}}}",
    "context put({c}, {k}, {a})",
    "context merge({c}, {c})",
    "context merge([{c}, {c}])",
    "put({c}, {k}, {a})",
    "put all({c}, {c})",
    "context put({c}, [{k}, {k}], {a})",
    "context([{{key: {k}, value: {a}}}])",
    "{C}[{i}]",
    "{{a: {n}, b: a + 1, c: {{d: b}}}}",
    "if {b} then {c} else {c}",
    "get or else({c}, {c})",
    "context(get entries({c}))",
];
const ANYTHING: &[&str] = &[
    "get value({c}, {k})",
    "get value({c}, [{k}, {k}])",
    "{c}.a",
    "{l}[{i}]",
    "if {a} then {a} else {a}",
    "get or else({a}, {a})",
    "{a}.name",
    "{a}[1]",
    "{a} + {a}",
    "{a} - {a}",
    "{a} * {w}",
    "{a} / {a}",
    "-({a})",
    "not({a})",
    "count({a})",
    "no such thing({a})",
    "string length({a})",
    "upper case({a}, {a})",
    "{a}.b.c",
    "for x in {a} return x",
    "some x in {a} satisfies x",
    "sum({l})",
    "min({l})",
    "number({a})",
    "date({a})",
    "{a} and {a}",
    "{a} or {a}",
    "assert({a}, {b})",
    "{{a: {a}}}.a",
    "{a} between {a} and {a}",
    "{a} in {a}",
];
/// `{{` and `}}` are not operands here: these are whole texts.
const UNARY: &[&str] = &[
    "-",
    "{n}",
    "{n}, {n}",
    "not({n})",
    "not({n}, {n})",
    "< {n}",
    "> {n}",
    "<= {n}, >= {n}",
    "{r}",
    "{r}, {r}",
    "not({r})",
    "{s}",
    "{s}, {s}",
    "not({s}, {s})",
    "null",
    "not(null)",
    "true",
    "false",
    "? > {n}",
    "? > {n} and ? < {n}",
    "? < {n} or ? > {n}",
    "contains(?, {s})",
    "list contains({l}, ?)",
    "{N}",
    "{S}",
    "> {d}",
    "[{d}..{d}]",
    "{d}",
    "{b}",
    "{n} > {n}",
    "odd(?)",
    "if ? = {n} then true else false",
    "some x in {N} satisfies x = ?",
    "missing",
    "nothing",
    "? = {n}, {n}",
    "ends with(?, {s})",
    "cellInput > {n}",
    "matches(?, {p})",
    "? in {r}",
    "? in ({n}, {n})",
    "not(? = {n})",
    "{a}",
    "> {a}",
];

const PATTERNS: &[&str] = &[
    "\"l\"",
    "\"[a-c]\"",
    "\"\\s+\"",
    "\"(o|l)+\"",
    "\"^H\"",
    "\"d$\"",
    "\"[,;]\"",
    "\"\\d\"",
    "\"\"",
    "\"(\"",
    "\"o.*?r\"",
    "\"\\w+\"",
];

/// A generator of random numbers (SplitMix64).
pub struct Generator {
    state: u64,
}

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The text of an expression or of unary tests.
    pub text: String,
    /// The input value of unary tests, as JSON.
    pub input: Option<&'static str>,
}

fn of_letter(letter: &str) -> Option<Type> {
    Some(match letter {
        "n" => Type::Number,
        "i" => Type::Small,
        "w" => Type::Whole,
        "s" => Type::Text,
        "p" => Type::Pattern,
        "b" => Type::Boolean,
        "d" => Type::Date,
        "T" => Type::Time,
        "D" => Type::DateTime,
        "y" => Type::Months,
        "u" => Type::Duration,
        "N" => Type::Numbers,
        "S" => Type::Texts,
        "B" => Type::Booleans,
        "l" => Type::List,
        "c" => Type::Context,
        "C" => Type::Contexts,
        "k" => Type::Key,
        "r" => Type::Range,
        "o" => Type::Comparison,
        "a" => Type::Any,
        _ => return None,
    })
}

fn leaves(wanted: Type) -> &'static [&'static str] {
    match wanted {
        Type::Number => &[
            "1",
            "0",
            "2.5",
            "-3",
            "n",
            "m",
            "zero",
            "100",
            "0.1",
            "`order value`",
            "customer.age",
            "1.50",
            "7",
            "big",
            "ns[1]",
            "items[1].price",
            "-0.5",
            "1000000",
            "3",
        ],
        Type::Whole => &["1", "2", "-2", "0", "3", "10"],
        Type::Small => &["1", "2", "3", "0", "-1", "-2", "5", "n", "10", "1.5", "-3"],
        Type::Text => &[
            "\"\"",
            "\"a\"",
            "s",
            "t",
            "\"Hello\"",
            "\"l\"",
            "\"1.5\"",
            "\" x \"",
            "customer.name",
            "\"b,c\"",
            "\"é\u{1f600}\"",
            "empty",
            "\"ÄÖ\"",
            "\"12\"",
            "\"World\"",
            "ss[1]",
            "\"a\\\"b\"",
        ],
        Type::Pattern => PATTERNS,
        Type::Boolean => &["true", "false", "b", "f", "b", "nothing"],
        Type::Date => &[
            "@\"2020-02-29\"",
            "date(\"2021-12-31\")",
            "@\"2019-01-01\"",
            "date(2024, 2, 29)",
            "@\"2020-03-15\"",
            "today()",
        ],
        Type::Time => &[
            "@\"10:30:00\"",
            "time(\"23:59:59\")",
            "@\"08:00:00Z\"",
            "@\"12:00:00+02:00\"",
            "@\"00:00:00\"",
            "@\"10:15:30.5\"",
        ],
        Type::DateTime => &[
            "@\"2020-02-29T10:00:00\"",
            "date and time(\"2021-03-28T01:30:00@Europe/Berlin\")",
            "@\"2020-01-01T00:00:00Z\"",
            "@\"2020-06-15T12:30:45+02:00\"",
            "now()",
            "@\"2021-10-31T02:30:00@Europe/Berlin\"",
            "@\"2019-12-31T23:59:59\"",
        ],
        Type::Months => &["@\"P1Y\"", "@\"P2M\"", "duration(\"P1Y6M\")", "@\"-P3M\"", "@\"P0M\"", "@\"P14M\""],
        Type::Duration => &[
            "@\"PT1H\"",
            "@\"P1D\"",
            "duration(\"P2DT3H4M5S\")",
            "@\"-PT30M\"",
            "@\"PT0S\"",
            "@\"PT36H\"",
            "@\"PT90S\"",
        ],
        Type::Numbers => &["ns", "[1, 2, 3]", "[]", "[2, 1]", "[-1, 2.5]", "items.price", "[1, null]", "nones"],
        Type::Texts => &["ss", "[\"a\", \"b\"]", "[]", "items.name", "[\"x\", null]"],
        Type::Booleans => &["bs", "[true, false]", "[]", "[true, null]", "[true]", "[false, null]"],
        Type::List => &["ns", "ss", "nested", "[]", "items", "[1, \"a\", null]", "[[1], 2]", "bs", "[1, 1, \"1\"]"],
        Type::Context => {
            &["customer", "{a: 1}", "{}", "items[1]", "{name: \"Bob\", age: 7}", "customer.address", "{a: null}"]
        }
        Type::Contexts => &["items", "[{price: 1, name: \"q\"}, {price: 20}]", "[customer]", "items[price > 10]"],
        Type::Key => &["\"a\"", "\"name\"", "\"b\"", "\"address\"", "\"city\"", "\"zip\""],
        Type::Range => &[
            "[1..5]", "(1..5)", "[1..5)", "(1..5]", "[5..10]", "[3..8]", "(5..10)", "]2..4[", "[-1..1]", "[n..10]",
            "[4..4]",
        ],
        Type::Comparison => &["<", "<=", ">", ">=", "=", "!="],
        Type::Any => &[
            "null",
            "1",
            "\"a\"",
            "true",
            "@\"2020-01-01\"",
            "[1, 2]",
            "{a: 1}",
            "nothing",
            "missing",
            "@\"PT1H\"",
            "@\"P1Y\"",
            "@\"10:00:00\"",
            "@\"2020-01-01T10:00:00\"",
            "s",
            "n",
            "customer",
            "items",
            "missing.a",
            "function(x) x",
        ],
    }
}

fn makers(wanted: Type) -> &'static [&'static str] {
    match wanted {
        Type::Number => NUMBERS,
        Type::Text => TEXTS,
        Type::Boolean => BOOLEANS,
        Type::Date => DATES,
        Type::Time => TIMES,
        Type::DateTime => DATE_TIMES,
        Type::Months => MONTHS,
        Type::Duration => DURATIONS,
        Type::Numbers => NUMBER_LISTS,
        Type::Texts => TEXT_LISTS,
        Type::List => LISTS,
        Type::Context => CONTEXTS,
        Type::Any => ANYTHING,
        _ => &[],
    }
}

impl Generator {
    /// A generator with a seed.
    pub fn new(seed: u64) -> Generator {
        Generator { state: seed }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((value ^ value >> 31) % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// The next case: one of eight is a unary test.
    pub fn case(&mut self) -> Case {
        let depth = self.pick(&[1, 1, 1, 2, 2, 3]);
        if self.below(8) > 0 {
            let wanted = self.pick(&TYPES);
            return Case { text: self.expression(wanted, depth), input: None };
        }
        let template = self.pick(UNARY);
        let text = self.fill(template, depth - 1);
        let input =
            self.pick(&["1", "2.5", "-3", "7", "\"a\"", "\"Hello\"", "null", "true", "false", "[1, 2]", "{\"a\": 1}"]);
        Case { text, input: Some(input) }
    }

    fn expression(&mut self, wanted: Type, depth: usize) -> String {
        // Now and then something of another type.
        let exact = matches!(wanted, Type::Whole | Type::Comparison | Type::Pattern | Type::Range | Type::Key);
        let wanted = if !exact && self.below(25) == 0 { self.pick(&TYPES) } else { wanted };
        let makers = makers(wanted);
        if depth == 0 || makers.is_empty() || self.below(6) == 0 {
            return self.pick(leaves(wanted)).to_owned();
        }
        let template = self.pick(makers);
        self.fill(template, depth - 1)
    }

    /// The template with an operand in place of each `{x}`; doubled braces stand for braces.
    fn fill(&mut self, template: &str, depth: usize) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let operand = rest.get(at + 1..at + 2).and_then(of_letter).filter(|_| rest[at + 2..].starts_with('}'));
            match operand {
                Some(wanted) if rest[at..].starts_with('{') => {
                    let operand = self.expression(wanted, depth);
                    // What is no single operand is put in parentheses.
                    let simple = matches!(wanted, Type::Comparison | Type::Range)
                        || !operand.contains(' ')
                        || is_closed(&operand);
                    text.push_str(&if simple { operand } else { format!("({operand})") });
                    rest = &rest[at + 3..];
                }
                _ => {
                    text.push_str(&rest[at..=at]);
                    rest = rest[at + 1..].strip_prefix(&rest[at..=at]).unwrap_or(&rest[at + 1..]);
                }
            }
        }
        text.push_str(rest);
        text
    }
}

/// Whether the text is one list, context, string or parenthesised expression.
fn is_closed(text: &str) -> bool {
    let pairs = [('[', ']'), ('{', '}'), ('(', ')')];
    if text.starts_with('"') || text.starts_with("@\"") {
        return text.ends_with('"') && text.matches('"').count() == 2;
    }
    pairs.iter().any(|(open, close)| {
        text.starts_with(*open)
            && text.ends_with(*close)
            && text.matches(*open).count() == 1
            && text.matches(*close).count() == 1
    })
}
