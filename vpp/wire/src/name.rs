//! Message names and the table of ids.
//!
//! VPP numbers its messages anew in every process, by the plugins it has loaded. What stays is the name with the
//! CRC of its layout, `ip_table_add_del_0ffdaec0`; at connect VPP tells which of them it knows under which id. A
//! name that is not in the table must not be sent in another's layout: the feature is off on that VPP.

use crate::api::memclnt::MessageTableEntry;
use crate::head::MsgId;

/// A message's name and the CRC of its layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MsgName {
    name: &'static str,
    crc: u32,
    /// Of the text as it stands in VPP's table, so that a lookup need not build the text.
    hash: u64,
}

impl MsgName {
    /// `MsgName::new("control_ping", 0x51077d14)`.
    #[must_use]
    pub const fn new(name: &'static str, crc: u32) -> Self {
        let mut hash = fnv(FNV_START, name.as_bytes());
        hash = fnv(hash, b"_");
        hash = fnv(hash, &hex(crc));
        Self { name, crc, hash }
    }

    /// VPP's name of the message.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The CRC of its layout.
    #[must_use]
    pub const fn crc(&self) -> u32 {
        self.crc
    }

    fn is(&self, text: &[u8]) -> bool {
        let (name, tail) = text.split_at(text.len().min(self.name.len()));
        name == self.name.as_bytes() && tail.split_first() == Some((&b'_', hex(self.crc).as_slice()))
    }
}

impl std::fmt::Display for MsgName {
    /// As in VPP's table: name, underscore, eight hexadecimal digits.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}_{:08x}", self.name, self.crc)
    }
}

/// Which messages the connected VPP knows, and their ids.
#[derive(Debug, Clone, Default)]
pub struct MessageTable {
    /// Open addressing by [`MsgName`]'s hash; a power of two, at most half full. `u32::MAX` is free.
    slots: Vec<u32>,
    entries: Vec<(u64, MessageTableEntry)>,
}

impl MessageTable {
    /// From the entries of `sockclnt_create_reply`. Of a name that comes twice the first counts.
    #[must_use]
    pub fn new(entries: &[MessageTableEntry]) -> Self {
        let size = (entries.len() * 2).next_power_of_two();
        let mut table = Self { slots: vec![u32::MAX; size], entries: Vec::with_capacity(entries.len()) };
        for entry in entries {
            let hash = fnv(FNV_START, entry.name.text());
            let mut at = table.home(hash);
            while table.slots[at] != u32::MAX {
                at = (at + 1) % size;
            }
            table.slots[at] = u32::try_from(table.entries.len()).expect("VPP counts its messages in 16 bits");
            table.entries.push((hash, *entry));
        }
        table
    }

    /// The id of a message; `None` when this VPP does not know the name in that layout.
    #[must_use]
    pub fn id(&self, name: &MsgName) -> Option<MsgId> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.home(name.hash);
        while let Some((hash, entry)) = self.entries.get(self.slots[at] as usize) {
            if *hash == name.hash && name.is(entry.name.text()) {
                return Some(entry.index);
            }
            at = (at + 1) % self.slots.len();
        }
        None
    }

    /// All entries, in VPP's order.
    pub fn entries(&self) -> impl Iterator<Item = &MessageTableEntry> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// How many messages this VPP knows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn home(&self, hash: u64) -> usize {
        (hash % self.slots.len() as u64) as usize
    }
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

const fn fnv(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash
}

const fn hex(crc: u32) -> [u8; 8] {
    let mut digits = [0; 8];
    let mut i = 0;
    while i < 8 {
        digits[i] = b"0123456789abcdef"[(crc >> (28 - 4 * i) & 15) as usize];
        i += 1;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::FixedString;

    fn table(names: &[&str]) -> MessageTable {
        let entries: Vec<_> = (1..)
            .zip(names)
            .map(|(id, name)| MessageTableEntry {
                index: MsgId::new(id),
                name: FixedString::new(name).expect("short enough"),
            })
            .collect();
        MessageTable::new(&entries)
    }

    #[test]
    fn a_name_is_known_only_with_its_own_crc() {
        let table = table(&["ip_table_dump_51077d14", "ip_table_add_del_0ffdaec0", "ip_table_00000000"]);
        assert_eq!(table.id(&MsgName::new("ip_table_add_del", 0x0ffd_aec0)), Some(MsgId::new(2)));
        assert_eq!(table.id(&MsgName::new("ip_table_add_del", 0x0ffd_aec1)), None);
        assert_eq!(table.id(&MsgName::new("ip_table_add", 0x0ffd_aec0)), None);
        assert_eq!(table.id(&MsgName::new("ip_table", 0)), Some(MsgId::new(3)));
        assert_eq!(MessageTable::new(&[]).id(&MsgName::new("ip_table", 0)), None);
        assert_eq!(MessageTable::default().id(&MsgName::new("ip_table", 0)), None);
    }

    #[test]
    fn the_text_form_is_the_tables() {
        let name = MsgName::new("ip_table_add_del", 0x0ffd_aec0);
        assert_eq!(name.to_string(), "ip_table_add_del_0ffdaec0");
        assert!(name.is(b"ip_table_add_del_0ffdaec0"));
        assert!(!name.is(b"ip_table_add_del_0ffdaec"));
        assert!(!name.is(b"ip_table_add_del_0ffdaec01"));
        assert!(!name.is(b"ip_table"));
    }
}
