//! `BGPFilter`: rules for what a session takes and gives.
//!
//! A rule that cannot be what it says is left out, and everything that is wrong with it is a mistake of the object; so is
//! known what the rest of the filter is. Whether that, or the version before, counts then is the reader's affair.

use agent_core::model::{
    AnyCommunity, Direction, Filter, FilterAction, FilterRule, Glob, MatchOperator, Operation, PeerType,
    PrefixMatch,
};
use bgp_core::{Asn, Family};
use ipnet::IpNet;

use super::value::{as_number, community, route_priority};
use crate::yaml::{Fields, Item, Mistake};

/// Read the `spec`. Mistakes go to the flaws of the item.
pub(super) fn decode(spec: &Item<'_>) -> Option<Filter> {
    let mut fields = spec.fields()?;
    let mut list = |direction, family| {
        let items = fields.take(Filter::list(direction, family)).map(|item| item.list()).unwrap_or_default();
        let rules = items.iter().enumerate();
        rules.filter_map(|(index, item)| rule(item, index + 1, family)).collect()
    };
    let filter = Filter {
        import_v4: list(Direction::Import, Family::Ipv4Unicast),
        export_v4: list(Direction::Export, Family::Ipv4Unicast),
        import_v6: list(Direction::Import, Family::Ipv6Unicast),
        export_v6: list(Direction::Export, Family::Ipv6Unicast),
    };
    fields.finish();
    Some(filter)
}

/// The number of the rule that a field belongs to, with the list: `exportV4 rule 2` of `spec.exportV4[1].cidr`.
pub(crate) fn rule_of(field: &str) -> Option<String> {
    let (list, rest) = field.strip_prefix("spec.")?.split_once('[')?;
    let index: usize = rest.split_once(']')?.0.parse().ok()?;
    Some(format!("{list} rule {}", index + 1))
}

/// One rule; `None` where anything about it is a mistake.
fn rule(item: &Item<'_>, number: usize, family: Family) -> Option<FilterRule> {
    let before = item.mistakes();
    let mut fields = item.fields()?;
    let prefixes = prefixes(&mut fields, family);
    let learned = fields.take("source").and_then(|item| item.word(&["RemotePeers"])).is_some();
    let wanted = "an interface's name of 1 to 15 letters, digits, \"_\", \".\" and \"-\", with \"*\" for any run of them";
    let interface = fields.take("interface").and_then(|item| item.parse_with(wanted, Glob::parse));
    let peer_type = fields.take("peerType").and_then(|item| item.word(&["eBGP", "iBGP"]));
    let peer_type = peer_type.map(|place| if place == 0 { PeerType::External } else { PeerType::Internal });
    let community = fields.take("communities").and_then(|item| one_community(&item));
    let as_path_prefix = fields.take("asPathPrefix").map(|item| as_numbers(&item)).unwrap_or_default();
    let priority = fields.take("priority").and_then(|item| route_priority(&item));
    let action = fields.need("action").and_then(|item| item.word(&["Accept", "Reject"]));
    let operations = fields.take("operations").map(|item| {
        let all = item.list();
        if !(1..=10).contains(&all.len()) {
            item.flaw(Mistake::Conflict {
                rule: "there may be 1 to 10 operations; without any, leave the field out",
            });
        }
        all.iter().filter_map(operation).collect()
    });
    if action == Some(1) && operations.is_some() {
        fields.flaw(Mistake::Conflict { rule: "operations go with action Accept only" });
    }
    fields.finish();
    let action = if action? == 0 {
        FilterAction::Accept(operations.unwrap_or_default())
    } else {
        FilterAction::Reject
    };
    (item.mistakes() == before).then_some(FilterRule {
        number,
        prefixes,
        learned,
        interface,
        peer_type,
        community,
        as_path_prefix,
        priority,
        action,
    })
}

/// `cidr`, `matchOperator` and `prefixLength`, which need one another.
fn prefixes(fields: &mut Fields<'_>, family: Family) -> Option<PrefixMatch> {
    let v4 = family.is_ipv4();
    let wanted = if v4 {
        "an IPv4 prefix such as 10.0.0.0/16 (IPv6 rules belong in importV6 and exportV6)"
    } else {
        "an IPv6 prefix such as fd00::/48 (IPv4 rules belong in importV4 and exportV4)"
    };
    let cidr = fields.take("cidr");
    let net = cidr.as_ref().and_then(|item| {
        let net: IpNet = item
            .parse_with(wanted, |text| text.parse().ok().filter(|net| matches!(net, IpNet::V4(_)) == v4))?;
        if net != net.trunc() {
            item.flaw(Mistake::HostBits { masked: net.trunc() });
        }
        Some(net.trunc())
    });
    let written = fields.take("matchOperator");
    let operator = written.as_ref().and_then(|item| {
        let of = [MatchOperator::Equal, MatchOperator::NotEqual, MatchOperator::In, MatchOperator::NotIn];
        of.get(item.word(&["Equal", "NotEqual", "In", "NotIn"])?).copied()
    });
    match (&cidr, &written) {
        (Some(_), None) => {
            let rule = "cidr needs matchOperator: Equal, NotEqual, In or NotIn";
            fields.flaw(Mistake::Conflict { rule });
        }
        (None, Some(_)) => fields.flaw(Mistake::Conflict { rule: "matchOperator needs cidr" }),
        (Some(_), Some(_)) | (None, None) => {}
    }
    let lengths = fields.take("prefixLength");
    if lengths.is_some() && cidr.is_none() {
        fields.flaw(Mistake::Conflict { rule: "prefixLength needs cidr" });
    }
    let (mut min, mut max) = (None, None);
    if let Some(mut bounds) = lengths.as_ref().and_then(Item::fields) {
        let (wanted, longest) = if v4 { ("a length, 0 to 32", 32) } else { ("a length, 0 to 128", 128) };
        min = bounds.take("min").and_then(|item| item.number(wanted, 0..=longest));
        max = bounds.take("max").and_then(|item| item.number(wanted, 0..=longest));
        bounds.finish();
    }
    let (net, operator) = (net?, operator?);
    let found = PrefixMatch::new(net, operator, min, max);
    if let Some(item) = &lengths {
        let effect = match (found.range, found.negated) {
            (None, false) => Some("no prefix of the cidr has such a length, so the rule matches nothing"),
            (None, true) => Some("no prefix of the cidr has such a length, so the rule matches every prefix"),
            (Some(_), _) if matches!(operator, MatchOperator::Equal | MatchOperator::NotEqual) => {
                Some("has no use with Equal and NotEqual, which are about one length")
            }
            (Some(_), _) => None,
        };
        if let Some(effect) = effect {
            item.flaw(Mistake::Doubtful { effect });
        }
    }
    Some(found)
}

/// `communities: {values: [one]}`.
fn one_community(item: &Item<'_>) -> Option<AnyCommunity> {
    let mut fields = item.fields()?;
    let values = fields.need("values").map(|values| values.list()).unwrap_or_default();
    fields.finish();
    match &values[..] {
        [one] => community(one),
        _ => {
            item.flaw(Mistake::Conflict {
                rule: "values must hold exactly one community; write a rule for each",
            });
            None
        }
    }
}

fn as_numbers(item: &Item<'_>) -> Vec<Asn> {
    item.list().iter().filter_map(|item| as_number(item).map(Asn)).collect()
}

fn operation(item: &Item<'_>) -> Option<Operation> {
    let mut fields = item.fields()?;
    let add = fields.take("addCommunity");
    let prepend = fields.take("prependASPath");
    let set = fields.take("setPriority");
    let several = [&add, &prepend, &set].into_iter().flatten().count() != 1;
    if several {
        let rule = "an operation is one of addCommunity, prependASPath and setPriority";
        fields.flaw(Mistake::Conflict { rule });
    }
    fields.finish();
    /// The value of the operation's only field.
    fn inside<T>(item: &Item<'_>, key: &'static str, read: impl Fn(&Item<'_>) -> Option<T>) -> Option<T> {
        let mut fields = item.fields()?;
        let value = fields.need(key);
        fields.finish();
        read(&value?)
    }
    let add = add.and_then(|item| inside(&item, "value", community)).map(Operation::AddCommunity);
    let prepend = prepend.and_then(|item| inside(&item, "prefix", path)).map(Operation::PrependAsPath);
    let set = set.and_then(|item| inside(&item, "value", route_priority)).map(Operation::SetPriority);
    add.or(prepend).or(set).filter(|_| !several)
}

/// What goes in front of an AS path.
fn path(item: &Item<'_>) -> Option<Vec<Asn>> {
    let path = as_numbers(item);
    if path.is_empty() || path.len() > 10 || path.contains(&Asn(0)) {
        item.flaw(Mistake::Conflict { rule: "prefix must hold 1 to 10 AS numbers, none of them 0" });
        return None;
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::super::Object;
    use super::super::object::tests::{one, problems};
    use super::*;
    use agent_core::model::RoutePriority;
    use bgp_core::{Community, LargeCommunity};

    const HEAD: &str = "apiVersion: projectcalico.org/v3\nkind: BGPFilter\nmetadata: {name: f}\nspec:\n";

    fn filter(spec: &str) -> Filter {
        let (_, object) = one(&format!("{HEAD}{spec}"));
        let Object::BgpFilter(filter) = object else { panic!("{object:?}") };
        filter
    }

    #[test]
    fn every_field_is_read() {
        let read = filter(
            "  importV4:\n  - {cidr: 10.0.0.0/8, matchOperator: NotIn, prefixLength: {min: 16, max: 24}, source: RemotePeers,\n    \
             interface: \"*.calico\", peerType: iBGP, communities: {values: [\"65000:1\"]}, asPathPrefix: [65001, \"1.2\"],\n    \
             priority: 512, action: Accept, operations: [{addCommunity: {value: \"1:2:3\"}}, {prependASPath: {prefix: [7, 8]}},\n    \
             {setPriority: {value: 100}}]}\n  - {action: Reject}\n  exportV6:\n  - {cidr: \"fd00::/48\", matchOperator: In, peerType: eBGP, action: Accept}\n",
        );
        let priority = |n| RoutePriority::new(n).unwrap();
        let first = FilterRule {
            number: 1,
            prefixes: Some(PrefixMatch {
                range: Some("10.0.0.0/8 ge 16 le 24".parse().unwrap()),
                negated: true,
            }),
            learned: true,
            interface: Glob::parse("*.calico"),
            peer_type: Some(PeerType::Internal),
            community: Some(AnyCommunity::Standard(Community::new(65000, 1))),
            as_path_prefix: vec![Asn(65001), Asn(65538)],
            priority: Some(priority(512)),
            action: FilterAction::Accept(vec![
                Operation::AddCommunity(AnyCommunity::Large(LargeCommunity::new(1, 2, 3))),
                Operation::PrependAsPath(vec![Asn(7), Asn(8)]),
                Operation::SetPriority(priority(100)),
            ]),
        };
        assert_eq!(read.import_v4, [first, FilterRule::every(2, FilterAction::Reject)]);
        assert_eq!((read.export_v4.len(), read.import_v6.len()), (0, 0));
        let [six] = &read.export_v6[..] else { panic!("{read:?}") };
        assert_eq!(six.prefixes.unwrap().range, Some("fd00::/48 le 128".parse().unwrap()));
        assert_eq!(six.peer_type, Some(PeerType::External));
    }

    #[test]
    fn an_object_without_rules_is_one() {
        assert_eq!(filter("  importV4: []\n"), Filter::default());
    }

    #[test]
    fn mistakes() {
        let cases = [
            (
                "cidr: fd00::/48, matchOperator: In, action: Accept",
                "importV4[0].cidr: must be an IPv4 prefix such as 10.0.0.0/16 (IPv6 rules belong in importV6 and exportV6), not \"fd00::/48\"",
            ),
            (
                "cidr: 10.0.0.0/8, action: Accept",
                "importV4[0]: cidr needs matchOperator: Equal, NotEqual, In or NotIn",
            ),
            ("matchOperator: In, action: Accept", "importV4[0]: matchOperator needs cidr"),
            ("prefixLength: {min: 8}, action: Accept", "importV4[0]: prefixLength needs cidr"),
            (
                "cidr: 10.0.0.0/8, matchOperator: Inside, action: Accept",
                "importV4[0].matchOperator: must be Equal, NotEqual, In or NotIn, not \"Inside\"",
            ),
            (
                "cidr: 10.0.0.0/8, matchOperator: In, prefixLength: {max: 33}, action: Accept",
                "importV4[0].prefixLength.max: must be a length, 0 to 32, not \"33\"",
            ),
            ("action: accept", "importV4[0].action: must be Accept or Reject, not \"accept\""),
            ("source: Peers, action: Accept", "importV4[0].source: must be RemotePeers, not \"Peers\""),
            (
                "interface: \"eth[0]\", action: Accept",
                "importV4[0].interface: must be an interface's name of 1 to 15 letters, digits, \"_\", \".\" and \"-\", with \"*\" for any run of them, not \"eth[0]\"",
            ),
            (
                "communities: {values: [\"1:1\", \"1:2\"]}, action: Accept",
                "importV4[0].communities: values must hold exactly one community; write a rule for each",
            ),
            (
                "communities: {values: [\"01:1\"]}, action: Accept",
                "importV4[0].communities.values[0]: must be a community such as 64512:100 or 64512:1:2, not \"01:1\"",
            ),
            (
                "priority: 0, action: Accept",
                "importV4[0].priority: must be a priority, 1 to 2147483646, not \"0\"",
            ),
            (
                "action: Reject, operations: [{setPriority: {value: 1}}]",
                "importV4[0]: operations go with action Accept only",
            ),
            (
                "action: Accept, operations: [{setPriority: {value: 1}, addCommunity: {value: \"1:1\"}}]",
                "importV4[0].operations[0]: an operation is one of addCommunity, prependASPath and setPriority",
            ),
            (
                "action: Accept, operations: []",
                "importV4[0].operations: there may be 1 to 10 operations; without any, leave the field out",
            ),
            (
                "action: Accept, operations: [{prependASPath: {prefix: [0]}}]",
                "importV4[0].operations[0].prependASPath.prefix: prefix must hold 1 to 10 AS numbers, none of them 0",
            ),
            (
                "cidr: 10.0.0.0/8, matchoperator: In, matchOperator: In, action: Accept",
                "importV4[0].matchoperator: unknown field; did you mean \"matchOperator\"?",
            ),
            (
                "asPathPrefix: [x], action: Accept",
                "importV4[0].asPathPrefix[0]: must be an AS number such as 64512 or 6.10, not \"x\"",
            ),
        ];
        for (rule, expected) in cases {
            assert_eq!(
                problems(&format!("{HEAD}  importV4:\n  - {{{rule}}}\n")),
                [format!("line 6: spec.{expected}")],
                "{rule}"
            );
        }
        assert_eq!(
            problems(&format!("{HEAD}  importV6:\n  - {{cidr: 10.0.0.0/8, matchOperator: In}}\n")),
            [
                "line 6: spec.importV6[0].cidr: must be an IPv6 prefix such as fd00::/48 (IPv4 rules belong in importV4 and exportV4), not \"10.0.0.0/8\"",
                "line 6: spec.importV6[0].action: is required",
            ]
        );
    }

    #[test]
    fn what_is_doubtful_stays_and_is_told() {
        let cases = [
            ("cidr: 10.0.0.7/8, matchOperator: In", ".cidr: has host bits set; read as 10.0.0.0/8"),
            (
                "cidr: 10.0.0.0/8, matchOperator: In, prefixLength: {min: 24, max: 16}",
                ".prefixLength: no prefix of the cidr has such a length, so the rule matches nothing",
            ),
            (
                "cidr: 10.0.0.0/8, matchOperator: NotIn, prefixLength: {max: 4}",
                ".prefixLength: no prefix of the cidr has such a length, so the rule matches every prefix",
            ),
            (
                "cidr: 10.0.0.0/8, matchOperator: Equal, prefixLength: {max: 24}",
                ".prefixLength: has no use with Equal and NotEqual, which are about one length",
            ),
        ];
        for (rule, expected) in cases {
            let spec = format!("  exportV4:\n  - {{{rule}, action: Accept}}\n");
            assert_eq!(problems(&format!("{HEAD}{spec}")), [format!("line 6: spec.exportV4[0]{expected}")]);
            assert_eq!(filter(&spec).export_v4.len(), 1);
        }
    }

    #[test]
    fn a_rule_is_named_by_list_and_number() {
        assert_eq!(rule_of("spec.exportV4[1].cidr").as_deref(), Some("exportV4 rule 2"));
        assert_eq!(rule_of("spec.importV6[0]").as_deref(), Some("importV6 rule 1"));
        assert_eq!(rule_of("spec.importV6"), None);
    }
}
