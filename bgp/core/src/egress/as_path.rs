//! The AS path that an external peer is told, where there is more to it than our AS number in front (RFC 4271 section
//! 5.1.2): what policy puts before it, the AS that we have moved from (RFC 7705), private numbers (RFC 6996) and the
//! peer's own. Segments of a confederation, which an internal neighbour may have said, do not leave it (RFC 5065 section 6.1).
//!
//! From left to right: what policy prepends, the number that the peer knows us by, the speaker's own behind it where the
//! peer is to see both, and the path of the route without what is to be removed or replaced in it. What is in front of the
//! route's own path is never removed.

use bgp_wire::Asn;
use bgp_wire::attr::{AsPath, SegmentKind};
use smallvec::SmallVec;

use crate::command::RemovePrivateAs;

/// What becomes of the paths of routes that a peer is told, beside our AS number in front.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathRules {
    /// The speaker's own AS number, where it follows the one that the peer knows us by.
    pub(crate) behind: Option<Asn>,
    pub(crate) remove_private: Option<RemovePrivateAs>,
    /// The peer's AS number is replaced by ours.
    pub(crate) as_override: bool,
    /// The peer's AS number, where it counts.
    pub(crate) remote: Option<Asn>,
}

impl PathRules {
    /// The rules for such a peer; none where there is nothing to do, so that peers whom they do not tell apart share them.
    pub(crate) fn new(
        behind: Option<Asn>,
        remove_private: Option<RemovePrivateAs>,
        as_override: bool,
        remote: Asn,
    ) -> Option<Self> {
        let remote = (as_override || remove_private.is_some()).then_some(remote);
        let rules = Self { behind, remove_private, as_override, remote };
        (behind.is_some() || remote.is_some()).then_some(rules)
    }
}

/// The numbers in front of a route's own path, the leftmost first: `prepends` in the order of policy's acts, each of them
/// before what was there.
pub(super) fn front(prepends: &[(Asn, u8)], local: Asn, rules: Option<&PathRules>) -> SmallVec<[Asn; 8]> {
    let repeated = |&(asn, times): &(Asn, u8)| std::iter::repeat_n(asn, usize::from(times));
    let prepends = prepends.iter().rev().flat_map(repeated);
    prepends.chain([local]).chain(rules.and_then(|rules| rules.behind)).collect()
}

/// Whether there is something of a confederation in a path.
pub(super) fn has_confederation(path: &[u8]) -> bool {
    AsPath::new(path).segments().any(|segment| is_of_confederation(segment.kind))
}

const fn is_of_confederation(kind: SegmentKind) -> bool {
    matches!(kind, SegmentKind::ConfedSequence | SegmentKind::ConfedSet)
}

/// Appends the octets of a path: `front`, then `path` as the rules make it.
pub(super) fn write(front: &[Asn], path: &[u8], local: Asn, rules: Option<&PathRules>, out: &mut Vec<u8>) {
    let mut writer = Writer { out, open: None };
    writer.segment(SegmentKind::Sequence, front.iter().copied());
    let mut leading = true;
    for segment in AsPath::new(path).segments().filter(|segment| !is_of_confederation(segment.kind)) {
        let told = segment.asns().filter_map(|asn| match rules {
            Some(rules) => told(asn, local, rules, &mut leading),
            None => Some(asn),
        });
        writer.segment(segment.kind, told);
    }
}

/// What stands for a number in the path that is told; `leading` says that only private ones stood before it.
fn told(asn: Asn, local: Asn, rules: &PathRules, leading: &mut bool) -> Option<Asn> {
    if rules.remote == Some(asn) {
        *leading = false;
        return Some(if rules.as_override { local } else { asn });
    }
    let Some(remove) = rules.remove_private else { return Some(asn) };
    if !is_private(asn) {
        *leading = false;
        return Some(asn);
    }
    if !(remove.all || *leading) {
        return Some(asn);
    }
    remove.replace.then_some(local)
}

/// RFC 6996 section 5.
const fn is_private(asn: Asn) -> bool {
    matches!(asn.0, 64_512..=65_534 | 4_200_000_000..=4_294_967_294)
}

/// Writes segments, and joins sequences that follow one another as far as they have room.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Where the last segment begins, and its kind.
    open: Option<(usize, SegmentKind)>,
}

impl Writer<'_> {
    fn segment(&mut self, kind: SegmentKind, asns: impl Iterator<Item = Asn>) {
        // Only sequences say the same when they are joined.
        if kind != SegmentKind::Sequence {
            self.open = None;
        }
        for asn in asns {
            let at = match self.open {
                Some((at, open)) if open == kind && self.out[at + 1] < u8::MAX => at,
                Some(_) | None => {
                    let at = self.out.len();
                    self.out.extend_from_slice(&[kind as u8, 0]);
                    self.open = Some((at, kind));
                    at
                }
            };
            self.out[at + 1] += 1;
            self.out.extend_from_slice(&asn.0.to_be_bytes());
        }
        if kind != SegmentKind::Sequence {
            self.open = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bgp_wire::attr::{Builder, Canonical, Origin};

    const LOCAL: Asn = Asn(65010);
    const REMOTE: Asn = Asn(65020);

    fn path(text: &str) -> Vec<u8> {
        let mut builder = Builder::new(Origin::Igp);
        for asn in text.split_whitespace().rev() {
            builder.prepend(Asn(asn.parse().unwrap()), 1);
        }
        let octets = builder.build();
        Canonical(&octets).as_path().octets().to_vec()
    }

    fn written(prepends: &[(Asn, u8)], octets: &[u8], rules: Option<PathRules>) -> String {
        let mut out = Vec::new();
        write(&front(prepends, LOCAL, rules.as_ref()), octets, LOCAL, rules.as_ref(), &mut out);
        AsPath::new(&out).to_string()
    }

    fn removing(all: bool, replace: bool) -> Option<PathRules> {
        PathRules::new(None, Some(RemovePrivateAs { all, replace }), false, REMOTE)
    }

    #[test]
    fn nothing_to_do_is_no_rule() {
        assert_eq!(PathRules::new(None, None, false, REMOTE), None);
        // Peers of different AS numbers are told the same.
        let behind = |remote| PathRules::new(Some(Asn(1)), None, false, remote);
        assert_eq!(behind(Asn(2)), behind(Asn(3)));
        let removed =
            |remote| PathRules::new(None, Some(RemovePrivateAs { all: true, replace: false }), false, remote);
        assert_ne!(removed(Asn(2)), removed(Asn(3)), "the peer's own number stays");
    }

    /// RFC 4271 section 5.1.2 b, RFC 7705 section 3; policy's prepends before our own number.
    #[test]
    fn policy_first_then_who_we_seem_to_be_then_who_we_are() {
        let behind = PathRules::new(Some(Asn(65000)), None, false, REMOTE);
        assert_eq!(written(&[], &path("7"), None), "65010 7");
        assert_eq!(written(&[], &path("7"), behind), "65010 65000 7");
        let prepends = [(Asn(1), 2), (Asn(2), 1)];
        assert_eq!(written(&prepends, &path("7"), behind), "2 1 1 65010 65000 7");
        assert_eq!(written(&[], &[], None), "65010");
    }

    /// RFC 4271 section 5.1.2: no segment gets more than 255 numbers.
    #[test]
    fn long_paths_get_another_segment() {
        let out = |octets: &[u8]| {
            let mut out = Vec::new();
            write(&front(&[(Asn(1), 200)], LOCAL, None), octets, LOCAL, None, &mut out);
            AsPath::new(&out).segments().map(|segment| segment.asns().len()).collect::<Vec<_>>()
        };
        assert_eq!(out(&path(&"7 ".repeat(54))), [255]);
        assert_eq!(out(&path(&"7 ".repeat(100))), [255, 46]);
    }

    /// RFC 6996 section 4: private numbers must not go to where they mean nothing.
    #[test]
    fn private_numbers_go() {
        let mixed = path("64512 4200000000 7 65534 64511 65535 4294967294 4294967295");
        assert_eq!(
            written(&[], &mixed, removing(false, false)),
            "65010 7 65534 64511 65535 4294967294 4294967295"
        );
        assert_eq!(written(&[], &mixed, removing(true, false)), "65010 7 64511 65535 4294967295");
        assert_eq!(
            written(&[], &mixed, removing(false, true)),
            "65010 65010 65010 7 65534 64511 65535 4294967294 4294967295"
        );
        assert_eq!(
            written(&[], &mixed, removing(true, true)),
            "65010 65010 65010 7 65010 64511 65535 65010 4294967295"
        );
        assert_eq!(written(&[], &path("64512 64513"), removing(true, false)), "65010");
        // Not what policy puts there on purpose.
        assert_eq!(written(&[(Asn(64999), 1)], &path("64512"), removing(true, false)), "64999 65010");
    }

    #[test]
    fn the_peers_own_number_stays_and_is_replaced_only_by_as_override() {
        assert_eq!(written(&[], &path("64512 65020 64513"), removing(false, false)), "65010 65020 64513");
        assert_eq!(written(&[], &path("64512 65020 64513"), removing(true, false)), "65010 65020");
        let over = PathRules::new(None, None, true, REMOTE);
        assert_eq!(written(&[], &path("65020 65020 7 65020"), over), "65010 65010 65010 7 65010");
        let both = PathRules::new(None, Some(RemovePrivateAs { all: true, replace: false }), true, REMOTE);
        assert_eq!(written(&[], &path("64512 65020 7"), both), "65010 65010 7");
    }

    #[test]
    fn what_is_of_a_confederation_stays_in_it() {
        // (65001 65002) [65003] 7 and a set.
        let octets = [
            &[3, 2, 0, 0, 0xfd, 0xe9, 0, 0, 0xfd, 0xea, 4, 1, 0, 0, 0xfd, 0xeb][..],
            &[2, 1, 0, 0, 0, 7, 1, 1, 0, 0, 0, 8],
        ]
        .concat();
        assert!(has_confederation(&octets) && !has_confederation(&octets[16..]));
        assert_eq!(written(&[], &octets, None), "65010 7 {8}");
        assert_eq!(written(&[(Asn(1), 1)], &octets, removing(true, false)), "1 65010 7 {8}");
    }

    #[test]
    fn sets_stay_sets() {
        // {64512,7} after a sequence of 3, then {64513}.
        let octets = [2, 1, 0, 0, 0, 3, 1, 2, 0, 0, 0xfc, 0, 0, 0, 0, 7, 1, 1, 0, 0, 0xfc, 1];
        assert_eq!(written(&[], &octets, None), "65010 3 {64512,7} {64513}");
        assert_eq!(written(&[], &octets, removing(true, false)), "65010 3 {7}");
    }
}
