//! Keeps to the tables of what must have been told on a connection before a request is sent on it
//! ([`vpp_wire::beforehand`]): by message id, so that it costs nothing but a look per request and per reply.

use std::collections::BTreeSet;
use std::net::IpAddr;

use vpp_wire::api::messages;
use vpp_wire::beforehand::{MAKES_TABLES, NEEDS, Names, Naming, RULES, TELLS, Thing, table_made};
use vpp_wire::types::TableId;
use vpp_wire::{Context, MessageTable, MsgId};

/// What this connection has been told so far, as far as rules ask for it.
#[derive(Debug, Default)]
pub(super) struct Told {
    by_id: Vec<Part>,
    satisfied: u32,
    sources: Flags,
    interfaces: Flags,
    tables: BTreeSet<(TableId, bool)>,
    addresses: BTreeSet<IpAddr>,
    /// Tables that are being made, by the context of the request.
    making: Vec<(Context, Thing)>,
}

/// The part of a message in the rules.
#[derive(Debug, Default, Clone, Copy)]
struct Part {
    /// The rule of a request, or the rules that an answer satisfies, as a set of bits.
    rules: u32,
    /// What a request names that must have been told.
    needs: Option<Naming>,
    /// What an answer tells of.
    tells: Option<Naming>,
    makes_tables: bool,
}

impl Part {
    const fn is_none(&self) -> bool {
        self.rules == 0 && self.needs.is_none() && self.tells.is_none() && !self.makes_tables
    }
}

impl Told {
    pub(super) fn nothing(table: &MessageTable) -> Self {
        let mut told = Self::default();
        for message in messages() {
            let Some(id) = table.id(&message.name) else {
                continue;
            };
            let name = message.name.name();
            let thing =
                |names: &[Names]| names.iter().find(|names| names.message == name).map(|names| names.thing);
            let mut part = Part {
                rules: 0,
                needs: thing(NEEDS),
                tells: thing(TELLS),
                makes_tables: name == MAKES_TABLES,
            };
            for (at, rule) in RULES.iter().enumerate() {
                if rule.request == name || rule.answers.contains(&name) {
                    part.rules |= 1 << at;
                }
            }
            if !part.is_none() {
                let at = usize::from(id.value());
                if told.by_id.len() <= at {
                    told.by_id.resize(at + 1, Part::default());
                }
                told.by_id[at] = part;
            }
        }
        told
    }

    /// Whether a request may be sent.
    pub(super) fn allows(&self, request: MsgId, payload: &[u8]) -> bool {
        let Some(part) = self.part(request) else {
            return true;
        };
        part.rules & !self.satisfied == 0
            && part.needs.and_then(|thing| thing(payload)).is_none_or(|thing| self.knows(thing))
    }

    /// A request is sent.
    pub(super) fn ask(&mut self, request: MsgId, context: Context, payload: &[u8]) {
        if !self.part(request).is_some_and(|part| part.makes_tables) {
            return;
        }
        match table_made(payload) {
            Some((table, true)) => self.making.push((context, table)),
            // What comes behind it must do without.
            Some((Thing::Table { id, is_ip6 }, false)) => {
                self.tables.remove(&(id, is_ip6));
            }
            Some(_) | None => {}
        }
    }

    /// One of a dump's details has come.
    pub(super) fn list(&mut self, details: MsgId, payload: &[u8]) {
        if let Some(thing) = self.part(details).and_then(|part| part.tells).and_then(|tells| tells(payload)) {
            self.learn(thing);
        }
    }

    /// All details of a dump have come.
    pub(super) fn listed(&mut self, details: MsgId) {
        self.satisfied |= self.part(details).map_or(0, |part| part.rules);
    }

    /// A reply has come.
    pub(super) fn hear(&mut self, reply: MsgId, context: Context, good: bool, payload: &[u8]) {
        if good {
            self.listed(reply);
            self.list(reply, payload);
        }
        if !self.making.is_empty()
            && let Some(at) = self.making.iter().position(|(making, _)| *making == context)
        {
            let (_, table) = self.making.swap_remove(at);
            if good {
                self.learn(table);
            }
        }
    }

    fn learn(&mut self, thing: Thing) {
        match thing {
            Thing::Table { id, is_ip6 } => drop(self.tables.insert((id, is_ip6))),
            Thing::Source(id) => self.sources.set(u32::from(id.value())),
            Thing::Interface(index) => self.interfaces.set(index.value()),
            Thing::Address(address) => drop(self.addresses.insert(address)),
        }
    }

    fn knows(&self, thing: Thing) -> bool {
        match thing {
            Thing::Table { id, is_ip6 } => id == TableId::DEFAULT || self.tables.contains(&(id, is_ip6)),
            // 0 is VPP's own source of whatever comes over its API.
            Thing::Source(id) => id.value() == 0 || self.sources.has(u32::from(id.value())),
            Thing::Interface(index) => self.interfaces.has(index.value()),
            Thing::Address(address) => self.addresses.contains(&address),
        }
    }

    fn part(&self, id: MsgId) -> Option<&Part> {
        self.by_id.get(usize::from(id.value()))
    }
}

/// A set of small numbers.
#[derive(Debug, Default)]
struct Flags(Vec<u64>);

/// VPP numbers from 0 upwards, and uses numbers again: one above this is a wrong one.
const MOST: u32 = 1 << 24;

impl Flags {
    fn set(&mut self, number: u32) {
        if number >= MOST {
            return;
        }
        let word = number as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    fn has(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_bit_for_each_rule() {
        assert!(RULES.len() <= 32);
    }

    #[test]
    fn numbers_are_kept_and_impossible_ones_are_not() {
        let mut flags = Flags::default();
        for number in [0, 63, 64, MOST - 1, MOST, u32::MAX] {
            assert!(!flags.has(number));
            flags.set(number);
            assert_eq!(flags.has(number), number < MOST);
        }
        assert!(!flags.has(1));
    }
}
