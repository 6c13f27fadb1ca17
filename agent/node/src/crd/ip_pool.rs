//! `IPPool`: a range of pod addresses and how nodes carry its traffic to one another.

use ipnet::IpNet;

use super::value::{prefix, selector};
use crate::yaml::{Item, Mistake};

/// The spec of an IPPool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IpPool {
    /// `cidr`, host bits cleared.
    pub(crate) cidr: IpNet,
    /// `ipipMode`.
    pub(crate) ipip: EncapMode,
    /// `vxlanMode`.
    pub(crate) vxlan: EncapMode,
    /// `natOutgoing`.
    pub(crate) nat_outgoing: bool,
    /// `disabled`: no new addresses; routes stay.
    pub(crate) disabled: bool,
    /// `disableBGPExport`.
    pub(crate) disable_bgp_export: bool,
    /// `nodeSelector`, which only address allocation uses.
    pub(crate) node_selector: Option<String>,
}

/// When traffic between nodes travels in a tunnel.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum EncapMode {
    /// Never.
    #[default]
    Never,
    /// Always.
    Always,
    /// Only between nodes of different subnets.
    CrossSubnet,
}

const MODES: &[&str] = &["Never", "Always", "CrossSubnet"];

impl EncapMode {
    fn decode(item: &Item<'_>) -> Self {
        match item.word(MODES) {
            Some(1) => Self::Always,
            Some(2) => Self::CrossSubnet,
            _ => Self::Never,
        }
    }
}

impl IpPool {
    /// Read the `spec`. Mistakes go to the flaws of the item.
    pub(crate) fn decode(spec: &Item<'_>) -> Option<Self> {
        let mut fields = spec.fields()?;
        let cidr = fields.need("cidr").and_then(|item| prefix(&item));
        let mode = |item: Option<Item<'_>>| item.map(|item| EncapMode::decode(&item)).unwrap_or_default();
        let ipip = mode(fields.take("ipipMode"));
        let vxlan = mode(fields.take("vxlanMode"));
        let boolean = |item: Option<Item<'_>>| item.and_then(|item| item.boolean()).unwrap_or(false);
        let nat_outgoing = boolean(fields.take("natOutgoing"));
        let disabled = boolean(fields.take("disabled"));
        let disable_bgp_export = boolean(fields.take("disableBGPExport"));
        let node_selector = fields.take("nodeSelector").and_then(|item| selector(&item));
        fields.take("namespaceSelector").and_then(|item| selector(&item));
        if let (Some(item), Some(cidr)) = (fields.take("blockSize"), cidr) {
            let (wanted, range) = match cidr {
                IpNet::V4(_) => ("a block size, 20 to 32 (0 for the default)", 20..=32u8),
                IpNet::V6(_) => ("a block size, 116 to 128 (0 for the default)", 116..=128),
            };
            item.parse_with(wanted, |text| {
                text.parse().ok().filter(|size| *size == 0 || range.contains(size))
            });
        }
        for item in fields.take("allowedUses").map(|item| item.list()).unwrap_or_default() {
            item.word(&["Workload", "Tunnel", "LoadBalancer"]);
        }
        if let Some(item) = fields.take("assignmentMode") {
            item.word(&["Automatic", "Manual"]);
        }
        // Written by very old clients; current ones overrule them.
        fields.ignore(&["ipip", "nat-outgoing"]);
        if ipip != EncapMode::Never && vxlan != EncapMode::Never {
            fields.flaw(Mistake::Conflict { rule: "ipipMode and vxlanMode exclude each other" });
        }
        if ipip != EncapMode::Never && matches!(cidr, Some(IpNet::V6(_))) {
            fields.flaw(Mistake::Conflict { rule: "ipipMode is for IPv4 pools only" });
        }
        fields.finish();
        Some(Self { cidr: cidr?, ipip, vxlan, nat_outgoing, disabled, disable_bgp_export, node_selector })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Object;
    use super::super::object::tests::{one, problems};
    use super::*;

    const HEAD: &str = "apiVersion: crd.projectcalico.org/v1\nkind: IPPool\nmetadata: {name: pool}\nspec:\n";

    #[test]
    fn every_field_is_read_or_known() {
        let (_, object) = one(&format!(
            "{HEAD}  cidr: 10.244.0.0/16\n  blockSize: 26\n  ipipMode: CrossSubnet\n  vxlanMode: Never\n  \
             natOutgoing: true\n  disabled: false\n  disableBGPExport: true\n  nodeSelector: all()\n  \
             allowedUses: [Workload, Tunnel]\n  assignmentMode: Automatic\nstatus: {{conditions: []}}\n"
        ));
        let expected = IpPool {
            cidr: "10.244.0.0/16".parse().unwrap(),
            ipip: EncapMode::CrossSubnet,
            vxlan: EncapMode::Never,
            nat_outgoing: true,
            disabled: false,
            disable_bgp_export: true,
            node_selector: Some("all()".into()),
        };
        assert_eq!(object, Object::IpPool(expected));
    }

    #[test]
    fn mistakes() {
        let cases = [
            ("  ipipMode: Always\n", "line 5: spec.cidr: is required"),
            (
                "  cidr: 10.244.0.0/33\n",
                "line 5: spec.cidr: must be a prefix such as 10.0.0.0/26 or fd00::/122, not \"10.244.0.0/33\"",
            ),
            (
                "  cidr: 10.0.0.0/8\n  ipipMode: always\n",
                "line 6: spec.ipipMode: must be Never, Always or CrossSubnet, not \"always\"",
            ),
            (
                "  cidr: 10.0.0.0/8\n  blockSize: 12\n",
                "line 6: spec.blockSize: must be a block size, 20 to 32 (0 for the default), not \"12\"",
            ),
            ("  cidr: fd00::/48\n  ipipMode: Always\n", "line 5: spec: ipipMode is for IPv4 pools only"),
            (
                "  cidr: 10.0.0.0/8\n  ipipMode: Always\n  vxlanMode: Always\n",
                "line 5: spec: ipipMode and vxlanMode exclude each other",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(problems(&format!("{HEAD}{spec}")), [expected]);
        }
    }

    #[test]
    fn host_bits_are_cleared_with_a_warning() {
        let text = format!("{HEAD}  cidr: 10.244.0.7/16\n");
        let (_, object) = one(&text);
        let Object::IpPool(pool) = object else { panic!("{object:?}") };
        assert_eq!(pool.cidr, "10.244.0.0/16".parse().unwrap());
        assert_eq!(problems(&text), ["line 5: spec.cidr: has host bits set; read as 10.244.0.0/16"]);
    }
}
