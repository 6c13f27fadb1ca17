//! The catalogue, as far as declarations need it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// A field of a message or struct.
#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: String,
    /// Repeats so often.
    pub(crate) len: Option<u64>,
    /// Repeats as often as that field says.
    pub(crate) by: Option<String>,
    /// A text of any length.
    pub(crate) is_text: bool,
}

/// A layout, and the releases that have it, the newest last.
#[derive(Clone)]
pub(crate) struct Form {
    pub(crate) releases: Vec<String>,
    pub(crate) fields: Vec<Field>,
}

pub(crate) struct Message {
    pub(crate) name: String,
    pub(crate) module: String,
    pub(crate) kind: String,
    pub(crate) reply: Option<String>,
    pub(crate) details: Option<String>,
    /// `deprecated` or `in_progress`.
    pub(crate) status: Option<String>,
    /// One for each CRC, with that.
    pub(crate) forms: Vec<(String, Form)>,
}

pub(crate) enum TypeKind {
    Struct(Vec<Form>),
    Union { size: u64, members: Vec<Field> },
    Alias { of: String, len: Option<u64> },
    Enum { base: String, values: Vec<(String, u64)> },
}

pub(crate) struct Catalogue {
    pub(crate) newest: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) types: BTreeMap<String, TypeKind>,
}

impl Catalogue {
    pub(crate) fn parse(text: &str) -> Self {
        let root: Value = serde_json::from_str(text).expect("the catalogue is JSON");
        let releases: Vec<String> = list(&root["releases"]).iter().map(text_of).collect();
        let mut types = BTreeMap::new();
        for (name, value) in object(&root["types"]) {
            types.insert(name.clone(), type_of(value, &releases));
        }
        for (name, value) in object(&root["enums"]) {
            let mut values: Vec<_> = object(&value["values"])
                .iter()
                .map(|(name, value)| (name.clone(), value.as_u64().expect("values are numbers")))
                .collect();
            values.sort_by_key(|(_, value)| *value);
            types.insert(name.clone(), TypeKind::Enum { base: text_of(&value["base"]), values });
        }
        let messages =
            object(&root["messages"]).iter().map(|(name, value)| message(name, value, &releases)).collect();
        Self { newest: releases.last().cloned().expect("there are releases"), messages, types }
    }

    pub(crate) fn modules(&self) -> BTreeSet<&str> {
        self.messages.iter().map(|message| message.module.as_str()).collect()
    }
}

fn message(name: &str, value: &Value, releases: &[String]) -> Message {
    let optional = |key: &str| value.get(key).map(text_of);
    let mut forms: Vec<(String, Form)> = Vec::new();
    for release in releases {
        let Some(crc) = value["crc"][release].as_str() else {
            continue;
        };
        if let Some((_, form)) = forms.iter_mut().find(|(known, _)| known == crc) {
            form.releases.push(release.clone());
            continue;
        }
        let layout =
            value.get("variants").map(list).into_iter().flatten().find(|variant| has(variant, release));
        let fields = fields(&layout.unwrap_or(value)["fields"]);
        forms.push((crc.to_owned(), Form { releases: vec![release.clone()], fields }));
    }
    Message {
        name: name.to_owned(),
        module: text_of(&value["api"]),
        kind: text_of(&value["kind"]),
        reply: optional("reply"),
        details: optional("details"),
        status: optional("status"),
        forms,
    }
}

fn type_of(value: &Value, releases: &[String]) -> TypeKind {
    match value["kind"].as_str() {
        Some("alias") => TypeKind::Alias { of: text_of(&value["of"]), len: value["len"].as_u64() },
        Some("union") => TypeKind::Union {
            size: value["size"].as_u64().expect("unions have a size"),
            members: fields(&value["fields"]),
        },
        Some("struct") => TypeKind::Struct(match value.get("variants") {
            Some(variants) => list(variants)
                .iter()
                .map(|variant| Form {
                    releases: list(&variant["in"]).iter().map(text_of).collect(),
                    fields: fields(&variant["fields"]),
                })
                .collect(),
            None => vec![Form { releases: releases.to_vec(), fields: fields(&value["fields"]) }],
        }),
        other => panic!("a type of kind {other:?}"),
    }
}

fn fields(value: &Value) -> Vec<Field> {
    list(value)
        .iter()
        .map(|field| Field {
            name: text_of(&field["n"]),
            kind: text_of(&field["t"]),
            len: field["len"].as_u64(),
            by: field.get("by").map(text_of),
            is_text: field["var"] == true,
        })
        .collect()
}

fn has(variant: &Value, release: &str) -> bool {
    list(&variant["in"]).iter().any(|one| one == release)
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text")).to_owned()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is not a list"))
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("{value} is not an object"))
}
