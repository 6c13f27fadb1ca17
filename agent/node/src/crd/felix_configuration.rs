//! `FelixConfiguration`: what Calico's data plane is told. It has more than a hundred fields, nearly all about Linux; the
//! few that concern this agent are read, the others are known to be other people's.

use agent_core::model::{FelixConfig, PerFamily};

use crate::yaml::{Fields, Item, Mistake, nearest};

/// The spec of a FelixConfiguration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FelixConfiguration(pub(crate) FelixConfig);

/// The fields that are read.
const READ: &[&str] = &[
    "ipipMTU",
    "vxlanMTU",
    "vxlanMTUV6",
    "vxlanPort",
    "vxlanVNI",
    "wireguardEnabled",
    "wireguardEnabledV6",
    "wireguardKeepAlive",
    "wireguardListeningPort",
    "wireguardListeningPortV6",
    "wireguardMTU",
    "wireguardMTUV6",
];

/// Fields about the same things that mean nothing to this agent.
const OTHERS: &[&str] = &[
    "ipipEnabled",
    "vxlanEnabled",
    "wireguardHostEncryptionEnabled",
    "wireguardInterfaceName",
    "wireguardInterfaceNameV6",
    "wireguardRoutingRulePriority",
    "wireguardThreadingEnabled",
];

impl FelixConfiguration {
    /// Read the `spec`. Mistakes go to the flaws of the item.
    pub(crate) fn decode(spec: &Item<'_>) -> Option<Self> {
        for (key, item) in spec.entries() {
            misspelt(key, &item);
        }
        let mut fields = spec.fields()?;
        let mut boolean = |key| fields.take(key).and_then(|item| item.boolean());
        let wireguard_enabled =
            PerFamily { v4: boolean("wireguardEnabled"), v6: boolean("wireguardEnabledV6") };
        let wireguard_keep_alive = fields.take("wireguardKeepAlive").and_then(|item| item.duration());
        let vxlan_vni =
            fields.take("vxlanVNI").and_then(|item| item.number("a VNI, 0 to 16777215", 0..=0xff_ffffu32));
        let f = &mut fields;
        let config = FelixConfig {
            wireguard_enabled,
            wireguard_port: PerFamily {
                v4: port(f, "wireguardListeningPort"),
                v6: port(f, "wireguardListeningPortV6"),
            },
            wireguard_mtu: PerFamily { v4: mtu(f, "wireguardMTU"), v6: mtu(f, "wireguardMTUV6") },
            wireguard_keep_alive,
            ipip_mtu: mtu(f, "ipipMTU"),
            vxlan_mtu: PerFamily { v4: mtu(f, "vxlanMTU"), v6: mtu(f, "vxlanMTUV6") },
            vxlan_port: port(f, "vxlanPort"),
            vxlan_vni: vxlan_vni.filter(|vni| *vni != 0),
        };
        fields.ignore_others();
        Some(Self(config))
    }
}

/// 0 counts as absent.
fn port(fields: &mut Fields<'_>, key: &'static str) -> Option<u16> {
    let port = fields.take(key).and_then(|item| item.number("a port, 1 to 65535", 0..=u16::MAX));
    port.filter(|port| *port != 0)
}

/// 0 leaves the choice to us, as an absent field does.
fn mtu(fields: &mut Fields<'_>, key: &'static str) -> Option<u16> {
    let wanted = "an MTU in octets, or 0 to have it worked out";
    fields.take(key).and_then(|item| item.number(wanted, 0..=u16::MAX)).filter(|mtu| *mtu != 0)
}

/// Most fields aren't ours to know. One that begins as ours do and that nobody knows is likely one of them: traffic that
/// isn't encrypted because of a letter must not stay unnoticed.
fn misspelt(key: &str, item: &Item<'_>) {
    let lower = key.to_ascii_lowercase();
    let alike = ["wireguard", "vxlan", "ipip"].iter().any(|start| lower.starts_with(start));
    let known = || READ.iter().chain(OTHERS).copied();
    if alike
        && known().all(|name| name != key)
        && let Some(near) = nearest(key, known())
    {
        item.flaw(Mistake::Unknown { near: Some(near.to_owned()) });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Object;
    use super::super::object::tests::{one, problems};
    use super::*;

    const HEAD: &str =
        "apiVersion: projectcalico.org/v3\nkind: FelixConfiguration\nmetadata: {name: default}\nspec:\n";

    #[test]
    fn what_concerns_us_is_read_and_the_rest_passes() {
        let (name, object) = one(&format!(
            "{HEAD}  wireguardEnabled: true\n  wireguardEnabledV6: false\n  wireguardListeningPort: 51900\n  \
             wireguardMTU: 1400\n  wireguardMTUV6: 0\n  wireguardKeepAlive: 25s\n  vxlanPort: 8472\n  vxlanVNI: 5000\n  \
             ipipMTU: 1460\n  vxlanMTU: 1430\n  wireguardHostEncryptionEnabled: true\n  wireguardInterfaceName: wg\n  \
             bpfEnabled: false\n  failsafeInboundHostPorts: [{{protocol: tcp, port: 22}}]\n"
        ));
        let expected = FelixConfig {
            wireguard_enabled: PerFamily { v4: Some(true), v6: Some(false) },
            wireguard_port: PerFamily { v4: Some(51900), v6: None },
            wireguard_mtu: PerFamily { v4: Some(1400), v6: None },
            wireguard_keep_alive: Some(Duration::from_secs(25)),
            ipip_mtu: Some(1460),
            vxlan_mtu: PerFamily { v4: Some(1430), v6: None },
            vxlan_port: Some(8472),
            vxlan_vni: Some(5000),
        };
        assert_eq!(
            (name.as_str(), object),
            ("default", Object::FelixConfiguration(FelixConfiguration(expected)))
        );
    }

    #[test]
    fn mistakes() {
        let cases = [
            (
                "  wireguardEnabled: yes\n",
                "line 5: spec.wireguardEnabled: must be true or false, not \"yes\"",
            ),
            (
                "  wireguardEnable: true\n",
                "line 5: spec.wireguardEnable: unknown field; did you mean \"wireguardEnabled\"?",
            ),
            (
                "  wireguardListeningPort: 70000\n",
                "line 5: spec.wireguardListeningPort: must be a port, 1 to 65535, not \"70000\"",
            ),
            (
                "  vxlanVNI: 16777216\n",
                "line 5: spec.vxlanVNI: must be a VNI, 0 to 16777215, not \"16777216\"",
            ),
            (
                "  wireguardMTU: -1\n",
                "line 5: spec.wireguardMTU: must be an MTU in octets, or 0 to have it worked out, not \"-1\"",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(problems(&format!("{HEAD}{spec}")), [expected]);
        }
        let other = HEAD.replace("default", "mine");
        assert_eq!(
            problems(&format!("{other}  bpfEnabled: true\n")),
            [
                "line 1: metadata.name: a FelixConfiguration is read only under the names \"default\" and \"node.<node name>\""
            ]
        );
    }
}
