//! One path of a route, as a server must read it: with whatever a client put there.
//!
//! `vpp_wire::types::FibPath` is the same 167 bytes for clients, who can only build the paths that make sense.

use zerocopy::big_endian::U32;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::key::{Af, Key};

/// No interface.
pub(crate) const NO_INTERFACE: u32 = u32::MAX;

/// Send it on.
pub(crate) const NORMAL: u32 = 0;
/// VPP itself is the destination.
pub(crate) const LOCAL: u32 = 1;
/// Drop it.
pub(crate) const DROP: u32 = 2;
/// Through an encapsulation object.
pub(crate) const UDP_ENCAP: u32 = 3;
/// Drop it with ICMP unreachable.
pub(crate) const ICMP_UNREACH: u32 = 5;
/// Drop it with ICMP prohibited.
pub(crate) const ICMP_PROHIBIT: u32 = 6;
/// Look its source up.
pub(crate) const SOURCE_LOOKUP: u32 = 7;
/// Through a classifier table.
pub(crate) const CLASSIFY: u32 = 10;

/// The highest next-hop protocol VPP knows.
pub(crate) const LAST_PROTO: u32 = 4;

const IP4: u32 = 0;
const IP6: u32 = 1;

/// A label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Label {
    /// Uniform or pipe mode; VPP does not list it.
    pub(crate) is_uniform: u8,
    /// The label.
    pub(crate) label: U32,
    /// Its time to live.
    pub(crate) ttl: u8,
    /// Its traffic class.
    pub(crate) exp: u8,
}

/// A path on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Path {
    /// The interface, or [`NO_INTERFACE`].
    pub(crate) sw_if_index: U32,
    /// Where a path without interface looks up.
    pub(crate) table_id: U32,
    /// Reverse path forwarding; 0 and all ones mean none.
    pub(crate) rpf_id: U32,
    /// Share of the traffic.
    pub(crate) weight: u8,
    /// Lower is used first.
    pub(crate) preference: u8,
    /// What it does.
    pub(crate) kind: U32,
    /// How it resolves.
    pub(crate) flags: U32,
    /// Protocol of the next hop.
    pub(crate) proto: U32,
    /// The next hop; IPv4 in the first 4 bytes.
    pub(crate) address: [u8; 16],
    /// The next hop of MPLS.
    pub(crate) via_label: U32,
    /// The object of encapsulations.
    pub(crate) obj_id: U32,
    /// The table of classifiers.
    pub(crate) classify_table_index: U32,
    /// How many labels.
    pub(crate) n_labels: u8,
    /// The labels.
    pub(crate) labels: [Label; 16],
}

const _: () = assert!(size_of::<Path>() == size_of::<vpp_wire::types::FibPath>());

/// What VPP makes of a path, in the order in which it sorts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// To a neighbour on an interface.
    Neighbour,
    /// Out of an interface.
    Attached,
    /// To where an address leads.
    Recursive,
    /// Nowhere.
    Special,
    /// Look up in another table.
    Lookup,
    /// To VPP itself.
    Receive,
}

/// What VPP makes of a path.
pub(crate) fn shape(path: &Path) -> Shape {
    let no_hop = path.address == [0; 16];
    match (path.kind.get(), path.sw_if_index.get() == NO_INTERFACE) {
        (LOCAL, _) => Shape::Receive,
        (NORMAL | SOURCE_LOOKUP, false) if no_hop => Shape::Attached,
        (NORMAL | SOURCE_LOOKUP, false) => Shape::Neighbour,
        (NORMAL | SOURCE_LOOKUP, true) if no_hop => Shape::Lookup,
        (NORMAL | SOURCE_LOOKUP, true) => Shape::Recursive,
        _ => Shape::Special,
    }
}

/// Whether two paths are the same but for weight, preference and labels.
pub(crate) fn same(a: &Path, b: &Path) -> bool {
    identity(a) == identity(b)
}

type Identity = (Shape, u32, [u8; 16], u32, u32, u32);

fn identity(path: &Path) -> Identity {
    let shape = shape(path);
    let table = if path.sw_if_index.get() == NO_INTERFACE { path.table_id.get() } else { 0 };
    (shape, path.proto.get(), path.address, path.sw_if_index.get(), table, path.kind.get())
}

/// The form in which VPP keeps paths: sorted, no weight 0, nothing where nothing is meant.
pub(crate) fn canonical(paths: &mut [Path]) {
    for path in paths.iter_mut() {
        path.weight = path.weight.max(1);
        if path.rpf_id.get() == u32::MAX {
            path.rpf_id = U32::ZERO;
        }
        for label in path.labels.iter_mut().skip(usize::from(path.n_labels)) {
            *label = Label { is_uniform: 0, label: U32::ZERO, ttl: 0, exp: 0 };
        }
    }
    if paths.len() > 1 {
        paths.sort_by_key(|path| (path.preference, identity(path)));
    }
}

/// The tables that paths look up in, with the next hop where there is one.
pub(crate) fn looked_up(paths: &[Path]) -> impl Iterator<Item = (Af, u32, Option<Key>)> {
    paths.iter().filter_map(|path| {
        let af = match path.proto.get() {
            IP4 => Af::Ip4,
            IP6 => Af::Ip6,
            _ => return None,
        };
        match shape(path) {
            Shape::Recursive => Some((af, path.table_id.get(), Some(Key::host(af, path.address)))),
            Shape::Lookup => Some((af, path.table_id.get(), None)),
            Shape::Neighbour | Shape::Attached | Shape::Special | Shape::Receive => None,
        }
    })
}

fn proto(af: Af) -> U32 {
    U32::new(match af {
        Af::Ip4 => IP4,
        Af::Ip6 => IP6,
    })
}

fn new(af: Af, kind: u32, sw_if_index: u32, address: [u8; 16]) -> Path {
    Path {
        sw_if_index: U32::new(sw_if_index),
        weight: 1,
        kind: U32::new(kind),
        proto: proto(af),
        address,
        ..Path::new_zeroed()
    }
}

/// Out of an interface.
pub(crate) fn attached(af: Af, sw_if_index: u32) -> Path {
    new(af, NORMAL, sw_if_index, [0; 16])
}

/// To a neighbour on an interface.
pub(crate) fn neighbour(af: Af, sw_if_index: u32, address: [u8; 16]) -> Path {
    new(af, NORMAL, sw_if_index, address)
}

/// Nowhere.
pub(crate) fn drop(af: Af) -> Path {
    new(af, DROP, NO_INTERFACE, [0; 16])
}

/// To VPP itself, for an address of its own.
pub(crate) fn local(af: Af, sw_if_index: u32, address: [u8; 16]) -> Path {
    new(af, LOCAL, sw_if_index, address)
}

/// Looked up again; how VPP lists the route for link-local addresses.
pub(crate) fn lookup(af: Af) -> Path {
    new(af, NORMAL, NO_INTERFACE, [0; 16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_weight_do_not_make_another_list() {
        let (a, b) = (neighbour(Af::Ip4, 1, [1; 16]), neighbour(Af::Ip4, 1, [2; 16]));
        let mut one = [a, Path { weight: 0, ..b }];
        let mut two = [b, a];
        canonical(&mut one);
        canonical(&mut two);
        assert_eq!(one, two);
        assert!(same(&a, &Path { weight: 7, preference: 1, ..a }) && !same(&a, &b));
    }

    #[test]
    fn a_path_is_read_as_vpp_reads_it() {
        assert_eq!(shape(&attached(Af::Ip6, 3)), Shape::Attached);
        assert_eq!(shape(&lookup(Af::Ip6)), Shape::Lookup);
        assert_eq!(shape(&drop(Af::Ip4)), Shape::Special);
        let recursive = neighbour(Af::Ip4, NO_INTERFACE, [9; 16]);
        assert_eq!(shape(&recursive), Shape::Recursive);
        assert_eq!(
            looked_up(&[recursive]).collect::<Vec<_>>(),
            [(Af::Ip4, 0, Some(Key::host(Af::Ip4, [9; 16])))]
        );
    }
}
