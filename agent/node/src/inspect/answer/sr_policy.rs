//! A candidate path of an SR policy, as JSON (RFC 9830).

use bgp_wire::Nlri;
use bgp_wire::attr::tunnel_encap::{
    BindingSid, CandidatePath, EndpointBehavior, Segment, SegmentFlags, SegmentList, Sid, Srv6BindingSid,
    UnknownSubTlv,
};
use serde::{Deserialize, Serialize};

/// What a route of the families `ipv4-srpolicy` and `ipv6-srpolicy` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct SrPolicy {
    /// Which of the policy's candidate paths it is.
    pub(crate) distinguisher: u32,
    /// What the policy is for.
    pub(crate) color: u32,
    /// Where it leads to.
    pub(crate) endpoint: String,
    /// Whether this speaker may use it: it is meant for it, and all of it is known.
    pub(crate) usable: bool,
    /// The greatest one is used.
    pub(crate) preference: u32,
    /// In which order policies are computed again; lowest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<u8>,
    /// The candidate path's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The policy's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy_name: Option<String>,
    /// Explicit null labels: `ipv4`, `ipv6`, `both` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) explicit_null: Option<String>,
    /// The binding SID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) binding_sid: Option<ShownSid>,
    /// SRv6 binding SIDs of the sub-TLV made for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) srv6_binding_sids: Vec<ShownSid>,
    /// The segment lists.
    pub(crate) segment_lists: Vec<ShownList>,
    /// Sub-TLVs that nobody has defined for SR policies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unknown: Vec<Unknown>,
}

/// A binding SID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct ShownSid {
    /// A label or an SRv6 SID; empty where the headend shall choose.
    pub(crate) sid: String,
    /// The S-Flag.
    pub(crate) specified_only: bool,
    /// The I-Flag.
    pub(crate) drop_upon_invalid: bool,
    /// What an SRv6 SID does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) behavior: Option<Behavior>,
}

/// A segment list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct ShownList {
    /// Its share of the traffic.
    pub(crate) weight: u32,
    /// Its segments.
    pub(crate) segments: Vec<ShownSegment>,
}

/// A segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct ShownSegment {
    /// In words.
    pub(crate) text: String,
    /// `A`, `B`, or the number of another type.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Flags that are set, as letters out of V, A, S and B.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) flags: String,
    /// Type A: the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<u32>,
    /// Type A: the traffic class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) traffic_class: Option<u8>,
    /// Type A: the time to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<u8>,
    /// Type B: the SID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sid: Option<String>,
    /// Type B: what the SID does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) behavior: Option<Behavior>,
    /// Another type: its octets in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) octets: Option<String>,
}

/// What an SRv6 SID does and how it is made up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Behavior {
    /// Its name in RFC 8986, with its structure unless all of it is 0.
    pub(crate) text: String,
    /// Its code point.
    pub(crate) code: u16,
    /// Bits of locator block, locator node, function and argument.
    pub(crate) structure: [u8; 4],
}

/// A sub-TLV that nobody knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Unknown {
    /// Its type.
    #[serde(rename = "type")]
    pub(crate) kind: u8,
    /// Its octets in hexadecimal digits.
    pub(crate) octets: String,
}

impl SrPolicy {
    /// The candidate path of a route; `None` for a route of another family.
    pub(crate) fn new(nlri: Nlri, path: &CandidatePath, usable: bool) -> Option<Self> {
        let (distinguisher, color, endpoint) = match nlri {
            Nlri::SrPolicy4(key) => (key.distinguisher, key.color, key.endpoint.to_string()),
            Nlri::SrPolicy6(key) => (key.distinguisher, key.color, key.endpoint.to_string()),
            Nlri::V4(_) | Nlri::V6(_) | Nlri::VpnV4(_) | Nlri::VpnV6(_) => return None,
        };
        let explicit_null = path.explicit_null.and_then(|policy| match policy {
            1 => Some("ipv4"),
            2 => Some("ipv6"),
            3 => Some("both"),
            4 => Some("none"),
            _ => None,
        });
        Some(Self {
            distinguisher,
            color,
            endpoint,
            usable,
            preference: path.preference,
            priority: path.priority,
            name: path.name.clone(),
            policy_name: path.policy_name.clone(),
            explicit_null: explicit_null.map(str::to_owned),
            binding_sid: path.binding_sid.map(ShownSid::from),
            srv6_binding_sids: path.srv6_binding_sids.iter().copied().map(ShownSid::from).collect(),
            segment_lists: path.segment_lists.iter().map(ShownList::from).collect(),
            unknown: path.unknown.iter().map(Unknown::from).collect(),
        })
    }

    /// What people read below the route: what the path says, then a line for each segment list.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut said = vec![
            format!("distinguisher {}", self.distinguisher),
            format!("color {}", self.color),
            format!("endpoint {}", self.endpoint),
            format!("preference {}", self.preference),
        ];
        said.extend(self.priority.map(|priority| format!("priority {priority}")));
        said.extend(self.binding_sid.iter().map(|sid| format!("binding SID {}", sid.text())));
        said.extend(self.srv6_binding_sids.iter().map(|sid| format!("SRv6 binding SID {}", sid.text())));
        said.extend(self.explicit_null.iter().map(|policy| format!("explicit null {policy}")));
        said.extend(self.name.iter().map(|name| format!("name {name:?}")));
        said.extend(self.policy_name.iter().map(|name| format!("policy name {name:?}")));
        said.extend(self.unknown.iter().map(|unknown| format!("unknown sub-TLV {}", unknown.kind)));
        if !self.usable {
            said.push("not usable here".into());
        }
        let lists = self.segment_lists.iter().map(|list| {
            let segments: Vec<_> = list.segments.iter().map(|segment| &*segment.text).collect();
            format!("weight {}: {}", list.weight, segments.join(", "))
        });
        [said.join(", ")].into_iter().chain(lists).collect()
    }
}

impl ShownSid {
    fn text(&self) -> String {
        let mut text = if self.sid.is_empty() { "any".to_owned() } else { self.sid.clone() };
        if let Some(behavior) = &self.behavior {
            text = format!("{text} {}", behavior.text);
        }
        for (set, words) in
            [(self.specified_only, "specified only"), (self.drop_upon_invalid, "drop upon invalid")]
        {
            if set {
                text = format!("{text} ({words})");
            }
        }
        text
    }
}

impl From<BindingSid> for ShownSid {
    fn from(BindingSid { specified_only, drop_upon_invalid, sid }: BindingSid) -> Self {
        let sid = match sid {
            Some(Sid::Label(label)) => label.to_string(),
            Some(Sid::Srv6(sid)) => sid.to_string(),
            None => String::new(),
        };
        Self { sid, specified_only, drop_upon_invalid, behavior: None }
    }
}

impl From<Srv6BindingSid> for ShownSid {
    fn from(Srv6BindingSid { specified_only, drop_upon_invalid, sid, behavior }: Srv6BindingSid) -> Self {
        let behavior = behavior.map(Behavior::from);
        Self { sid: sid.to_string(), specified_only, drop_upon_invalid, behavior }
    }
}

impl From<EndpointBehavior> for Behavior {
    fn from(behavior: EndpointBehavior) -> Self {
        let EndpointBehavior { code, block, node, function, argument } = behavior;
        Self { text: behavior.to_string(), code, structure: [block, node, function, argument] }
    }
}

impl From<&SegmentList> for ShownList {
    fn from(list: &SegmentList) -> Self {
        Self { weight: list.weight, segments: list.segments.iter().map(ShownSegment::from).collect() }
    }
}

impl From<&Segment> for ShownSegment {
    fn from(segment: &Segment) -> Self {
        let text = segment.to_string();
        match segment {
            Segment::Mpls { flags, label, traffic_class, ttl } => Self {
                text,
                kind: "A".into(),
                flags: letters(*flags),
                label: Some(*label),
                traffic_class: Some(*traffic_class),
                ttl: Some(*ttl),
                ..Self::default()
            },
            Segment::Srv6 { flags, sid, behavior } => Self {
                text,
                kind: "B".into(),
                flags: letters(*flags),
                sid: Some(sid.to_string()),
                behavior: behavior.map(Behavior::from),
                ..Self::default()
            },
            Segment::Unknown(UnknownSubTlv { kind, value }) => {
                Self { text, kind: kind.to_string(), octets: Some(hex(value)), ..Self::default() }
            }
        }
    }
}

impl From<&UnknownSubTlv> for Unknown {
    fn from(UnknownSubTlv { kind, value }: &UnknownSubTlv) -> Self {
        Self { kind: *kind, octets: hex(value) }
    }
}

fn letters(flags: SegmentFlags) -> String {
    let all =
        [(SegmentFlags::V, 'V'), (SegmentFlags::A, 'A'), (SegmentFlags::S, 'S'), (SegmentFlags::B, 'B')];
    all.into_iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, letter)| letter).collect()
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> CandidatePath {
        let behavior = Some(EndpointBehavior { code: 19, block: 32, node: 16, function: 16, argument: 0 });
        let sid = "fc00:0:1::4".parse().unwrap();
        let label = |label, flags| Segment::Mpls { flags, label, traffic_class: 0, ttl: 255 };
        CandidatePath {
            preference: 200,
            priority: Some(10),
            binding_sid: Some(BindingSid {
                specified_only: true,
                drop_upon_invalid: false,
                sid: Some(Sid::Label(16100)),
            }),
            srv6_binding_sids: vec![Srv6BindingSid {
                specified_only: false,
                drop_upon_invalid: true,
                sid,
                behavior,
            }],
            name: Some("a path".into()),
            explicit_null: Some(3),
            segment_lists: vec![
                SegmentList {
                    weight: 2,
                    segments: vec![label(16001, SegmentFlags::V), label(16002, SegmentFlags::default())],
                },
                SegmentList {
                    weight: 1,
                    segments: vec![
                        Segment::Srv6 { flags: SegmentFlags(0x30), sid, behavior },
                        Segment::Unknown(UnknownSubTlv { kind: 3, value: [0, 1].into() }),
                    ],
                },
            ],
            ..CandidatePath::default()
        }
    }

    #[test]
    fn lines_and_json_say_everything() {
        let nlri: Nlri = "1:100:192.0.2.9".parse().unwrap();
        let shown = SrPolicy::new(nlri, &path(), false).unwrap();
        assert_eq!(
            shown.lines(),
            [
                "distinguisher 1, color 100, endpoint 192.0.2.9, preference 200, priority 10, \
                 binding SID 16100 (specified only), \
                 SRv6 binding SID fc00:0:1::4 End.DT4/32/16/16/0 (drop upon invalid), \
                 explicit null both, name \"a path\", not usable here",
                "weight 2: label 16001, label 16002",
                "weight 1: fc00:0:1::4 End.DT4/32/16/16/0, type-3",
            ]
        );
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(json["segment-lists"][1]["segments"][0]["flags"], "SB");
        assert_eq!(json["segment-lists"][1]["segments"][1]["octets"], "0001");
        assert_eq!(json["segment-lists"][0]["segments"][0]["label"], 16001);
        assert_eq!(json["binding-sid"]["sid"], "16100");
        assert_eq!(json["srv6-binding-sids"][0]["behavior"]["structure"], serde_json::json!([32, 16, 16, 0]));
        assert_eq!(serde_json::from_value::<SrPolicy>(json).unwrap(), shown);
        assert_eq!(SrPolicy::new("10.0.0.0/8".parse().unwrap(), &path(), true), None);
    }
}
