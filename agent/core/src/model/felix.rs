//! FelixConfiguration: the parts of Calico's data plane settings that concern connectivity. A node's own object overrides
//! the cluster's field by field.

use std::time::Duration;

use bgp_core::Family;

use super::BgpConfigName;

/// Which FelixConfiguration an object is: names follow the same rule as those of BGPConfigurations.
pub type FelixConfigName = BgpConfigName;

/// The fields of a FelixConfiguration that this agent reads. `None` means that the field is absent, or says what its absence
/// means (an MTU of 0).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FelixConfig {
    /// `wireguardEnabled` and `wireguardEnabledV6`.
    pub wireguard_enabled: PerFamily<Option<bool>>,
    /// `wireguardListeningPort` and `wireguardListeningPortV6`.
    pub wireguard_port: PerFamily<Option<u16>>,
    /// `wireguardMTU` and `wireguardMTUV6`.
    pub wireguard_mtu: PerFamily<Option<u16>>,
    /// `wireguardKeepAlive`.
    pub wireguard_keep_alive: Option<Duration>,
    /// `ipipMTU`.
    pub ipip_mtu: Option<u16>,
    /// `vxlanMTU` and `vxlanMTUV6`.
    pub vxlan_mtu: PerFamily<Option<u16>>,
    /// `vxlanPort`.
    pub vxlan_port: Option<u16>,
    /// `vxlanVNI`, at most 24 bits.
    pub vxlan_vni: Option<u32>,
}

/// One value for each IP version.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PerFamily<T> {
    /// Of IPv4.
    pub v4: T,
    /// Of IPv6.
    pub v6: T,
}

impl<T> PerFamily<T> {
    /// The value of a family.
    pub const fn of(&self, family: Family) -> &T {
        if family.is_ipv4() { &self.v4 } else { &self.v6 }
    }
}

impl<T: Copy> PerFamily<Option<T>> {
    fn or(self, other: Self) -> Self {
        Self { v4: self.v4.or(other.v4), v6: self.v6.or(other.v6) }
    }
}

impl FelixConfig {
    /// This object's fields, and those of another one where this one has none.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            wireguard_enabled: self.wireguard_enabled.or(other.wireguard_enabled),
            wireguard_port: self.wireguard_port.or(other.wireguard_port),
            wireguard_mtu: self.wireguard_mtu.or(other.wireguard_mtu),
            wireguard_keep_alive: self.wireguard_keep_alive.or(other.wireguard_keep_alive),
            ipip_mtu: self.ipip_mtu.or(other.ipip_mtu),
            vxlan_mtu: self.vxlan_mtu.or(other.vxlan_mtu),
            vxlan_port: self.vxlan_port.or(other.vxlan_port),
            vxlan_vni: self.vxlan_vni.or(other.vxlan_vni),
        }
    }

    /// Traffic of pods that goes by this IP version is to be encrypted.
    #[must_use]
    pub fn wireguard(&self, family: Family) -> bool {
        self.wireguard_enabled.of(family).unwrap_or(false)
    }

    /// The UDP port of WireGuard, ours and that of other nodes.
    #[must_use]
    pub fn wireguard_port(&self, family: Family) -> u16 {
        self.wireguard_port.of(family).unwrap_or(if family.is_ipv4() { 51820 } else { 51821 })
    }

    /// How often a peer hears from us though there is nothing to say, in whole seconds; 0: never.
    #[must_use]
    pub fn keep_alive(&self) -> u16 {
        let time = self.wireguard_keep_alive.unwrap_or_default();
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        u16::try_from(seconds).unwrap_or(u16::MAX)
    }

    /// The UDP port of VXLAN.
    #[must_use]
    pub fn vxlan_port(&self) -> u16 {
        self.vxlan_port.unwrap_or(4789)
    }

    /// The VNI of the default network.
    #[must_use]
    pub fn vxlan_vni(&self) -> u32 {
        self.vxlan_vni.unwrap_or(4096)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_overrides_field_by_field() {
        let cluster = FelixConfig {
            wireguard_enabled: PerFamily { v4: Some(true), v6: Some(true) },
            wireguard_port: PerFamily { v4: Some(1000), v6: None },
            vxlan_port: Some(8472),
            ..FelixConfig::default()
        };
        let node = FelixConfig {
            wireguard_enabled: PerFamily { v4: None, v6: Some(false) },
            wireguard_port: PerFamily { v4: None, v6: Some(2000) },
            ..FelixConfig::default()
        };
        let merged = node.or(&cluster);
        assert!(merged.wireguard(Family::Ipv4Unicast) && !merged.wireguard(Family::Ipv6Unicast));
        let ports = Family::UNICAST.map(|family| merged.wireguard_port(family));
        assert_eq!((ports, merged.vxlan_port()), ([1000, 2000], 8472));
    }

    #[test]
    fn what_is_absent_has_calicos_defaults() {
        let none = FelixConfig::default();
        assert_eq!(Family::UNICAST.map(|family| none.wireguard(family)), [false, false]);
        assert_eq!(Family::UNICAST.map(|family| none.wireguard_port(family)), [51820, 51821]);
        assert_eq!((none.keep_alive(), none.vxlan_port(), none.vxlan_vni()), (0, 4789, 4096));
    }

    #[test]
    fn keep_alive_is_in_whole_seconds_and_off_only_where_it_is_off() {
        let with = |time| FelixConfig { wireguard_keep_alive: Some(time), ..FelixConfig::default() };
        assert_eq!(with(Duration::from_millis(100)).keep_alive(), 1);
        assert_eq!(with(Duration::from_secs(25)).keep_alive(), 25);
        assert_eq!(with(Duration::from_secs(1 << 20)).keep_alive(), u16::MAX);
    }
}
