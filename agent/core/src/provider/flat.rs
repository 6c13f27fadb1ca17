//! FLAT: the destination is routed to its next hop as it is. VPP resolves the next hop in the main table.

use super::{Carriage, DesiredSet, Facts, Provider, Unserved};
use crate::desired::{ObjectKey, Path, Target};
use crate::model::Hop;

/// See the module's text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Flat;

impl Provider for Flat {
    fn name(&self) -> &'static str {
        "flat"
    }

    fn desired(&self, hop: Hop, _: Carriage, _: &Facts, out: &mut DesiredSet) -> Result<(), Unserved> {
        out.want([ObjectKey::FibSource]);
        out.paths.insert(Path { to: Target::Gateway(hop.address), weight: hop.weight });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Encryption;
    use crate::model::NodeName;

    #[test]
    fn a_flat_route_needs_nothing_but_our_mark() {
        let hop = Hop { address: "192.0.2.2".parse().unwrap(), weight: 3 };
        let mut out = DesiredSet::default();
        let facts = Facts::new(NodeName::from("a"), Encryption::default());
        Flat.desired(hop, Carriage::Plain, &facts, &mut out).unwrap();
        let mut wanted = DesiredSet::default();
        wanted.want([ObjectKey::FibSource]);
        wanted.paths.insert(Path { to: Target::Gateway(hop.address), weight: 3 });
        assert_eq!(out, wanted);
    }
}
