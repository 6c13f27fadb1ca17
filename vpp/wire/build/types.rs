//! The types that stand in messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::catalogue::{Catalogue, Field, Form, TypeKind};
use crate::choices::{BY_HAND, KEYS, NUMBERS, RAW};
use crate::prose::{camel, constants, field_doc, ident};

/// Where each type of the catalogue is declared.
pub(crate) struct Types<'a> {
    catalogue: &'a Catalogue,
    /// The one module that uses it; `None` for several.
    homes: BTreeMap<&'a str, Option<&'a str>>,
}

/// A field as it is declared.
pub(crate) struct Declared {
    pub(crate) name: String,
    /// Its type, or what stands for it behind `..`.
    pub(crate) kind: String,
    /// Whether it stands behind `..`.
    pub(crate) is_tail: bool,
    /// Whether it counts the tail.
    pub(crate) is_count: bool,
}

impl<'a> Types<'a> {
    pub(crate) fn of(catalogue: &'a Catalogue) -> Self {
        let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for message in &catalogue.messages {
            for (_, form) in &message.forms {
                reach(catalogue, &form.fields, &message.module, &mut users);
            }
        }
        let homes = users
            .into_iter()
            .map(|(name, users)| (name, users.first().copied().filter(|_| users.len() == 1)))
            .collect();
        Self { catalogue, homes }
    }

    /// The declarations of one module's types, or of those of several.
    pub(crate) fn declare(&self, module: Option<&str>) -> String {
        let mut out = String::new();
        for (name, kind) in &self.catalogue.types {
            if self.homes.get(name.as_str()) != Some(&module) || by_hand(name).is_some() {
                continue;
            }
            match kind {
                TypeKind::Alias { .. } => {}
                TypeKind::Enum { base, values } => declare_enum(&mut out, name, base, values),
                TypeKind::Union { size, members } => self.declare_union(&mut out, name, *size, members),
                TypeKind::Struct(forms) => {
                    for form in forms {
                        self.declare_struct(&mut out, name, form);
                    }
                }
            }
        }
        out
    }

    /// The fields of one form, the first `skip` left out.
    pub(crate) fn fields(&self, of: &str, form: &Form, skip: usize) -> Vec<Declared> {
        let release = form.releases.last().expect("a form is in some release");
        let counts: BTreeSet<_> = form.fields.iter().filter_map(|field| field.by.as_deref()).collect();
        form.fields
            .iter()
            .skip(skip)
            .map(|field| {
                let (kind, is_tail) = self.field(of, field, release);
                Declared {
                    name: ident(&field.name),
                    kind,
                    is_tail,
                    is_count: counts.contains(field.name.as_str()),
                }
            })
            .collect()
    }

    /// The suffix of what only older releases have: `2602` for what ended with 26.02.
    pub(crate) fn suffix(&self, form: &Form) -> String {
        match form.releases.last() {
            Some(last) if *last != self.catalogue.newest => last.replace('.', ""),
            _ => String::new(),
        }
    }

    fn field(&self, of: &str, field: &Field, release: &str) -> (String, bool) {
        let is = |list: &[(&str, &str)]| list.contains(&(of, field.name.as_str()));
        if let Some(count) = &field.by {
            let element = if is(KEYS) {
                "crate::types::SecretOctet".to_owned()
            } else {
                self.path(&field.kind, &field.name, release)
            };
            return (format!("[{element}] by {count}"), true);
        }
        if field.is_text {
            return ("(crate::types::VarText)".to_owned(), true);
        }
        let kind = match field.len {
            Some(len) if is(KEYS) => format!("crate::types::SecretOctets<{len}>"),
            Some(len) if is(RAW) => format!("[u8; {len}]"),
            Some(len) if field.kind == "string" => format!("crate::types::FixedString<{len}>"),
            Some(len) => format!("[{}; {len}]", self.path(&field.kind, "", release)),
            None => self.path(&field.kind, &field.name, release),
        };
        if self.is_tailed(&field.kind, release) { (format!("({kind})"), true) } else { (kind, false) }
    }

    fn is_tailed(&self, kind: &str, release: &str) -> bool {
        let Some(TypeKind::Struct(forms)) = self.catalogue.types.get(kind) else {
            return false;
        };
        let form = form_of(forms, release);
        form.fields.iter().any(|f| f.by.is_some() || f.is_text || self.is_tailed(&f.kind, release))
    }

    /// The Rust type of a type of the catalogue, in a field of that name.
    fn path(&self, kind: &str, field: &str, release: &str) -> String {
        if let Some((.., path)) = NUMBERS.iter().find(|(of, name, _)| *of == kind && *name == field) {
            return (*path).to_owned();
        }
        if let Some(path) = by_hand(kind) {
            return path.to_owned();
        }
        match kind {
            "u8" | "i8" => return kind.to_owned(),
            "bool" => return "crate::types::Bool".to_owned(),
            "f64" => return "crate::types::Float".to_owned(),
            "u16" | "u32" | "u64" | "i32" | "i64" => {
                return format!("zerocopy::big_endian::{}", kind.to_ascii_uppercase());
            }
            _ => {}
        }
        let definition = self.catalogue.types.get(kind).unwrap_or_else(|| panic!("no type {kind}"));
        let mut name = camel(kind);
        match definition {
            TypeKind::Alias { of, len: None } => return self.path(of, field, release),
            TypeKind::Alias { of, len: Some(len) } => {
                return format!("[{}; {len}]", self.path(of, "", release));
            }
            TypeKind::Struct(forms) => name += &self.suffix(form_of(forms, release)),
            TypeKind::Union { .. } | TypeKind::Enum { .. } => {}
        }
        match self.homes.get(kind).copied().flatten() {
            Some(module) => format!("crate::api::{module}::{name}"),
            None => format!("crate::types::{name}"),
        }
    }

    fn declare_struct(&self, out: &mut String, name: &str, form: &Form) {
        let suffix = self.suffix(form);
        let until = if suffix.is_empty() { String::new() } else { until(form) };
        let _ = writeln!(
            out,
            "wire_struct! {{\n    /// VPP's struct `{name}`{until}.\n    pub struct {}{suffix} {{",
            camel(name)
        );
        write_fields(out, &self.fields(name, form, 0), "pub ");
        let _ = writeln!(out, "    }}\n}}");
    }

    fn declare_union(&self, out: &mut String, name: &str, size: u64, members: &[Field]) {
        let rust = camel(name);
        let _ = writeln!(
            out,
            "/// VPP's union `{name}`: octets, of which the struct around it says what they are.\n\
             #[derive(Clone, Copy, PartialEq, Eq, Debug, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout, \
             zerocopy::Immutable, zerocopy::Unaligned)]\n\
             #[repr(transparent)]\npub struct {rust}([u8; {size}]);\n\
             impl crate::layout::Described for {rust} {{\n    \
             const SHAPE: crate::layout::Shape = crate::layout::Shape::Octets({size});\n}}\nimpl {rust} {{"
        );
        for member in members {
            let (kind, _) = self.field(name, member, &self.catalogue.newest);
            let field = &member.name;
            let _ = writeln!(
                out,
                "    /// The octets as `{field}`.\n    #[must_use]\n    pub fn {field}(&self) -> &{kind} {{\n        \
                 let (member, _) = zerocopy::FromBytes::ref_from_prefix(self.0.as_slice()).expect(\"a union holds each member\");\n        \
                 member\n    }}\n    \
                 /// `{field}`, with zeros behind it.\n    #[must_use]\n    pub fn of_{field}(member: &{kind}) -> Self {{\n        \
                 let mut octets = [0; {size}];\n        \
                 zerocopy::IntoBytes::write_to_prefix(member, &mut octets).expect(\"a union holds each member\");\n        \
                 Self(octets)\n    }}"
            );
        }
        let _ = writeln!(out, "}}");
    }
}

/// The words for what only older releases have.
pub(crate) fn until(form: &Form) -> String {
    let releases: Vec<_> = form.releases.iter().map(String::as_str).collect();
    format!(", as in {}", releases.join(", "))
}

/// Writes fields in order; a field that counts the tail cannot be written to from outside, so that it cannot lie.
pub(crate) fn write_fields(out: &mut String, fields: &[Declared], visibility: &str) {
    for field in fields {
        let Declared { name, kind, is_tail, is_count } = field;
        let doc = field_doc(name.trim_start_matches("r#"));
        let visibility = if *is_count { "" } else { visibility };
        let dots = if *is_tail { "..\n        " } else { "" };
        let comma = if *is_tail { "" } else { "," };
        let _ = writeln!(out, "        {dots}/// {doc}\n        {visibility}{name}: {kind}{comma}");
    }
}

fn declare_enum(out: &mut String, name: &str, base: &str, values: &[(String, u64)]) {
    let _ = writeln!(
        out,
        "wire_int! {{\n    /// VPP's enum `{name}`.\n    pub struct {}: {base} {{",
        camel(name)
    );
    for ((full, _), (short, value)) in values.iter().zip(constants(name, values)) {
        let _ = writeln!(out, "        /// `{full}`\n        {short} = {value},");
    }
    let _ = writeln!(out, "    }}\n}}");
}

fn by_hand(name: &str) -> Option<&'static str> {
    BY_HAND.iter().find(|(known, _)| *known == name).map(|(_, path)| *path)
}

fn form_of<'f>(forms: &'f [Form], release: &str) -> &'f Form {
    forms
        .iter()
        .find(|form| form.releases.iter().any(|one| one == release))
        .expect("a form for every release")
}

/// Notes that `module` uses the types of these fields, and those in them.
fn reach<'a>(
    catalogue: &'a Catalogue,
    fields: &'a [Field],
    module: &'a str,
    users: &mut BTreeMap<&'a str, BTreeSet<&'a str>>,
) {
    for field in fields {
        let Some((name, kind)) = catalogue.types.get_key_value(&field.kind) else {
            continue;
        };
        if !users.entry(name).or_default().insert(module) || by_hand(name).is_some() {
            continue;
        }
        match kind {
            TypeKind::Struct(forms) => {
                for form in forms {
                    reach(catalogue, &form.fields, module, users);
                }
            }
            TypeKind::Union { members, .. } => reach(catalogue, members, module, users),
            TypeKind::Alias { of, .. } => {
                if let Some((of, kind)) = catalogue.types.get_key_value(of) {
                    users.entry(of).or_default().insert(module);
                    if let TypeKind::Struct(forms) = kind {
                        for form in forms {
                            reach(catalogue, &form.fields, module, users);
                        }
                    }
                }
            }
            TypeKind::Enum { .. } => {}
        }
    }
}
