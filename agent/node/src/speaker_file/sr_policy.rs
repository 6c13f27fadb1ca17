//! `sr-policy` of an origination: a candidate path of an SR policy (RFC 9830).

use std::net::{IpAddr, Ipv6Addr};

use bgp_wire::attr::tunnel_encap::{
    BindingSid, CandidatePath, EndpointBehavior, Segment, SegmentFlags, SegmentList, Sid, Srv6BindingSid,
};
use bgp_wire::{Nlri, SrPolicy4, SrPolicy6};

use crate::yaml::{Fields, Item, Mistake};

const LABEL: &str = "an MPLS label, 16 to 1048575";
const SRV6: &str = "an SRv6 SID such as fc00:0:1::4";
const NAME: &str = "1 to 255 printable ASCII characters";

/// The policy, and its candidate path. What is wrong with it is noted.
pub(super) fn decode(item: &Item<'_>) -> Option<(Nlri, CandidatePath)> {
    let mut fields = item.fields()?;
    let distinguisher = number(&mut fields, "distinguisher").unwrap_or(0);
    let color = fields.need("color").and_then(|item| item.number("a number, 0 to 4294967295", 0..=u32::MAX));
    let endpoint = fields.need("endpoint").and_then(|item| item.parse("an address such as 192.0.2.1"));
    let mut path = CandidatePath::default();
    path.preference = number(&mut fields, "preference").unwrap_or(path.preference);
    path.priority = fields.take("priority").and_then(|item| item.number("a number, 0 to 255", 0..=u8::MAX));
    path.name = fields.take("name").and_then(|item| name(&item));
    path.policy_name = fields.take("policy-name").and_then(|item| name(&item));
    // In the order of their code points, which begin with 1.
    let null = fields.take("explicit-null").and_then(|item| item.word(&["ipv4", "ipv6", "both", "none"]));
    path.explicit_null = null.map(|place| place as u8 + 1);
    path.binding_sid = fields.take("binding-sid").and_then(|item| binding_sid(&item));
    for item in fields.take("srv6-binding-sids").map(|item| item.list()).unwrap_or_default() {
        path.srv6_binding_sids.extend(srv6_binding_sid(&item));
    }
    for item in fields.take("segment-lists").map(|item| item.list()).unwrap_or_default() {
        path.segment_lists.extend(segment_list(&item));
    }
    fields.finish();
    let (color, endpoint) = (color?, endpoint?);
    let nlri = match endpoint {
        IpAddr::V4(endpoint) => SrPolicy4 { distinguisher, color, endpoint }.into(),
        IpAddr::V6(endpoint) => SrPolicy6 { distinguisher, color, endpoint }.into(),
    };
    Some((nlri, path))
}

fn number(fields: &mut Fields<'_>, key: &'static str) -> Option<u32> {
    fields.take(key).and_then(|item| item.number("a number, 0 to 4294967295", 0..=u32::MAX))
}

fn name(item: &Item<'_>) -> Option<String> {
    item.parse_with(NAME, |text| {
        let printable = text.bytes().all(|octet| octet == b' ' || octet.is_ascii_graphic());
        (printable && (1..=255).contains(&text.len())).then(|| text.to_owned())
    })
}

fn flag(fields: &mut Fields<'_>, key: &'static str) -> bool {
    fields.take(key).and_then(|item| item.boolean()).unwrap_or(false)
}

/// A label, an SRv6 SID, or a map with one of them as `sid` and what else there is to say.
fn binding_sid(item: &Item<'_>) -> Option<BindingSid> {
    let sid = |item: &Item<'_>| {
        item.parse_with("an MPLS label, 16 to 1048575, or an SRv6 SID such as fc00:0:1::4", |text| {
            let label = text.parse().ok().filter(|label| (16..0x10_0000).contains(label)).map(Sid::Label);
            label.or_else(|| text.parse().ok().map(Sid::Srv6))
        })
    };
    if item.is_scalar() {
        return sid(item).map(|sid| BindingSid { sid: Some(sid), ..BindingSid::default() });
    }
    let mut fields = item.fields()?;
    let value = fields.need("sid").and_then(|item| sid(&item));
    let specified_only = flag(&mut fields, "specified-only");
    let drop_upon_invalid = flag(&mut fields, "drop-upon-invalid");
    fields.finish();
    Some(BindingSid { specified_only, drop_upon_invalid, sid: Some(value?) })
}

fn srv6_binding_sid(item: &Item<'_>) -> Option<Srv6BindingSid> {
    let bare = |sid| Srv6BindingSid { specified_only: false, drop_upon_invalid: false, sid, behavior: None };
    if item.is_scalar() {
        return item.parse(SRV6).map(bare);
    }
    let mut fields = item.fields()?;
    let sid = fields.need("sid").and_then(|item| item.parse(SRV6));
    let specified_only = flag(&mut fields, "specified-only");
    let drop_upon_invalid = flag(&mut fields, "drop-upon-invalid");
    let behavior = behavior(&mut fields);
    fields.finish();
    Some(Srv6BindingSid { specified_only, drop_upon_invalid, behavior, ..bare(sid?) })
}

fn segment_list(item: &Item<'_>) -> Option<SegmentList> {
    let mut fields = item.fields()?;
    let mut list = SegmentList::default();
    list.weight = number(&mut fields, "weight").unwrap_or(list.weight);
    for item in fields.take("segments").map(|item| item.list()).unwrap_or_default() {
        list.segments.extend(segment(&item));
    }
    fields.finish();
    Some(list)
}

/// A label, an SRv6 SID, or a map with `label` or `sid` and what else there is to say.
fn segment(item: &Item<'_>) -> Option<Segment> {
    const WANTED: &str = "an MPLS label, 0 to 1048575, or an SRv6 SID such as fc00:0:1::4";
    let mpls =
        |label| Segment::Mpls { flags: SegmentFlags::default(), label, traffic_class: 0, ttl: u8::MAX };
    let label = |text: &str| text.parse().ok().filter(|label| *label < 0x10_0000u32);
    if item.is_scalar() {
        return item.parse_with(WANTED, |text| {
            let srv6 = |sid: Ipv6Addr| Segment::Srv6 { flags: SegmentFlags::default(), sid, behavior: None };
            label(text).map(mpls).or_else(|| text.parse().ok().map(srv6))
        });
    }
    let mut fields = item.fields()?;
    let label = fields.take("label").map(|item| item.parse_with(LABEL, label));
    let sid = fields.take("sid").map(|item| item.parse::<Ipv6Addr>(SRV6));
    let flags = fields.take("flags").and_then(|item| item.parse_with("letters out of VASB", segment_flags));
    let segment = match (label, sid) {
        (Some(label), None) => {
            let class =
                fields.take("traffic-class").and_then(|item| item.number("a number, 0 to 7", 0..=7u8));
            let ttl = fields.take("ttl").and_then(|item| item.number("a number, 0 to 255", 0..=u8::MAX));
            label.map(|label| Segment::Mpls {
                flags: flags.unwrap_or_default(),
                label,
                traffic_class: class.unwrap_or(0),
                ttl: ttl.unwrap_or(u8::MAX),
            })
        }
        (None, Some(sid)) => {
            let behavior = behavior(&mut fields);
            let usual = if behavior.is_some() { SegmentFlags::B } else { SegmentFlags::default() };
            sid.map(|sid| Segment::Srv6 { flags: flags.unwrap_or(usual), sid, behavior })
        }
        _ => {
            fields.flaw(Mistake::Conflict { rule: "a segment has a label or a sid" });
            fields.ignore(&["traffic-class", "ttl", "behavior", "structure"]);
            None
        }
    };
    fields.finish();
    segment
}

fn segment_flags(text: &str) -> Option<SegmentFlags> {
    text.chars().try_fold(SegmentFlags::default(), |flags, letter| {
        let flag = match letter {
            'V' => SegmentFlags::V,
            'A' => SegmentFlags::A,
            'S' => SegmentFlags::S,
            'B' => SegmentFlags::B,
            _ => return None,
        };
        Some(SegmentFlags(flags.0 | flag.0))
    })
}

/// `behavior`, by name or number, and `structure`: bits of block, node, function and argument.
fn behavior(fields: &mut Fields<'_>) -> Option<EndpointBehavior> {
    let code = fields.take("behavior").and_then(|item| {
        item.parse_with("a behaviour such as End.DT4, or its number", |text| {
            text.parse().ok().or_else(|| EndpointBehavior::named(text))
        })
    });
    let structure = fields.take("structure");
    let Some(code) = code else {
        if let Some(item) = structure {
            item.flaw(Mistake::Conflict { rule: "structure needs a behavior" });
        }
        return None;
    };
    let plain = EndpointBehavior { code, ..EndpointBehavior::default() };
    let Some(item) = structure else { return Some(plain) };
    item.parse_with(
        "bits of block, node, function and argument such as 32/16/16/0, together at most 128",
        |text| {
            let mut parts = text.split('/').map(|part| part.parse::<u8>().ok());
            let mut part = || parts.next().flatten();
            let behavior = EndpointBehavior {
                code,
                block: part()?,
                node: part()?,
                function: part()?,
                argument: part()?,
            };
            (parts.next().is_none() && behavior.bits() <= 128).then_some(behavior)
        },
    )
}

#[cfg(test)]
mod tests;
