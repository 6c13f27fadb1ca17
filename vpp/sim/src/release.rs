//! The releases that a simulated VPP can pose as: which of the messages that are served each has, and under which CRC. What
//! the handlers do is the newest release's; only layouts differ here.

use std::fmt;
use std::str::FromStr;

use vpp_wire::name::MsgName;

use crate::api::ikev2;
use crate::api::row::{Row, Serve};

/// A release of VPP, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// 25.06.
    V25_06,
    /// 25.10.
    V25_10,
    /// 26.02.
    V26_02,
    /// 26.06, whose messages the development branch behind it has too.
    #[default]
    V26_06,
}

/// Messages that came with a release; older ones lack them.
const NEW: &[(Release, &[&str])] = &[
    (Release::V25_10, &["bfd_udp_set_tos", "bfd_udp_get_tos"]),
    (
        Release::V26_06,
        &[
            "sw_interface_set_default_rx_mode",
            "sw_interface_get_default_rx_mode",
            "wireguard_peer_add_v2",
            "wireguard_peers_v2_dump",
            "sr_localsid_add_del_v2",
            "cnat_set_snat_addresses_v2",
            "cnat_snat_addresses_dump",
            "feature_cnat_enable_disable",
        ],
    ),
];

/// Messages that have another CRC in 26.06 than before, with that before, and what serves them in that layout where it is
/// another too.
const CHANGED: &[(&str, u32, Option<Serve>)] = &[
    ("ikev2_profile_dump", 0x5107_7d14, Some(ikev2::profile_dump_2602)),
    ("ikev2_profile_details", 0x670d_01d9, None),
    ("ikev2_set_ike_transforms", 0x076d_7378, Some(ikev2::set_ike_transforms_2602)),
    ("cnat_set_snat_policy", 0xd3e6_eaf4, None),
    ("cnat_session_details", 0x7e50_17c7, None),
];

impl Release {
    /// All of them, oldest first.
    pub const ALL: [Self; 4] = [Self::V25_06, Self::V25_10, Self::V26_02, Self::V26_06];

    /// As VPP's version text says it, with a word that no real one has.
    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::V25_06 => "25.06-sim",
            Self::V25_10 => "25.10-sim",
            Self::V26_02 => "26.02-sim",
            Self::V26_06 => "26.06-sim",
        }
    }

    /// What a message of the newest release is called in this one; `None` where it lacks it.
    pub(crate) fn name(self, newest: MsgName) -> Option<MsgName> {
        let asked = newest.name();
        // Reply and details come and go with their request.
        let request = asked.strip_suffix("_reply").unwrap_or(asked);
        let dump = asked.strip_suffix("_details");
        let is_of = |name: &&str| {
            *name == request || dump.is_some_and(|dump| name.strip_suffix("_dump") == Some(dump))
        };
        if NEW.iter().any(|(since, names)| self < *since && names.iter().any(is_of)) {
            return None;
        }
        let changed = CHANGED.iter().find(|(name, ..)| self < Self::V26_06 && *name == asked);
        Some(changed.map_or(newest, |(name, crc, _)| MsgName::new(name, *crc)))
    }

    /// A row of the newest release as it is in this one; `None` where it lacks the message.
    pub(crate) fn row(self, newest: Row) -> Option<Row> {
        let older = CHANGED.iter().find(|(name, ..)| self < Self::V26_06 && *name == newest.name.name());
        Some(Row {
            name: self.name(newest.name)?,
            answer: self.name(newest.answer)?,
            serve: older.and_then(|(.., serve)| *serve).unwrap_or(newest.serve),
            ..newest
        })
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version().trim_end_matches("-sim"))
    }
}

/// A text names no release that can be posed as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of 25.06, 25.10, 26.02 and 26.06")]
pub struct ReleaseError(String);

impl FromStr for Release {
    type Err = ReleaseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|release| release.to_string() == text);
        named.ok_or_else(|| ReleaseError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::api::row::names;

    /// The catalogue says of each message which releases have it, and under which CRC.
    #[test]
    fn every_release_has_what_the_catalogue_says() {
        let catalogue: serde_json::Value =
            serde_json::from_str(include_str!("../../catalogue/messages.json")).expect("JSON");
        let mut compared = BTreeMap::<Release, usize>::new();
        for newest in names() {
            let crcs = &catalogue["messages"][newest.name()]["crc"];
            assert!(crcs.is_object(), "{newest} is not in the catalogue");
            for release in Release::ALL {
                let crc = crcs[release.to_string()].as_str();
                let wanted = crc.map(|crc| format!("{}_{}", newest.name(), crc.trim_start_matches("0x")));
                assert_eq!(
                    release.name(newest).map(|name| name.to_string()),
                    wanted,
                    "{newest} in {release}"
                );
                *compared.entry(release).or_default() += 1;
            }
        }
        assert!(compared.values().all(|count| *count > 100), "{compared:?}");
    }

    #[test]
    fn a_release_is_read_from_text() {
        for release in Release::ALL {
            assert_eq!(release.to_string().parse(), Ok(release));
        }
        assert_eq!("26.10".parse::<Release>(), Err(ReleaseError("26.10".into())));
    }
}
