//! The messages of one module.

use std::fmt::Write;

use crate::catalogue::{Catalogue, Form, Message};
use crate::choices::{GUARDED, UNSENT, UNSENT_MODULE};
use crate::prose::camel;
use crate::types::{Declared, Types, until, write_fields};

/// More arguments than this are better given by name.
const ARGUMENTS: usize = 7;

/// Declares what `source`, the module's own file, does not.
pub(crate) fn declare(catalogue: &Catalogue, types: &Types<'_>, module: &str, source: &str) -> String {
    let mut list = String::from("messages! {\n    GENERATED;\n");
    let mut methods = String::new();
    for message in catalogue.messages.iter().filter(|message| message.module == module) {
        if source.contains(&format!("\"{}\" 0x", message.name)) {
            continue;
        }
        for (crc, form) in &message.forms {
            let suffix = types.suffix(form);
            // What is gone in the newest release, and what is there in another form, is told apart by its last release;
            // what no later form replaces keeps the plain name.
            let newest_form = message.forms.last().is_some_and(|(last, _)| last == crc);
            let suffix = if newest_form { String::new() } else { suffix };
            one(&mut list, &mut methods, types, message, crc, form, &suffix);
        }
    }
    list += "}\n";
    list + &methods
}

fn one(
    list: &mut String,
    methods: &mut String,
    types: &Types<'_>,
    message: &Message,
    crc: &str,
    form: &Form,
    suffix: &str,
) {
    let name = format!("{}{suffix}", camel(&message.name));
    let is_guarded = GUARDED.contains(&message.name.as_str());
    let is_unsent = message.module == UNSENT_MODULE || UNSENT.contains(&message.name.as_str());
    let kind = kind(message, form, is_unsent);
    let head = match kind {
        "reply" | "plain_reply" | "details" | "notice" => 2,
        _ => 3,
    };
    let fields = types.fields(&message.name, form, head);
    let is_request = matches!(kind, "request" | "dump" | "stream" | "unsent" | "unsent_dump");
    let is_private = is_request && (is_guarded || is_unsent);

    let answer = match (&message.details, &message.reply) {
        (Some(details), Some(reply)) => format!(" => {} until {}", camel(details), camel(reply)),
        (Some(one), None) | (None, Some(one)) => format!(" => {}", camel(one)),
        (None, None) => String::new(),
    };
    document(list, message, form, suffix);
    let _ = writeln!(list, "    {kind} {name} \"{}\" {crc}{answer} {{", message.name);
    write_fields(list, &fields, if is_private { "" } else { "pub " });
    let _ = writeln!(list, "    }}");

    if is_private {
        readers(methods, &name, &fields);
    } else if is_request && !fields.iter().any(|field| field.is_tail) {
        constructor(methods, &name, &fields);
    }
}

fn kind(message: &Message, form: &Form, is_unsent: bool) -> &'static str {
    let has = |name: &str| form.fields.iter().any(|field| field.name == name);
    let echoes = form.fields.get(1).is_some_and(|field| field.name == "client_index");
    match message.kind.as_str() {
        "request" if is_unsent => "unsent",
        "request" => "request",
        "stream-request" if is_unsent => "unsent_dump",
        "stream-request" if message.reply.is_some() => "stream",
        "stream-request" => "dump",
        "reply" if echoes => "echo_reply",
        "reply" if has("retval") => "reply",
        "reply" => "plain_reply",
        "details" if echoes => "echo_details",
        "details" => "details",
        "event" => "notice",
        other => panic!("{} is of kind {other}", message.name),
    }
}

fn document(list: &mut String, message: &Message, form: &Form, suffix: &str) {
    let what = match message.kind.as_str() {
        "request" => "Request",
        "stream-request" => "Asks for details:",
        "reply" => "Reply",
        "details" => "Details:",
        _ => "Event",
    };
    let when = if suffix.is_empty() { String::new() } else { until(form) };
    let _ = writeln!(list, "    /// {what} `{}`{when}.", message.name);
    if message.status.as_deref() == Some("deprecated") {
        let _ = writeln!(list, "    ///\n    /// Deprecated by VPP.");
    }
}

/// Private fields can be read.
fn readers(methods: &mut String, name: &str, fields: &[Declared]) {
    let read: Vec<_> = fields.iter().filter(|field| !field.is_count).collect();
    if read.is_empty() {
        return;
    }
    let _ = writeln!(methods, "impl {name} {{");
    for field in read {
        let kind = match field.kind.split_once(" by ") {
            Some((array, _)) => array,
            None => field.kind.as_str(),
        };
        let kind = kind.strip_prefix('(').and_then(|kind| kind.strip_suffix(')')).unwrap_or(kind);
        let plain = field.name.trim_start_matches("r#");
        let _ = writeln!(
            methods,
            "    /// The field `{plain}`.\n    #[must_use]\n    pub const fn {}(&self) -> &{kind} {{\n        &self.{}\n    }}",
            field.name, field.name
        );
    }
    let _ = writeln!(methods, "}}");
}

/// A request of few public fields can be made of them.
fn constructor(methods: &mut String, name: &str, fields: &[Declared]) {
    if fields.is_empty() {
        let _ = writeln!(
            methods,
            "impl Default for {name} {{\n    fn default() -> Self {{\n        \
             Self {{ head: crate::head::RequestHead::BLANK }}\n    }}\n}}"
        );
        return;
    }
    if fields.len() > ARGUMENTS {
        return;
    }
    let mut arguments = String::new();
    let mut values = String::new();
    for Declared { name, kind, .. } in fields {
        let (argument, value) = match kind.as_str() {
            "crate::types::Bool" => ("bool".to_owned(), format!("{name}: {name}.into()")),
            "crate::types::Float" => ("f64".to_owned(), format!("{name}: {name}.into()")),
            kind => match kind.strip_prefix("zerocopy::big_endian::") {
                Some(number) => (number.to_ascii_lowercase(), format!("{name}: {name}.into()")),
                None => (kind.to_owned(), name.clone()),
            },
        };
        let _ = write!(arguments, "{name}: {argument}, ");
        let _ = write!(values, ", {value}");
    }
    let _ = writeln!(
        methods,
        "impl {name} {{\n    /// Of its fields, in their order on the wire.\n    #[must_use]\n    \
         pub fn new({arguments}) -> Self {{\n        \
         Self {{ head: crate::head::RequestHead::BLANK{values} }}\n    }}\n}}"
    );
}
