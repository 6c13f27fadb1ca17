//! Where in an UPDATE a family's prefixes stand: IPv4 unicast in fields of its own (RFC 4271 section 4.3), every other
//! family in MP_REACH_NLRI and MP_UNREACH_NLRI (RFC 4760), and so IPv4 prefixes with an IPv6 next hop (RFC 8950).

use bgp_wire::{
    Ipv4Prefix, Ipv6Prefix, Label, NextHop, PackError, Packed, PathId, SrPolicy4, SrPolicy6, UpdateWriter,
    VpnIpv4Prefix, VpnIpv6Prefix,
};

use crate::rib::TableKey;

/// A key that can be exported.
pub(crate) trait ExportKey: TableKey {
    /// Writes announcements and says into how many messages. The label counts where the family has labels.
    ///
    /// # Errors
    /// The attributes leave no room for a prefix; nothing has been written.
    fn announce(
        writer: &mut UpdateWriter<'_>,
        attrs: &[u8],
        next_hop: NextHop,
        label: Option<Label>,
        prefixes: impl Iterator<Item = (PathId, Self)>,
    ) -> Result<u32, PackError> {
        writer.announce_labelled(attrs, next_hop, label, prefixes).map(messages)
    }

    /// Writes withdrawals and says into how many messages.
    fn withdraw(writer: &mut UpdateWriter<'_>, prefixes: impl Iterator<Item = (PathId, Self)>) -> u32 {
        messages(writer.withdraw_mp(prefixes))
    }
}

fn messages(packed: Packed) -> u32 {
    packed.messages as u32
}

impl ExportKey for Ipv4Prefix {
    fn announce(
        writer: &mut UpdateWriter<'_>,
        attrs: &[u8],
        next_hop: NextHop,
        _: Option<Label>,
        prefixes: impl Iterator<Item = (PathId, Self)>,
    ) -> Result<u32, PackError> {
        match next_hop {
            NextHop::V4(_) => writer.announce_v4(attrs, prefixes).map(messages),
            NextHop::V6 { .. } => writer.announce_mp(attrs, next_hop, prefixes).map(messages),
        }
    }

    fn withdraw(writer: &mut UpdateWriter<'_>, prefixes: impl Iterator<Item = (PathId, Self)>) -> u32 {
        messages(writer.withdraw_v4(prefixes))
    }
}

impl ExportKey for Ipv6Prefix {}
impl ExportKey for VpnIpv4Prefix {}
impl ExportKey for VpnIpv6Prefix {}
impl ExportKey for SrPolicy4 {}
impl ExportKey for SrPolicy6 {}
