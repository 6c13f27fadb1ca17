//! A YAML stream as trees with line numbers.
//!
//! Scalars stay text: what `6.10` or `010` means is decided by the field that holds it.

use std::collections::HashMap;
use std::fmt;

use serde_saphyr::granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span};

/// A line of a file, counted from 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line(pub(crate) u32);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value and the line on which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Where the value begins; an absent value (`key:`) begins at its key.
    pub(crate) line: Line,
    /// The value.
    pub(crate) value: Value,
}

/// What a place in a file can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// A scalar as written, unescaped.
    Scalar {
        /// Its text.
        text: String,
        /// Whether quotes or block style mark it as text.
        quoted: bool,
    },
    /// A list.
    List(Vec<Tree>),
    /// A map in the order of the file. Keys are unique.
    Map(Vec<Entry>),
}

/// One entry of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// The line of the key.
    pub(crate) line: Line,
    /// What it holds.
    pub(crate) value: Tree,
}

impl Value {
    /// What a person calls this kind of value.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Scalar { .. } => "a single value",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

/// Why a text is no YAML that we read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SyntaxError {
    /// The parser refused it.
    #[error("not valid YAML: {text}")]
    Malformed {
        /// Where.
        line: Line,
        /// The parser's words.
        text: String,
    },
    /// A key appears twice in one map.
    #[error("key \"{key}\" appears twice in this map (first on line {first})")]
    RepeatedKey {
        /// The second one.
        line: Line,
        /// The first one.
        first: Line,
        /// The key.
        key: String,
    },
    /// A key that is a list or a map, or a merge key.
    #[error("keys must be plain words here (no merge keys, lists or maps)")]
    BadKey {
        /// Where.
        line: Line,
    },
    /// The document would grow past [`MAX_NODES`] values, aliases included.
    #[error("more than {MAX_NODES} values in one file")]
    TooLarge {
        /// Where the limit was passed.
        line: Line,
    },
}

impl SyntaxError {
    /// The line to look at.
    pub(crate) fn line(&self) -> Line {
        match self {
            Self::Malformed { line, .. }
            | Self::RepeatedKey { line, .. }
            | Self::BadKey { line }
            | Self::TooLarge { line } => *line,
        }
    }
}

/// Bound of the values in one file, so that aliases of aliases can't fill the memory.
pub(crate) const MAX_NODES: usize = 2_000_000;

/// Parse all documents of a text. Empty documents are left out.
///
/// # Errors
/// A text that is no YAML as a whole gives no documents at all: half a file is worse than its last good version.
pub(crate) fn documents(text: &str) -> Result<Vec<Tree>, SyntaxError> {
    let mut options = Options::default();
    options.emit_comments = false;
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(malformed)?;
        builder.event(event, &span)?;
    }
    Ok(builder.finished)
}

// By value, as `map_err` hands it over.
#[allow(clippy::needless_pass_by_value)]
fn malformed(error: ScanError) -> SyntaxError {
    SyntaxError::Malformed { line: line_number(error.marker().line()), text: error.info() }
}

fn line_number(line: usize) -> Line {
    Line(u32::try_from(line).unwrap_or(u32::MAX).max(1))
}

/// A container that is still open.
enum Open {
    List {
        line: Line,
        anchor: usize,
        items: Vec<Tree>,
    },
    Map {
        line: Line,
        anchor: usize,
        entries: Vec<Entry>,
        lines: HashMap<String, Line>,
        key: Option<(String, Line)>,
    },
}

#[derive(Default)]
struct Builder {
    finished: Vec<Tree>,
    open: Vec<Open>,
    anchors: HashMap<usize, (Tree, usize)>,
    nodes: usize,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, span: &Span) -> Result<(), SyntaxError> {
        let line = line_number(span.start.line());
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let value = if plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL") {
                    Value::Null
                } else {
                    Value::Scalar { text: text.into_owned(), quoted: !plain }
                };
                self.place(Tree { line, value }, anchor, 1)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open.push(Open::List { line, anchor, items: Vec::new() });
                Ok(())
            }
            Event::MappingStart(_, anchor, _) => {
                let (entries, lines) = (Vec::new(), HashMap::new());
                self.open.push(Open::Map { line, anchor, entries, lines, key: None });
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List { line, anchor, items }) => {
                    self.place(Tree { line, value: Value::List(items) }, anchor, 1)
                }
                Some(Open::Map { line, anchor, entries, .. }) => {
                    self.place(Tree { line, value: Value::Map(entries) }, anchor, 1)
                }
                None => Ok(()),
            },
            Event::Alias(id) => match self.anchors.get(&id) {
                Some((tree, size)) => {
                    let (tree, size) = (tree.clone(), *size);
                    self.place(tree, 0, size)
                }
                // An alias inside the value that it names.
                None => Err(SyntaxError::BadKey { line }),
            },
            Event::UnresolvedAlias(_) => Err(SyntaxError::BadKey { line }),
            Event::DocumentEnd => {
                self.anchors.clear();
                Ok(())
            }
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(..)
            | Event::Anchor(..)
            | Event::Comment(..)
            // The parser may grow events; those that carry values are all above.
            | _ => Ok(()),
        }
    }

    /// Put a finished value where it belongs. `size` counts the values inside it that are new.
    fn place(&mut self, tree: Tree, anchor: usize, size: usize) -> Result<(), SyntaxError> {
        self.nodes = self.nodes.saturating_add(size);
        if self.nodes > MAX_NODES {
            return Err(SyntaxError::TooLarge { line: tree.line });
        }
        if anchor != 0 {
            self.anchors.insert(anchor, (tree.clone(), count(&tree)));
        }
        match self.open.last_mut() {
            None if tree.value == Value::Null => {}
            None => self.finished.push(tree),
            Some(Open::List { items, .. }) => items.push(tree),
            Some(Open::Map { entries, lines, key, .. }) => match key.take() {
                None => {
                    let Value::Scalar { text, quoted } = tree.value else {
                        return Err(SyntaxError::BadKey { line: tree.line });
                    };
                    if text == "<<" && !quoted {
                        return Err(SyntaxError::BadKey { line: tree.line });
                    }
                    if let Some(&first) = lines.get(&text) {
                        return Err(SyntaxError::RepeatedKey { line: tree.line, first, key: text });
                    }
                    lines.insert(text.clone(), tree.line);
                    *key = Some((text, tree.line));
                }
                Some((key, line)) => {
                    let tree = if tree.value == Value::Null { Tree { line, ..tree } } else { tree };
                    entries.push(Entry { key, line, value: tree });
                }
            },
        }
        Ok(())
    }
}

fn count(tree: &Tree) -> usize {
    match &tree.value {
        Value::Null | Value::Scalar { .. } => 1,
        Value::List(items) => items.iter().map(count).fold(1, usize::saturating_add),
        Value::Map(entries) => entries.iter().map(|e| count(&e.value)).fold(1, usize::saturating_add),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(line: u32, text: &str) -> Tree {
        Tree { line: Line(line), value: Value::Scalar { text: text.into(), quoted: false } }
    }

    #[test]
    fn keeps_lines_and_the_text_as_written() {
        let docs = documents("# head\nasn: 6.10\nlist:\n- 010\n-\n---\n---\nb: {c: \"x\"}\n").unwrap();
        assert_eq!(docs.len(), 2);
        let Value::Map(entries) = &docs[0].value else { panic!("{docs:?}") };
        assert_eq!((entries[0].line, &entries[0].value), (Line(2), &scalar(2, "6.10")));
        let Value::List(items) = &entries[1].value.value else { panic!("{docs:?}") };
        assert_eq!(items[0], scalar(4, "010"));
        assert_eq!(items[1].value, Value::Null);
        let Value::Map(entries) = &docs[1].value else { panic!("{docs:?}") };
        let Value::Map(inner) = &entries[0].value.value else { panic!("{docs:?}") };
        assert_eq!(inner[0].value.value, Value::Scalar { text: "x".into(), quoted: true });
        assert_eq!(inner[0].line, Line(8));
    }

    #[test]
    fn reads_json() {
        let docs = documents("{\"kind\": \"List\",\n \"items\": [1, null, true]}").unwrap();
        let Value::Map(entries) = &docs[0].value else { panic!("{docs:?}") };
        assert_eq!(entries[1].line, Line(2));
    }

    #[test]
    fn refuses_what_is_no_yaml_with_its_line() {
        let error = documents("a: 1\nb: [1,\nc: 2\n").unwrap_err();
        assert!(matches!(error, SyntaxError::Malformed { .. }), "{error}");
        assert!(error.line() >= Line(2), "{error}");
        let error = documents("a: 1\nb: 2\na: 3\n").unwrap_err();
        assert_eq!(error, SyntaxError::RepeatedKey { line: Line(3), first: Line(1), key: "a".into() });
        assert_eq!(documents("a: &x {b: 1}\nc: {<<: *x}\n").unwrap_err().line(), Line(2));
        assert_eq!(documents("[a]: 1\n").unwrap_err(), SyntaxError::BadKey { line: Line(1) });
    }

    #[test]
    fn aliases_work_but_cannot_fill_the_memory() {
        let docs = documents("a: &x [1, 2]\nb: *x\n").unwrap();
        let Value::Map(entries) = &docs[0].value else { panic!("{docs:?}") };
        assert_eq!(entries[0].value.value, entries[1].value.value);

        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let previous = format!("*a{}", level - 1);
            bomb += &format!("a{level}: &a{level} [{}]\n", vec![previous; 10].join(","));
        }
        assert!(matches!(documents(&bomb), Err(SyntaxError::TooLarge { .. })));
        assert!(documents(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn an_empty_text_has_no_documents() {
        assert_eq!(documents("").unwrap(), vec![]);
        assert_eq!(documents("# nothing\n---\n").unwrap(), vec![]);
    }
}
