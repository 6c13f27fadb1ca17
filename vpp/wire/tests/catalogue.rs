//! Holds every struct against the catalogue of four VPP releases: names, kinds, CRCs, field by field.

use std::collections::BTreeSet;

use serde_json::Value;
use vpp_wire::Kind;
use vpp_wire::api;
use vpp_wire::layout::{Field, Layout, Shape};
use vpp_wire::message::Descriptor;
use vpp_wire::retval::VppError;

/// The definitions, and the release whose forms are compared where several are known.
struct Catalogue(Value, String);

/// What a field is, with aliases followed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Base<'a> {
    Primitive(&'a str),
    Text,
    Enum(&'a str),
    Struct(&'a str),
    Union(usize),
    Array(&'a str, usize),
}

impl Catalogue {
    fn load() -> Self {
        let text = include_str!("../../catalogue/messages.json");
        Self(serde_json::from_str(text).expect("the catalogue is JSON"), "26.06".to_owned())
    }

    /// Of a message or type with variants that of the release; otherwise itself.
    fn form<'a>(&self, entry: &'a Value) -> &'a Value {
        let Some(variants) = entry["variants"].as_array() else {
            return entry;
        };
        let in_release = |variant: &&Value| {
            variant["in"].as_array().is_some_and(|list| list.iter().any(|one| *one == self.1.as_str()))
        };
        variants.iter().find(in_release).expect("a variant for every release")
    }

    fn base<'a>(&'a self, name: &'a str) -> Base<'a> {
        if name == "string" {
            return Base::Text;
        }
        if self.0["primitives"].get(name).is_some() {
            return Base::Primitive(name);
        }
        if self.0["enums"].get(name).is_some() {
            return Base::Enum(name);
        }
        let kind = &self.0["types"][name];
        match kind["kind"].as_str() {
            Some("alias") => {
                let of = kind["of"].as_str().expect("an alias is of something");
                kind["len"].as_u64().map_or_else(|| self.base(of), |len| Base::Array(of, len as usize))
            }
            Some("union") => Base::Union(kind["size"].as_u64().expect("unions have a size") as usize),
            Some("struct") => Base::Struct(name),
            other => panic!("{name} is of kind {other:?}"),
        }
    }

    fn primitive_size(&self, name: &str) -> usize {
        self.0["primitives"][name].as_u64().expect("primitives have a size") as usize
    }

    fn compare_shape(&self, shape: &Shape, kind: &str, place: &str) {
        match (shape, self.base(kind)) {
            (Shape::Bool, Base::Primitive("bool")) | (Shape::Float, Base::Primitive("f64")) => {}
            (Shape::Unsigned(width), Base::Primitive(name)) if name.starts_with('u') => {
                assert_eq!(*width, self.primitive_size(name), "{place}");
            }
            (Shape::Signed(width), Base::Primitive(name)) if name.starts_with('i') => {
                assert_eq!(*width, self.primitive_size(name), "{place}");
            }
            (Shape::Unsigned(width), Base::Enum(name)) => self.compare_enum(*width, &[], name, place),
            (Shape::Named { width, values }, Base::Enum(name)) => {
                self.compare_enum(*width, values, name, place);
            }
            (Shape::Struct(layout), Base::Struct(name)) => {
                let form = self.form(&self.0["types"][name]);
                self.compare_layout(layout, &form["fields"], place);
                assert_eq!(Some(layout.fixed as u64), form["size"].as_u64(), "{place}");
            }
            (Shape::Octets(bytes), Base::Union(size)) => assert_eq!(*bytes, size, "{place}"),
            (Shape::Octets(bytes), Base::Array("u8", len)) => assert_eq!(*bytes, len, "{place}"),
            (Shape::Array(element, n), Base::Array(of, len)) => {
                assert_eq!(*n, len, "{place}");
                self.compare_shape(element, of, place);
            }
            (shape, base) => panic!("{place}: {shape:?} for {base:?}"),
        }
    }

    fn compare_enum(&self, width: usize, ours: &[(&str, u32)], name: &str, place: &str) {
        let definition = &self.0["enums"][name];
        assert_eq!(width, self.primitive_size(definition["base"].as_str().expect("a base")), "{place}");
        for (value_name, value) in ours {
            let found = definition["values"].as_object().expect("values").iter().find(|(_, v)| **v == *value);
            let (theirs, _) =
                found.unwrap_or_else(|| panic!("{place}: {value_name} = {value} is not in {name}"));
            assert!(theirs.ends_with(value_name), "{place}: {value} is {theirs}, not {value_name}");
        }
    }

    fn compare_field(&self, field: &Field, shape: &Shape, theirs: &Value, place: &str) {
        assert_eq!(field.name.trim_start_matches("r#"), theirs["n"], "{place}");
        assert_eq!(Some(field.at as u64), theirs["at"].as_u64(), "{place}");
        let kind = theirs["t"].as_str().expect("fields have a type");
        let len = theirs["len"].as_u64().map(|len| len as usize);
        match (shape, self.base(kind), len) {
            (Shape::Text(width), Base::Text, Some(len)) => assert_eq!(*width, len, "{place}"),
            (Shape::VarText, Base::Text, None) => assert_eq!(theirs["var"], true, "{place}"),
            // Declared as text, and holds raw bytes.
            (Shape::Array(Shape::Unsigned(1), n), Base::Text, Some(len)) => assert_eq!(*n, len, "{place}"),
            (Shape::Array(element, n), _, Some(len)) => {
                assert_eq!(*n, len, "{place}");
                self.compare_shape(element, kind, place);
            }
            (shape, _, None) => self.compare_shape(shape, kind, place),
            (shape, base, len) => panic!("{place}: {shape:?} for {base:?} x {len:?}"),
        }
    }

    fn compare_layout(&self, layout: &Layout, fields: &Value, place: &str) {
        let mut theirs = fields.as_array().expect("fields are a list").iter();
        for field in flat(layout) {
            let field_of_theirs = theirs.next().unwrap_or_else(|| panic!("{place}: {} too much", field.name));
            self.compare_field(&field, &field.shape, field_of_theirs, &format!("{place}.{}", field.name));
        }
        if let Some(tail) = &layout.tail {
            let place = format!("{place}.{}", tail.name);
            let last = theirs.next().unwrap_or_else(|| panic!("{place} too much"));
            assert_eq!(tail.name, last["n"], "{place}");
            assert_eq!(tail.count, last["by"], "{place}");
            assert_eq!(Some(layout.fixed as u64), last["at"].as_u64(), "{place}");
            self.compare_shape(&tail.element, last["t"].as_str().expect("a type"), &place);
        }
        assert_eq!(theirs.next(), None, "{place}: a field is missing");
    }
}

/// The fields with the head's in place of the head.
fn flat(layout: &Layout) -> Vec<Field> {
    let mut fields = Vec::new();
    for field in layout.fields {
        if let (Shape::Struct(head), "head") = (field.shape, field.name) {
            fields.extend_from_slice(head.fields);
        } else {
            fields.push(*field);
        }
    }
    fields
}

/// The newest release that has a message under this CRC.
fn release_of(entry: &Value, message: &Descriptor) -> String {
    let crc = format!("{:#010x}", message.name.crc());
    let known = entry["crc"].as_object().expect("CRCs by release");
    let newest = known.iter().filter(|(_, known)| **known == crc.as_str()).map(|(release, _)| release).max();
    newest.unwrap_or_else(|| panic!("{}: no release has CRC {crc}", message.name)).clone()
}

#[test]
fn every_message_is_laid_out_as_in_the_catalogue() {
    let mut catalogue = Catalogue::load();
    let mut seen = 0;
    for message in api::messages() {
        let name = message.name.name();
        assert!(catalogue.0["messages"][name].is_object(), "{} is not in the catalogue", message.name);
        catalogue.1 = release_of(&catalogue.0["messages"][name], message);
        let entry = &catalogue.0["messages"][name];
        let form = catalogue.form(entry);
        let fields = &form["fields"];
        catalogue.compare_layout(message.layout, fields, name);
        assert_eq!(Some(message.layout.fixed as u64), form["min_size"].as_u64(), "{}: size", message.name);
        let kind = match message.kind {
            Kind::Request => "request",
            Kind::Dump | Kind::Stream => "stream-request",
            Kind::Reply => "reply",
            Kind::Details => "details",
            Kind::Notice => "event",
        };
        assert_eq!(kind, entry["kind"], "{}", message.name);
        let answers = [&entry["details"], &entry["reply"]];
        let mut answers = answers.into_iter().filter_map(Value::as_str);
        assert_eq!(message.answer.map(|name| name.name()), answers.next(), "{}", message.name);
        assert_eq!(message.end.map(|name| name.name()), answers.next(), "{}", message.name);
        assert_eq!(message.kind == Kind::Stream, message.end.is_some(), "{}", message.name);
        let context =
            fields.as_array().and_then(|fields| fields.iter().find(|field| field["n"] == "context"));
        assert_eq!(
            message.context_at.map(|at| at as u64),
            context.and_then(|c| c["at"].as_u64()),
            "{}",
            message.name
        );
        seen += 1;
    }
    assert!(seen >= 464, "only {seen} messages were compared");
}

/// Whatever release is connected, each message it has is known in just the form it has there.
#[test]
fn every_message_of_every_release_is_known() {
    let catalogue = Catalogue::load();
    let releases = catalogue.0["releases"].as_array().expect("releases");
    assert_eq!(releases.len(), 4);
    let ours: BTreeSet<String> = api::messages().map(|message| message.name.to_string()).collect();
    let mut theirs = BTreeSet::new();
    for (name, entry) in catalogue.0["messages"].as_object().expect("messages") {
        for release in releases {
            if let Some(crc) = entry["crc"][release.as_str().expect("a name")].as_str() {
                theirs.insert(format!("{name}_{}", crc.trim_start_matches("0x")));
            }
        }
    }
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), api::messages().count(), "a message is declared twice");
}

#[test]
fn return_values_have_the_catalogues_names() {
    let catalogue = Catalogue::load();
    let table = catalogue.0["retvals"].as_object().expect("return values");
    for (name, code) in table {
        let code = i32::try_from(code.as_i64().expect("a number")).expect("32 bits");
        assert_eq!(VppError::new(code).and_then(VppError::name), Some(name.as_str()));
    }
    let ours = (-2000..0).filter(|code| VppError::new(*code).and_then(VppError::name).is_some()).count();
    assert_eq!(ours, table.len());
}
