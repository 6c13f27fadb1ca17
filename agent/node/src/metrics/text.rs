//! Prometheus' text format, version 0.0.4. Names of metrics are the caller's business; values of labels may be anything.

use std::collections::BTreeMap;
use std::fmt::Write;

/// What the format is called.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics by name, each with its samples in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Exposition(BTreeMap<String, Family>);

#[derive(Debug)]
struct Family {
    help: String,
    kind: &'static str,
    samples: String,
}

impl Exposition {
    /// A number that goes up and down.
    pub(super) fn gauge(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: u64) {
        self.sample(name, "gauge", help, labels, value);
    }

    /// A number that only grows, until its owner starts anew.
    pub(super) fn counter(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: u64) {
        self.sample(name, "counter", help, labels, value);
    }

    fn sample(&mut self, name: &str, kind: &'static str, help: &str, labels: &[(&str, &str)], value: u64) {
        let family = self.0.entry(name.to_owned()).or_insert_with(|| Family {
            help: escaped(help, false),
            kind,
            samples: String::new(),
        });
        let out = &mut family.samples;
        out.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            out.push(if at == 0 { '{' } else { ',' });
            // Writing to a text never fails.
            let _ = write!(out, "{label}=\"{}\"", escaped(text, true));
        }
        if !labels.is_empty() {
            out.push('}');
        }
        let _ = writeln!(out, " {value}");
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        let mut text = String::new();
        for (name, Family { help, kind, samples }) in self.0 {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}");
        }
        text
    }
}

/// A text as it may stand behind HELP, or between quotes.
fn escaped(text: &str, quoted: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quoted => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out
}
