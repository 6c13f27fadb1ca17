//! Every golden message means what its vector says.
#![allow(clippy::unwrap_used)]

mod vectors;

use vectors::{describe, load, session};

fn check(file: &str) {
    let mut wrong = Vec::new();
    for vector in load(file) {
        let meaning = describe(&vector.octets, &session(&vector.session));
        if meaning != vector.meaning {
            wrong.push(format!("[{}]\n< {}", vector.name, meaning.join("\n< ")));
        }
    }
    assert!(wrong.is_empty(), "{file}: these mean something else:\n{}", wrong.join("\n"));
}

#[test]
fn field_faults() {
    check("field-faults.txt");
}

#[test]
fn session_messages() {
    check("session.txt");
}

#[test]
fn vpn() {
    check("vpn.txt");
}

#[test]
fn carried() {
    check("carried.txt");
}

#[test]
fn sr_policies() {
    check("sr-policy.txt");
}
