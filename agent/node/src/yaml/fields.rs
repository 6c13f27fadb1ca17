//! Reading the fields of a map: each known field is asked for by name, and what nobody asked for is unknown.
//!
//! A reader never stops at a mistake. It notes it and goes on, so that one look at a file finds all of them; the caller
//! compares [`Flaws::count`] before and after to learn whether a value is whole.

use std::cell::RefCell;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;

use super::nearest::nearest;
use super::tree::{Entry, Line, Tree, Value};

/// One mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// Where.
    pub(crate) line: Line,
    /// The path of the field, as `spec.peerIP` or `neighbors[0].asn`; empty for the document itself.
    pub(crate) field: String,
    /// What is wrong.
    pub(crate) mistake: Mistake,
}

/// What can be wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Nobody knows this field; perhaps the near one was meant.
    Unknown {
        /// The known field with the nearest name.
        near: Option<String>,
    },
    /// A field that must be there is not.
    Missing,
    /// A list where a map belongs, and the like.
    Shape {
        /// What belongs here.
        wanted: &'static str,
        /// What is here.
        found: &'static str,
    },
    /// A value that can't be what this field holds.
    Value {
        /// What belongs here, with an example where that helps.
        wanted: &'static str,
        /// What is here.
        found: String,
    },
    /// A word outside a closed list.
    Word {
        /// The words that are possible.
        wanted: &'static [&'static str],
        /// What is here.
        found: String,
    },
    /// Fields that exclude each other, or need each other.
    Conflict {
        /// The rule that is broken.
        rule: &'static str,
    },
    /// Whoever is told this value refuses it.
    Refused {
        /// Its words.
        reason: String,
    },
    /// An external neighbour that nothing is said of about routes; a warning.
    NoPolicy {
        /// What does not happen.
        effect: &'static str,
    },
    /// A kind of object that nobody knows.
    UnknownKind {
        /// What is here.
        found: String,
        /// The known kind with the nearest name.
        near: Option<String>,
    },
    /// A name that nothing has.
    NoSuchName {
        /// What is here.
        found: String,
        /// The nearest name that exists.
        near: Option<String>,
    },
    /// Not the language of the file.
    Syntax {
        /// The parser's words.
        reason: String,
    },
    /// A file that is named here and can't be used. Its content isn't shown.
    File {
        /// Its path.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A prefix with host bits set: a warning, as what was meant is plain.
    HostBits {
        /// As it is read.
        masked: IpNet,
    },
    /// What is said has an effect that nobody is likely to want; a warning.
    Doubtful {
        /// The effect.
        effect: &'static str,
    },
    /// Something that this release knows and makes no use of; a warning.
    Unused,
    /// A field that this release knows and can't serve yet.
    Unsupported {
        /// What to do instead.
        remedy: &'static str,
    },
}

impl Mistake {
    /// Whether the value can be used all the same.
    pub(crate) fn is_warning(&self) -> bool {
        matches!(self, Self::HostBits { .. } | Self::Unused | Self::NoPolicy { .. } | Self::Doubtful { .. })
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { near: Some(near) } => write!(f, "unknown field; did you mean \"{near}\"?"),
            Self::Unknown { near: None } => f.write_str("unknown field"),
            Self::Missing => f.write_str("is required"),
            Self::Shape { wanted, found } => write!(f, "must be {wanted}, not {found}"),
            Self::Value { wanted, found } => write!(f, "must be {wanted}, not \"{}\"", Shown(found)),
            Self::Word { wanted, found } => {
                f.write_str("must be ")?;
                for (index, word) in wanted.iter().enumerate() {
                    let last = index + 1 == wanted.len();
                    let joint = if index == 0 {
                        ""
                    } else if last {
                        " or "
                    } else {
                        ", "
                    };
                    write!(f, "{joint}{word}")?;
                }
                write!(f, ", not \"{}\"", Shown(found))
            }
            Self::Conflict { rule } => f.write_str(rule),
            Self::UnknownKind { found, near } => {
                write!(f, "\"{}\" is no kind that the agent reads", Shown(found))?;
                match near {
                    Some(near) => write!(f, "; did you mean \"{near}\"?"),
                    None => Ok(()),
                }
            }
            Self::NoSuchName { found, near } => {
                write!(f, "there is no \"{}\"", Shown(found))?;
                match near {
                    Some(near) => write!(f, "; did you mean \"{near}\"?"),
                    None => Ok(()),
                }
            }
            Self::NoPolicy { effect } => {
                write!(
                    f,
                    "{effect}: an external neighbour needs import and export (require-policy, RFC 8212)"
                )
            }
            Self::Syntax { reason } | Self::Refused { reason } => f.write_str(reason),
            Self::File { path, reason } => write!(f, "\"{}\": {reason}", Shown(path)),
            Self::HostBits { masked } => write!(f, "has host bits set; read as {masked}"),
            Self::Doubtful { effect } => f.write_str(effect),
            Self::Unused => f.write_str("is not used by this release"),
            Self::Unsupported { remedy } => write!(f, "is not supported by this release; {remedy}"),
        }
    }
}

/// A value out of a file as it may be shown on one line: control characters escaped, long ones cut.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars().take(60) {
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { write!(f, "{c}")? }
        }
        if self.0.chars().nth(60).is_some() { f.write_str("…") } else { Ok(()) }
    }
}

impl Flaw {
    /// As one line with the file's name, as compilers write it.
    pub(crate) fn in_file(&self, file: &dyn fmt::Display) -> String {
        let field = if self.field.is_empty() { String::new() } else { format!("{}: ", self.field) };
        format!("{file}:{}: {field}{}", self.line, self.mistake)
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        self.mistake.fmt(f)
    }
}

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(crate) struct Flaws(RefCell<Vec<Flaw>>);

impl Flaws {
    /// How many so far, warnings aside.
    pub(crate) fn count(&self) -> usize {
        self.0.borrow().iter().filter(|flaw| !flaw.mistake.is_warning()).count()
    }

    /// Note one more.
    pub(crate) fn add(&self, line: Line, field: impl Into<String>, mistake: Mistake) {
        self.0.borrow_mut().push(Flaw { line, field: field.into(), mistake });
    }

    /// All of them, in the order of the file.
    pub(crate) fn into_vec(self) -> Vec<Flaw> {
        let mut flaws = self.0.into_inner();
        flaws.sort_by_key(|flaw| flaw.line);
        flaws
    }
}

/// A value with its path, ready to be read as something.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a> {
    tree: &'a Tree,
    path: String,
    flaws: &'a Flaws,
}

impl<'a> Item<'a> {
    /// The root of a document.
    pub(crate) fn root(tree: &'a Tree, flaws: &'a Flaws) -> Self {
        Self { tree, path: String::new(), flaws }
    }

    /// The same value with another list of mistakes.
    pub(crate) fn with_flaws<'b>(&self, flaws: &'b Flaws) -> Item<'b>
    where
        'a: 'b,
    {
        Item { tree: self.tree, path: self.path.clone(), flaws }
    }

    /// The value itself.
    pub(crate) fn tree(&self) -> &'a Tree {
        self.tree
    }

    /// Where it is.
    pub(crate) fn line(&self) -> Line {
        self.tree.line
    }

    /// Its path, as in [`Flaw::field`].
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// How many mistakes there are so far in everything that is being read, warnings aside.
    pub(crate) fn mistakes(&self) -> usize {
        self.flaws.count()
    }

    /// Note a mistake about this value.
    pub(crate) fn flaw(&self, mistake: Mistake) {
        self.flaws.add(self.tree.line, self.path.clone(), mistake);
    }

    fn wrong_shape<T>(&self, wanted: &'static str) -> Option<T> {
        self.flaw(Mistake::Shape { wanted, found: self.tree.value.noun() });
        None
    }

    fn scalar(&self, wanted: &'static str) -> Option<&'a str> {
        match &self.tree.value {
            Value::Scalar { text, .. } => Some(text),
            Value::Null | Value::List(_) | Value::Map(_) => self.wrong_shape(wanted),
        }
    }

    /// Whether it is a scalar rather than a list or a map.
    pub(crate) fn is_scalar(&self) -> bool {
        matches!(self.tree.value, Value::Scalar { .. })
    }

    /// Whether it is a map.
    pub(crate) fn is_map(&self) -> bool {
        matches!(self.tree.value, Value::Map(_))
    }

    /// As text, whatever it looks like.
    pub(crate) fn text(&self) -> Option<&'a str> {
        self.scalar("text")
    }

    /// As a value that its type can parse. `wanted` says what that is, as in "an IP address, such as 192.0.2.1".
    pub(crate) fn parse<T: FromStr>(&self, wanted: &'static str) -> Option<T> {
        self.parse_with(wanted, |text| text.parse().ok())
    }

    /// As a value that a function can parse.
    pub(crate) fn parse_with<T>(&self, wanted: &'static str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.scalar(wanted)?;
        let value = parse(text.trim());
        if value.is_none() {
            self.flaw(Mistake::Value { wanted, found: text.to_owned() });
        }
        value
    }

    /// As `true` or `false`; quotes are forgiven.
    pub(crate) fn boolean(&self) -> Option<bool> {
        self.parse_with("true or false", |text| match text {
            "true" | "True" | "TRUE" => Some(true),
            "false" | "False" | "FALSE" => Some(false),
            _ => None,
        })
    }

    /// As a whole number in a range.
    pub(crate) fn number<T: FromStr + PartialOrd>(
        &self,
        wanted: &'static str,
        range: RangeInclusive<T>,
    ) -> Option<T> {
        self.parse_with(wanted, |text| text.parse().ok().filter(|value| range.contains(value)))
    }

    /// As one word of a closed list; the answer is its place in the list.
    pub(crate) fn word(&self, words: &'static [&'static str]) -> Option<usize> {
        let text = self.scalar("one word")?;
        let place = words.iter().position(|word| *word == text);
        if place.is_none() {
            self.flaw(Mistake::Word { wanted: words, found: text.to_owned() });
        }
        place
    }

    /// As a time span in Go's syntax, or a bare number of seconds.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.parse_with("a time such as 5s, 1m30s or 250ms", duration)
    }

    /// As a list.
    pub(crate) fn list(&self) -> Vec<Self> {
        let Value::List(items) = &self.tree.value else {
            return self.wrong_shape("a list").unwrap_or_default();
        };
        let item = |(index, tree)| Item { tree, path: format!("{}[{index}]", self.path), flaws: self.flaws };
        items.iter().enumerate().map(item).collect()
    }

    /// As a map with known fields.
    pub(crate) fn fields(&self) -> Option<Fields<'a>> {
        let Value::Map(entries) = &self.tree.value else { return self.wrong_shape("a map") };
        Some(Fields {
            entries,
            line: self.tree.line,
            path: self.path.clone(),
            flaws: self.flaws,
            known: Vec::new(),
            lenient: false,
        })
    }

    /// As a map whose keys are the user's own, such as names of policies or labels.
    pub(crate) fn entries(&self) -> Vec<(&'a str, Self)> {
        let Value::Map(entries) = &self.tree.value else {
            return self.wrong_shape("a map").unwrap_or_default();
        };
        let child = |entry: &'a Entry| {
            let path = join(&self.path, &entry.key);
            (&*entry.key, Item { tree: &entry.value, path, flaws: self.flaws })
        };
        entries.iter().map(child).collect()
    }
}

/// The fields of one map. A field that was not asked for by the time [`Fields::finish`] runs is unknown.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    entries: &'a [Entry],
    line: Line,
    path: String,
    flaws: &'a Flaws,
    known: Vec<&'static str>,
    lenient: bool,
}

impl<'a> Fields<'a> {
    /// Ask for a field. `null` counts as absent.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<Item<'a>> {
        self.known.push(key);
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        if entry.value.value == Value::Null {
            return None;
        }
        Some(Item { tree: &entry.value, path: join(&self.path, key), flaws: self.flaws })
    }

    /// Ask for a field that must be there.
    pub(crate) fn need(&mut self, key: &'static str) -> Option<Item<'a>> {
        let item = self.take(key);
        if item.is_none() {
            self.flaws.add(self.line, join(&self.path, key), Mistake::Missing);
        }
        item
    }

    /// Know these fields without reading them.
    pub(crate) fn ignore(&mut self, keys: &[&'static str]) {
        self.known.extend_from_slice(keys);
    }

    /// Accept fields that nobody asks for.
    pub(crate) fn ignore_others(mut self) {
        self.lenient = true;
    }

    /// Note a mistake about the map as a whole.
    pub(crate) fn flaw(&self, mistake: Mistake) {
        self.flaws.add(self.line, self.path.clone(), mistake);
    }

    /// Report every field that nobody asked for.
    pub(crate) fn finish(self) {
        if self.lenient {
            return;
        }
        for entry in self.entries {
            if !self.known.contains(&&*entry.key) {
                let near = nearest(&entry.key, self.known.iter().copied()).map(str::to_owned);
                self.flaws.add(entry.line, join(&self.path, &entry.key), Mistake::Unknown { near });
            }
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Parse a time span: Go's syntax (`1h2m3.5s`, `250ms`, `0`), or a bare number of seconds. Negative ones are refused:
/// nothing here can last less than nothing.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().map(Duration::from_secs);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let nanos: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || fraction.len() > 18 {
            return None;
        }
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let mut part = u128::from(whole) * u128::from(nanos);
        if !fraction.is_empty() {
            let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
            part += fraction.parse::<u128>().ok()? * u128::from(nanos) / scale;
        }
        total = total.checked_add(Duration::from_nanos(u64::try_from(part).ok()?))?;
        rest = tail;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::super::tree::documents;
    use super::*;

    fn flaws_of(text: &str, read: impl FnOnce(Item<'_>)) -> Vec<String> {
        let docs = documents(text).unwrap();
        let flaws = Flaws::default();
        read(Item::root(&docs[0], &flaws));
        flaws.into_vec().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn all_mistakes_of_a_map_are_reported_with_line_and_path() {
        let text = "nmae: x\nport: 70000\npeers:\n- asn: a\n  mode: z\n- 7\nactive: yes\n";
        let found = flaws_of(text, |root| {
            let mut fields = root.fields().unwrap();
            assert!(fields.need("name").is_none());
            assert_eq!(fields.take("port").unwrap().number("a port, 1 to 65535", 1..=65535u32), None);
            for peer in fields.take("peers").unwrap().list() {
                if let Some(mut peer) = peer.fields() {
                    assert_eq!(peer.take("asn").unwrap().parse::<u32>("an AS number"), None);
                    assert_eq!(peer.take("mode").unwrap().word(&["a", "b", "c"]), None);
                    peer.finish();
                }
            }
            assert_eq!(fields.take("active").unwrap().boolean(), None);
            fields.finish();
        });
        assert_eq!(
            found,
            [
                "line 1: name: is required",
                "line 1: nmae: unknown field; did you mean \"name\"?",
                "line 2: port: must be a port, 1 to 65535, not \"70000\"",
                "line 4: peers[0].asn: must be an AS number, not \"a\"",
                "line 5: peers[0].mode: must be a, b or c, not \"z\"",
                "line 6: peers[1]: must be a map, not a single value",
                "line 7: active: must be true or false, not \"yes\"",
            ]
        );
    }

    #[test]
    fn null_is_absent_and_quotes_are_forgiven() {
        let found = flaws_of("a:\nb: ~\nc: \"true\"\nd: '5'\n", |root| {
            let mut fields = root.fields().unwrap();
            assert!(fields.take("a").is_none());
            assert!(fields.take("b").is_none());
            assert_eq!(fields.take("c").unwrap().boolean(), Some(true));
            assert_eq!(fields.take("d").unwrap().number("a number", 0..=9u8), Some(5));
            fields.finish();
        });
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn what_is_shown_stays_on_one_line() {
        let flaw = Mistake::Value { wanted: "x", found: format!("a\nb{}", "c".repeat(100)) };
        let text = flaw.to_string();
        assert!(!text.contains('\n') && text.contains("a\\nb") && text.ends_with("…\""), "{text}");
    }

    #[test]
    fn durations_follow_go() {
        let cases = [
            ("0", Some(0)),
            ("5", Some(5000)),
            ("5s", Some(5000)),
            ("1m30s", Some(90_000)),
            ("1.5h", Some(5_400_000)),
            (".5s", Some(500)),
            ("250ms", Some(250)),
            ("1000us", Some(1)),
            ("+2s", Some(2000)),
            ("-2s", None),
            ("5 s", None),
            ("5x", None),
            ("s", None),
            (".s", None),
            ("1.2.3s", None),
            ("99999999999999999999h", None),
        ];
        for (text, millis) in cases {
            assert_eq!(duration(text), millis.map(Duration::from_millis), "{text}");
        }
    }
}
