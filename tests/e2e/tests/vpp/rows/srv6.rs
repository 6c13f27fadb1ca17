//! SRv6: what goes to another node is encapsulated with the segments of an SR policy of that node's. Next hops are IPv6 addresses
//! for both families.

use crate::row::{Carried, Row};

pub(crate) const ROW: Row = Row {
    settings: "\
features: { srv6: true }
srv6:
  localsid-pool: fd00:a::/64
  policy-pool: fd00:b::/64
  localsid-dt4: fd00:a::{node}:4
  localsid-dt6: fd00:a::{node}:6
  bsid-dt4: fd00:b::{node}:4
  bsid-dt6: fd00:b::{node}:6
",
    ipv6_hops: true,
    // How its SIDs are reached.
    blocks: &["fd00:a::{node}:0/112"],
    originate: "  \
  - { sr-policy: { distinguisher: 0, color: 4, endpoint: \"2001:db8:1::2\", preference: 11, binding-sid: \"fd00:b::2:4\", \
      segment-lists: [{ weight: 12, segments: [{ sid: \"fd00:a::2:4\", behavior: End.DT4 }] }] }, next-hop: \"2001:db8:1::2\" }
  - { sr-policy: { distinguisher: 0, color: 6, endpoint: \"2001:db8:1::2\", preference: 11, binding-sid: \"fd00:b::2:6\", \
      segment-lists: [{ weight: 12, segments: [{ sid: \"fd00:a::2:6\", behavior: End.DT6 }] }] }, next-hop: \"2001:db8:1::2\" }
  - { sr-policy: { distinguisher: 0, color: 4, endpoint: \"2001:db8:1::3\", preference: 11, binding-sid: \"fd00:b::3:4\", \
      segment-lists: [{ weight: 12, segments: [{ sid: \"fd00:a::3:4\", behavior: End.DT4 }] }] }, next-hop: \"2001:db8:1::3\" }
  - { sr-policy: { distinguisher: 0, color: 6, endpoint: \"2001:db8:1::3\", preference: 11, binding-sid: \"fd00:b::3:6\", \
      segment-lists: [{ weight: 12, segments: [{ sid: \"fd00:a::3:6\", behavior: End.DT6 }] }] }, next-hop: \"2001:db8:1::3\" }
",
    always: &[
        "localsid fd00:a::1:4: decapsulates ipv4",
        "localsid fd00:a::1:6: decapsulates ipv6",
        "route fd00:a::1:0/112 in table 0: drop",
    ],
    ipv4: Carried {
        per_hop: &["policy fd00:b::{node}:4: from 2001:db8:1::1, weight 12 through fd00:a::{node}:4", SIX, HOST],
        per_destination: &["steering {prefix} in table 0: into policy fd00:b::{node}:4"],
        through: "sr-localsid-d",
        ..Carried::FLAT
    },
    ipv6: Carried {
        per_hop: &[SIX, HOST],
        per_destination: &["steering {prefix} in table 0: into policy fd00:b::{node}:6"],
        through: "sr-localsid-d",
        ..Carried::FLAT
    },
    ..Row::named("srv6")
};

const SIX: &str = "policy fd00:b::{node}:6: from 2001:db8:1::1, weight 12 through fd00:a::{node}:6";
/// The node itself, for pods.
const HOST: &str = "steering {remote}/128 in table 2: into policy fd00:b::{node}:6";
