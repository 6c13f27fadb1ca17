//! `Network`: a network beside the default one, whose pods reach one another by VXLAN under a number of its own.

use ipnet::IpNet;

use super::value::{non_empty, prefix};
use crate::yaml::Item;

/// The spec of a Network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    /// `vni`: 1 to 16777215.
    pub(crate) vni: u32,
    /// `range`: where addresses of its pods come from.
    pub(crate) range: IpNet,
    /// `physicalNetworkName`: the uplinks that its traffic takes.
    pub(crate) physical: Option<String>,
}

impl Network {
    /// Read the `spec`. Mistakes go to the flaws of the item.
    pub(crate) fn decode(spec: &Item<'_>) -> Option<Self> {
        let mut fields = spec.fields()?;
        let vni = fields.need("vni").and_then(|item| item.number("a VNI, 1 to 16777215", 1..=0xff_ffffu32));
        let range = fields.need("range").and_then(|item| prefix(&item));
        let physical = fields.take("physicalNetworkName").filter(|item| item.text() != Some(""));
        let physical = physical.and_then(|item| non_empty(&item));
        fields.finish();
        Some(Self { vni: vni?, range: range?, physical })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Object;
    use super::super::object::tests::{one, problems};
    use super::*;

    const HEAD: &str = "apiVersion: projectcalico.org/v3\nkind: Network\nmetadata: {name: blue}\n";

    #[test]
    fn fields() {
        let spec = "spec: {vni: 77, range: 10.50.0.0/16, physicalNetworkName: eth9}\n";
        let (_, object) = one(&format!("{HEAD}{spec}"));
        let Object::Network(network) = object else { panic!("{object:?}") };
        let range = "10.50.0.0/16".parse().unwrap();
        assert_eq!(network, Network { vni: 77, range, physical: Some("eth9".into()) });
        let (_, object) =
            one(&format!("{HEAD}spec: {{vni: 1, range: 'fd00::/64', physicalNetworkName: ''}}\n"));
        let Object::Network(network) = object else { panic!("{object:?}") };
        assert_eq!(network.physical, None);
    }

    #[test]
    fn mistakes() {
        for (spec, expected) in [
            ("range: 10.50.0.0/16", "line 4: spec.vni: is required"),
            ("vni: 7", "line 4: spec.range: is required"),
            ("{vni: 0, range: 10.50.0.0/16}", "line 4: spec.vni: must be a VNI, 1 to 16777215, not \"0\""),
            (
                "{vni: 16777216, range: 10.50.0.0/16}",
                "line 4: spec.vni: must be a VNI, 1 to 16777215, not \"16777216\"",
            ),
        ] {
            let spec = if spec.starts_with('{') { spec.to_owned() } else { format!("{{{spec}}}") };
            assert_eq!(problems(&format!("{HEAD}spec: {spec}\n")), [expected], "{spec}");
        }
    }
}
