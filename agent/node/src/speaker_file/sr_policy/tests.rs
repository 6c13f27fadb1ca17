use bgp_core::command::Origination;

use super::super::SpeakerFile;
use super::*;

fn originated(text: &str) -> Result<(Nlri, Origination), Vec<String>> {
    let text = format!("asn: 65010\nrouter-id: 192.0.2.10\noriginate:\n{text}");
    match SpeakerFile::parse(&text) {
        Ok(file) => Ok(file.originations.into_iter().next().unwrap()),
        Err(flaws) => Err(flaws.iter().map(|flaw| format!("{}: {}", flaw.field, flaw.mistake)).collect()),
    }
}

#[test]
fn a_short_one() {
    let (nlri, origination) = originated(
        "- sr-policy: { color: 100, endpoint: 192.0.2.9, binding-sid: 16100, segment-lists: [{ segments: [16001, \"fc00::4\"] }] }\n  communities: [no-advertise]\n",
    )
    .unwrap();
    assert_eq!(nlri.to_string(), "0:100:192.0.2.9");
    assert_eq!(origination.communities, [0xffff_ff02]);
    let path = origination.sr_policy.unwrap();
    assert_eq!((path.preference, path.priority), (100, None));
    assert_eq!(path.binding_sid.unwrap().sid, Some(Sid::Label(16100)));
    let shown: Vec<_> = path.segment_lists[0].segments.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["label 16001", "fc00::4"]);
    assert_eq!(path.segment_lists[0].weight, 1);
}

#[test]
fn one_with_everything() {
    let (nlri, origination) = originated(
        "- sr-policy:
    distinguisher: 7
    color: 4
    endpoint: 2001:db8::1
    preference: 11
    priority: 10
    name: a path
    policy-name: gold
    explicit-null: both
    binding-sid: { sid: \"fc00:0:1::4\", specified-only: true, drop-upon-invalid: true }
    srv6-binding-sids:
    - { sid: \"fc00::5\", specified-only: true, behavior: End.B6.Encaps, structure: 32/16/16/0 }
    - fc00::6
    segment-lists:
    - weight: 12
      segments:
      - { sid: \"fc00:0:1::4\", behavior: 19, flags: S }
      - { label: 16001, traffic-class: 7, ttl: 64, flags: V }
    - { weight: 3, segments: [{ sid: \"fc00::7\", behavior: End.X }] }
",
    )
    .unwrap();
    assert_eq!(nlri.to_string(), "7:4:2001:db8::1");
    let behavior = |code| EndpointBehavior { code, ..EndpointBehavior::default() };
    let structure = EndpointBehavior { code: 14, block: 32, node: 16, function: 16, argument: 0 };
    let sid = |text: &str| text.parse().unwrap();
    let srv6 = |text, specified_only, behavior| Srv6BindingSid {
        specified_only,
        drop_upon_invalid: false,
        sid: sid(text),
        behavior,
    };
    let expected = CandidatePath {
        preference: 11,
        priority: Some(10),
        name: Some("a path".into()),
        policy_name: Some("gold".into()),
        explicit_null: Some(3),
        binding_sid: Some(BindingSid {
            specified_only: true,
            drop_upon_invalid: true,
            sid: Some(Sid::Srv6(sid("fc00:0:1::4"))),
        }),
        srv6_binding_sids: vec![srv6("fc00::5", true, Some(structure)), srv6("fc00::6", false, None)],
        segment_lists: vec![
            SegmentList {
                weight: 12,
                segments: vec![
                    Segment::Srv6 {
                        flags: SegmentFlags::S,
                        sid: sid("fc00:0:1::4"),
                        behavior: Some(behavior(19)),
                    },
                    Segment::Mpls { flags: SegmentFlags::V, label: 16001, traffic_class: 7, ttl: 64 },
                ],
            },
            SegmentList {
                weight: 3,
                segments: vec![Segment::Srv6 {
                    flags: SegmentFlags::B,
                    sid: sid("fc00::7"),
                    behavior: Some(behavior(5)),
                }],
            },
        ],
        unknown: Vec::new(),
    };
    assert_eq!(*origination.sr_policy.unwrap(), expected);
}

#[test]
fn mistakes_are_listed() {
    let flaws = originated(
        "- sr-policy:
    endpoint: nowhere
    colour: 4
    name: \"\"
    binding-sid: 15
    segment-lists:
    - { segments: [1048576, { label: 1, sid: \"::1\" }, { sid: \"::1\", structure: 1/1/1/1 }] }
    - { segments: [{ sid: \"::1\", behavior: End.Nowhere }, { sid: \"::1\", behavior: End, structure: 64/64/1/0 }] }
- { sr-policy: { color: 1, endpoint: 192.0.2.9 }, prefix: 203.0.113.0/24 }
- { med: 1 }
",
    )
    .unwrap_err();
    let fields: Vec<_> = flaws.iter().map(|flaw| flaw.split(": ").next().unwrap()).collect();
    assert_eq!(
        fields,
        [
            "originate[0].sr-policy.color",
            "originate[0].sr-policy.endpoint",
            "originate[0].sr-policy.colour",
            "originate[0].sr-policy.name",
            "originate[0].sr-policy.binding-sid",
            "originate[0].sr-policy.segment-lists[0].segments[0]",
            "originate[0].sr-policy.segment-lists[0].segments[1]",
            "originate[0].sr-policy.segment-lists[0].segments[2].structure",
            "originate[0].sr-policy.segment-lists[1].segments[0].behavior",
            "originate[0].sr-policy.segment-lists[1].segments[1].structure",
            "originate[1]",
            "originate[2]",
        ],
        "{flaws:#?}"
    );
    assert!(flaws[2].ends_with("did you mean \"color\"?"), "{flaws:#?}");
}
