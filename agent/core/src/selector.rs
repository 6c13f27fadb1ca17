//! Calico's label-selector language: which nodes or workloads an expression picks.
//!
//! It is not the Kubernetes selector language. An empty selector picks everything; `!=` and `not in` hold for an
//! absent label, every other comparison does not. [`Selector::parse`] is total: any text gives a selector or a
//! [`SelectorError`] with the byte where it stopped making sense.
//!
//! *Absent on purpose:* set algebra between selectors, and evaluation against anything but a label map.

use std::collections::BTreeMap;
use std::fmt;

/// Longest label name in bytes.
const MAX_LABEL: usize = 512;
/// Deepest nesting of parentheses; Calico limits the text to 1024 characters, this protects the stack.
const MAX_DEPTH: usize = 256;

/// A parsed selector.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Selector(Expr);

#[derive(Clone, Debug, PartialEq, Eq, Default)]
enum Expr {
    #[default]
    All,
    Has(String),
    Equals(String, String),
    Differs(String, String),
    Contains(String, String),
    StartsWith(String, String),
    EndsWith(String, String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
}

/// Why a text is not a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct SelectorError {
    /// Byte offset in the text.
    pub at: usize,
    /// What was found or missed there.
    pub what: SelectorFault,
}

/// What is wrong at one place of a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectorFault {
    /// A label, function or parenthesis should stand here.
    ExpectedTerm,
    /// A label is followed by no operator.
    ExpectedOperator,
    /// The operator needs a quoted string.
    ExpectedString,
    /// `in` and `not in` need a set in braces.
    ExpectedSet,
    /// A set goes on with something else than `,` or `}`.
    BadSet,
    /// The closing quote is missing.
    UnterminatedString,
    /// The closing parenthesis is missing.
    ExpectedClose,
    /// A label name is longer than 512 bytes.
    LabelTooLong,
    /// Parentheses are nested too deeply.
    TooDeep,
    /// Text follows a complete expression.
    TrailingText,
}

impl fmt::Display for SelectorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ExpectedTerm => "a label, has(), all() or ( is missing",
            Self::ExpectedOperator => "an operator is missing after the label",
            Self::ExpectedString => "a quoted string is missing",
            Self::ExpectedSet => "a set in braces is missing",
            Self::BadSet => "the set is not a list of quoted strings",
            Self::UnterminatedString => "the closing quote is missing",
            Self::ExpectedClose => "a closing parenthesis is missing",
            Self::LabelTooLong => "the label name is longer than 512 bytes",
            Self::TooDeep => "parentheses are nested too deeply",
            Self::TrailingText => "text follows the end of the expression",
        })
    }
}

impl Selector {
    /// Reads a selector. Blank text selects everything.
    ///
    /// # Errors
    /// The first place that breaks the grammar.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser { text: text.as_bytes(), at: 0, depth: 0 };
        parser.space();
        if parser.at == text.len() {
            return Ok(Self(Expr::All));
        }
        let expr = parser.or()?;
        parser.space();
        if parser.at < text.len() {
            return Err(parser.fault(SelectorFault::TrailingText));
        }
        Ok(Self(expr))
    }

    /// Whether the selector picks something with these labels.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.matches(labels)
    }
}

impl Expr {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let has = |label: &String, test: &dyn Fn(&str) -> bool| labels.get(label).is_some_and(|v| test(v));
        match self {
            Self::All => true,
            Self::Has(l) => labels.contains_key(l),
            Self::Equals(l, s) => has(l, &|v| v == s),
            Self::Differs(l, s) => !has(l, &|v| v == s),
            Self::Contains(l, s) => has(l, &|v| v.contains(s.as_str())),
            Self::StartsWith(l, s) => has(l, &|v| v.starts_with(s.as_str())),
            Self::EndsWith(l, s) => has(l, &|v| v.ends_with(s.as_str())),
            Self::In(l, set) => has(l, &|v| set.iter().any(|s| s == v)),
            Self::NotIn(l, set) => !has(l, &|v| set.iter().any(|s| s == v)),
            Self::Not(e) => !e.matches(labels),
            Self::And(all) => all.iter().all(|e| e.matches(labels)),
            Self::Or(any) => any.iter().any(|e| e.matches(labels)),
        }
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

const fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-')
}

impl Parser<'_> {
    fn fault(&self, what: SelectorFault) -> SelectorError {
        SelectorError { at: self.at, what }
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Skips blanks, then takes `token` if it stands there.
    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token.as_bytes());
        if found {
            self.at += token.len();
        }
        found
    }

    fn or(&mut self) -> Result<Expr, SelectorError> {
        let mut any = vec![self.and()?];
        while self.eat("||") {
            any.push(self.and()?);
        }
        Ok(single(any, Expr::Or))
    }

    fn and(&mut self) -> Result<Expr, SelectorError> {
        let mut all = vec![self.term()?];
        while self.eat("&&") {
            all.push(self.term()?);
        }
        Ok(single(all, Expr::And))
    }

    fn term(&mut self) -> Result<Expr, SelectorError> {
        let mut negated = false;
        while self.eat("!") {
            negated = !negated;
        }
        let expr = self.primary()?;
        Ok(if negated { Expr::Not(Box::new(expr)) } else { expr })
    }

    fn primary(&mut self) -> Result<Expr, SelectorError> {
        if self.eat("(") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(self.fault(SelectorFault::TooDeep));
            }
            let inner = self.or()?;
            self.close()?;
            self.depth -= 1;
            return Ok(inner);
        }
        // Function words count only when glued to their parenthesis; otherwise they are labels.
        if self.eat("has(") {
            self.space();
            let label = self.label()?;
            self.close()?;
            return Ok(Expr::Has(label));
        }
        if self.eat("all(") || self.eat("global(") {
            self.close()?;
            return Ok(Expr::All);
        }
        let label = self.label()?;
        self.comparison(label)
    }

    fn close(&mut self) -> Result<(), SelectorError> {
        if self.eat(")") { Ok(()) } else { Err(self.fault(SelectorFault::ExpectedClose)) }
    }

    fn label(&mut self) -> Result<String, SelectorError> {
        let length = self.rest().iter().take_while(|b| is_label_byte(**b)).count();
        if length == 0 {
            return Err(self.fault(SelectorFault::ExpectedTerm));
        }
        if length > MAX_LABEL {
            return Err(self.fault(SelectorFault::LabelTooLong));
        }
        let label = self.rest().get(..length).map(|b| String::from_utf8_lossy(b).into_owned());
        self.at += length;
        Ok(label.unwrap_or_default())
    }

    fn comparison(&mut self, label: String) -> Result<Expr, SelectorError> {
        if self.eat("==") {
            return Ok(Expr::Equals(label, self.string()?));
        }
        if self.eat("!=") {
            return Ok(Expr::Differs(label, self.string()?));
        }
        if self.words(&["contains"]) {
            return Ok(Expr::Contains(label, self.string()?));
        }
        if self.words(&["starts", "with"]) {
            return Ok(Expr::StartsWith(label, self.string()?));
        }
        if self.words(&["ends", "with"]) {
            return Ok(Expr::EndsWith(label, self.string()?));
        }
        if self.words(&["not", "in"]) {
            return Ok(Expr::NotIn(label, self.set()?));
        }
        if self.words(&["in"]) {
            return Ok(Expr::In(label, self.set()?));
        }
        Err(self.fault(SelectorFault::ExpectedOperator))
    }

    /// Takes a word operator: its words with any blanks (also none) between, ended by a word boundary.
    fn words(&mut self, words: &[&str]) -> bool {
        let start = self.at;
        let found = words.iter().all(|word| self.eat(word)) && !self.peek().is_some_and(is_label_byte);
        if !found {
            self.at = start;
        }
        found
    }

    fn string(&mut self) -> Result<String, SelectorError> {
        self.space();
        let Some(quote @ (b'\'' | b'"')) = self.peek() else {
            return Err(self.fault(SelectorFault::ExpectedString));
        };
        let body = self.text.get(self.at + 1..).unwrap_or_default();
        let Some(length) = body.iter().position(|b| *b == quote) else {
            return Err(self.fault(SelectorFault::UnterminatedString));
        };
        let text = body.get(..length).map(|b| String::from_utf8_lossy(b).into_owned());
        self.at += length + 2;
        Ok(text.unwrap_or_default())
    }

    fn set(&mut self) -> Result<Vec<String>, SelectorError> {
        if !self.eat("{") {
            return Err(self.fault(SelectorFault::ExpectedSet));
        }
        let mut set = Vec::new();
        if self.eat("}") {
            return Ok(set);
        }
        loop {
            match self.string() {
                Ok(text) => set.push(text),
                Err(error) if error.what == SelectorFault::UnterminatedString => return Err(error),
                Err(_) => return Err(self.fault(SelectorFault::BadSet)),
            }
            let comma = self.eat(",");
            if self.eat("}") {
                return Ok(set);
            }
            if !comma {
                return Err(self.fault(SelectorFault::BadSet));
            }
        }
    }
}

/// One element stands for itself, more are joined.
fn single(mut list: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
    match list.pop() {
        Some(only) if list.is_empty() => only,
        Some(last) => {
            list.push(last);
            join(list)
        }
        None => Expr::All,
    }
}

#[cfg(test)]
mod tests;
