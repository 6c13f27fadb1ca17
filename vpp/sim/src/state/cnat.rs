//! Address translation: source addresses, what is never translated, interfaces, services. No session ever comes to be.

use std::collections::{BTreeMap, BTreeSet};

use super::key::{Af, mask};

/// How many kinds of interfaces there are: included of either family, of pods, of the host.
pub(crate) const IF_TABLES: usize = 4;

/// Bytes of a translation on the wire, and of each of its backends.
pub(crate) const TRANSLATION: usize = 40;
/// See [`TRANSLATION`].
pub(crate) const BACKEND: usize = 49;

/// A prefix that is never translated.
pub(crate) type Excluded = (Af, [u8; 16], u8);

/// Everything that the plugin keeps.
#[derive(Debug, Default)]
pub(crate) struct Cnat {
    /// There is none before addresses were set, and whatever needs it kills the process.
    pub(crate) snat: Option<Snat>,
    translations: BTreeMap<u32, Vec<u8>>,
}

/// Source translation.
#[derive(Debug, Default)]
pub(crate) struct Snat {
    /// The IPv4 address that sources become; zero: none.
    pub(crate) ip4: [u8; 4],
    /// The IPv6 address that sources become; zero: none.
    pub(crate) ip6: [u8; 16],
    /// The interface that came with the IPv6 address; zero before one did.
    pub(crate) sw_if_index: u32,
    /// What decides; 2 is Kubernetes.
    pub(crate) policy: u8,
    /// Destinations that are never translated.
    pub(crate) excluded: BTreeSet<Excluded>,
    /// Interfaces by kind.
    pub(crate) interfaces: [BTreeSet<u32>; IF_TABLES],
}

impl Cnat {
    /// Sets addresses: one of zeros leaves that family as it was. All zeros without an interface forget everything that
    /// was said about source translation, except the addresses, which an entry that was freed goes on having. False where
    /// there was nothing to forget.
    pub(crate) fn set_addresses(&mut self, ip4: [u8; 4], ip6: [u8; 16], sw_if_index: u32) -> bool {
        let (has_ip4, has_ip6, has_interface) = (ip4 != [0; 4], ip6 != [0; 16], sw_if_index != u32::MAX);
        if !(has_ip4 || has_ip6 || has_interface) {
            let Some(snat) = &mut self.snat else { return false };
            *snat = Snat { ip4: snat.ip4, ip6: snat.ip6, sw_if_index: snat.sw_if_index, ..Snat::default() };
            return true;
        }
        let snat = self.snat.get_or_insert_default();
        if has_ip4 {
            snat.ip4 = ip4;
        }
        if has_ip6 || has_interface {
            snat.sw_if_index = sw_if_index;
        }
        if has_ip6 {
            snat.ip6 = ip6;
        }
        true
    }

    /// Adds a translation, or replaces the one of the same virtual address, port and protocol; its id.
    pub(crate) fn put_translation(&mut self, translation: &[u8]) -> u32 {
        let same = |other: &[u8]| {
            let key = |of: &[u8]| (of.get(..24).map(<[u8]>::to_vec), of.get(28).copied());
            key(other) == key(translation)
        };
        let id = self.translations.iter().find(|(_, other)| same(other)).map(|(id, _)| *id);
        let id = id.or_else(|| (0..).find(|id| !self.translations.contains_key(id))).unwrap_or(u32::MAX);
        self.translations.insert(id, translation.to_vec());
        id
    }

    /// Removes a translation; false where there is none.
    pub(crate) fn delete_translation(&mut self, id: u32) -> bool {
        self.translations.remove(&id).is_some()
    }

    /// All translations as they were given, with their ids.
    pub(crate) fn translations(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.translations.iter().map(|(id, bytes)| (*id, bytes.as_slice()))
    }

    /// Drops sessions, and all translations with them.
    pub(crate) fn purge(&mut self) {
        self.translations.clear();
    }
}

impl Snat {
    /// Adds or removes a prefix, host bits cleared.
    pub(crate) fn exclude(&mut self, add: bool, (af, addr, len): Excluded) {
        let key = (af, mask(addr, len), len);
        if add {
            self.excluded.insert(key);
        } else {
            self.excluded.remove(&key);
        }
    }
}
