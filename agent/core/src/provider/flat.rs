//! FLAT: the destination is routed to its next hop as it is. VPP resolves the next hop in the main table.

use super::{DesiredSet, Facts, Provider, Unserved};
use crate::desired::{ObjectKey, Path, Target};
use crate::model::Hop;

/// See the module's text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Flat;

impl Provider for Flat {
    fn name(&self) -> &'static str {
        "flat"
    }

    fn desired(&self, hop: Hop, _facts: Facts<'_>, out: &mut DesiredSet) -> Result<(), Unserved> {
        out.objects.push(ObjectKey::FibSource);
        out.paths.push(Path { to: Target::Gateway(hop.address), weight: hop.weight });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Node;

    #[test]
    fn a_flat_route_needs_nothing_but_our_mark() {
        let hop = Hop { address: "192.0.2.2".parse().unwrap(), weight: 3 };
        let mut out = DesiredSet::default();
        Flat.desired(hop, Facts { node: &Node::default() }, &mut out).unwrap();
        assert_eq!(out.objects, [ObjectKey::FibSource]);
        assert_eq!(out.paths, [Path { to: Target::Gateway(hop.address), weight: 3 }]);
        assert_eq!(out.routes, []);
    }
}
