//! The families of a speaker, each a table of its own type: whoever works on one names the family and writes the work
//! once, and the compiler makes it for each type of key. Nothing is looked up or called through a pointer per prefix.

use bgp_wire::{Family, Ipv4Prefix, Ipv6Prefix, SrPolicy4, SrPolicy6, VpnIpv4Prefix, VpnIpv6Prefix};

use super::family::FamilyRib;
use crate::rib::DecisionSettings;

/// One [`FamilyRib`] for each family.
pub(super) struct Ribs {
    pub(super) v4: FamilyRib<Ipv4Prefix>,
    pub(super) v6: FamilyRib<Ipv6Prefix>,
    pub(super) vpn4: FamilyRib<VpnIpv4Prefix>,
    pub(super) vpn6: FamilyRib<VpnIpv6Prefix>,
    pub(super) sr4: FamilyRib<SrPolicy4>,
    pub(super) sr6: FamilyRib<SrPolicy6>,
}

/// Does the same for the table of each family: `for_rib!(ribs, family, rib => …)`, with `rib` borrowed to be changed, or
/// `for_rib!(&ribs, family, rib => …)` to be read.
macro_rules! for_rib {
    (& $ribs:expr, $family:expr, $rib:ident => $body:expr) => {
        $crate::speaker::ribs::for_rib!(@match [&] $ribs, $family, $rib => $body)
    };
    ($ribs:expr, $family:expr, $rib:ident => $body:expr) => {
        $crate::speaker::ribs::for_rib!(@match [&mut] $ribs, $family, $rib => $body)
    };
    (@match [$($borrow:tt)+] $ribs:expr, $family:expr, $rib:ident => $body:expr) => {
        match $family {
            bgp_wire::Family::Ipv4Unicast => {
                let $rib = $($borrow)+ $ribs.v4;
                $body
            }
            bgp_wire::Family::Ipv6Unicast => {
                let $rib = $($borrow)+ $ribs.v6;
                $body
            }
            bgp_wire::Family::Ipv4Vpn => {
                let $rib = $($borrow)+ $ribs.vpn4;
                $body
            }
            bgp_wire::Family::Ipv6Vpn => {
                let $rib = $($borrow)+ $ribs.vpn6;
                $body
            }
            bgp_wire::Family::Ipv4SrPolicy => {
                let $rib = $($borrow)+ $ribs.sr4;
                $body
            }
            bgp_wire::Family::Ipv6SrPolicy => {
                let $rib = $($borrow)+ $ribs.sr6;
                $body
            }
        }
    };
}
pub(super) use for_rib;

impl Ribs {
    /// Empty tables.
    pub(super) fn new(seed: u64, decision: DecisionSettings) -> Self {
        let mut ribs = Self {
            v4: FamilyRib::new(seed ^ 0x7634),
            v6: FamilyRib::new(seed ^ 0x7636),
            vpn4: FamilyRib::new(seed ^ 0x7670_6e34),
            vpn6: FamilyRib::new(seed ^ 0x7670_6e36),
            sr4: FamilyRib::new(seed ^ 0x0073_7234),
            sr6: FamilyRib::new(seed ^ 0x0073_7236),
        };
        for family in Family::ALL {
            for_rib!(ribs, family, rib => rib.table.set_decision(decision));
        }
        ribs
    }

    /// Whether one of them has work that does not need the neighbours.
    pub(super) fn has_work(&self) -> bool {
        Family::ALL.into_iter().any(|family| for_rib!(&self, family, rib => rib.has_work()))
    }

    /// Whether no table is being reviewed.
    pub(super) fn are_reviewed(&self) -> bool {
        Family::ALL.into_iter().all(|family| for_rib!(&self, family, rib => rib.review.is_done()))
    }
}
