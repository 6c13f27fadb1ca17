//! Neighbours that mean ill, or are merely broken, over real sockets. Whatever they do, the process lives, other sessions
//! do not notice, and memory stays bounded.

mod load;
mod messages;
mod routes;
mod sessions;

use interop::raw::{self, Raw, nth};
use interop::speaker::{Speaker, neighbour, peer, socket};
use test_support::lab::Lab;

const ASN: u32 = 65020;
const BYSTANDER: u8 = 20;

/// A speaker with the neighbours 192.0.2.`lasts` in AS 65020, passive, and an established bystander.
fn with_bystander(lab: &Lab, lasts: impl IntoIterator<Item = u8>) -> (Speaker, Raw) {
    let lasts: Vec<u8> = lasts.into_iter().chain([BYSTANDER]).collect();
    let file = lasts.iter().fold("neighbors:\n".to_owned(), |file, last| file + &neighbour(*last, ASN, ""));
    let speaker = Speaker::start(lab, lasts, &file);
    let mut bystander = Raw::connect(peer(BYSTANDER), socket());
    bystander.establish(&raw::open(ASN, 0, peer(BYSTANDER)));
    (speaker, bystander)
}

/// The speaker lives, and the bystander has noticed nothing.
#[track_caller]
fn unharmed(speaker: &mut Speaker, bystander: &mut Raw) {
    assert!(speaker.process.ended().is_none(), "the speaker ended: {}", speaker.process.log());
    assert!(bystander.is_open(), "the bystander's session has ended");
    assert_eq!(speaker.neighbour(BYSTANDER)["established-transitions"], 1);
}

fn usual(last: u8) -> Vec<u8> {
    raw::usual(&[ASN], peer(last))
}

/// UPDATEs that announce the prefixes `from..to`, 300 in each.
fn table(attributes: &[u8], from: u32, to: u32) -> Vec<u8> {
    let mut octets = Vec::new();
    for start in (from..to).step_by(300) {
        let prefixes: Vec<_> = (start..to.min(start + 300)).map(nth).collect();
        octets.extend(raw::update(&[], attributes, &prefixes));
    }
    octets
}

/// UPDATEs that take them back.
fn taken_back(from: u32, to: u32) -> Vec<u8> {
    let mut octets = Vec::new();
    for start in (from..to).step_by(300) {
        let prefixes: Vec<_> = (start..to.min(start + 300)).map(nth).collect();
        octets.extend(raw::update(&prefixes, &[], &[]));
    }
    octets
}
