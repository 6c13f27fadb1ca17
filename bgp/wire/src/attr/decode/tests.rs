use super::*;
use crate::{attr::AttrIter, notification::Notification};

/// From an external peer that speaks 4-octet AS numbers; nothing is mandatory, so that one attribute can
/// stand alone.
pub(crate) fn external() -> DecodeCtx {
    DecodeCtx { four_octet: true, ebgp: true, ..DecodeCtx::default() }
}

pub(crate) fn internal() -> DecodeCtx {
    DecodeCtx { ebgp: false, ..external() }
}

pub(crate) fn two_octet() -> DecodeCtx {
    DecodeCtx { four_octet: false, ..external() }
}

pub(crate) struct Kept(Vec<u8>);

impl Kept {
    pub(crate) fn as_ref(&self) -> Canonical<'_> {
        Canonical(&self.0)
    }

    pub(crate) fn facts(&self) -> AttrFacts {
        self.as_ref().facts()
    }
}

fn decoded(ctx: DecodeCtx, section: &[u8]) -> Decoded {
    decode(AttrIter::new(section), ctx).unwrap()
}

pub(crate) fn canonical_of(ctx: DecodeCtx, section: &[u8]) -> Kept {
    let decoded = decoded(ctx, section);
    assert_eq!(decoded.treat_as_withdraw, None);
    assert_eq!(decoded.facts, Canonical(&decoded.canonical).facts());
    Kept(decoded.canonical)
}

pub(crate) fn withdrawn_for(ctx: DecodeCtx, section: &[u8]) -> Option<(u8, AttrProblem)> {
    decoded(ctx, section).treat_as_withdraw.map(|fault| (fault.code, fault.what))
}

pub(crate) fn discarded_for(ctx: DecodeCtx, section: &[u8]) -> Vec<(u8, AttrProblem)> {
    decoded(ctx, section).discarded.iter().map(|fault| (fault.code, fault.what)).collect()
}

pub(crate) fn reset_for(ctx: DecodeCtx, section: &[u8]) -> Option<Notification> {
    decode(AttrIter::new(section), ctx).err().map(|error| error.notification)
}

#[test]
fn the_form_does_not_depend_on_order_or_headers() {
    let one = [
        &[0x40, 1, 1, 0][..],
        &[0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xfc],
        &[0x40, 3, 4, 192, 0, 2, 20],
        &[0x80, 4, 4, 0, 0, 0, 77],
        &[0xc0, 8, 4, 0, 1, 0, 1],
    ]
    .concat();
    let other = [
        &[0xd0, 8, 0, 4, 0, 1, 0, 1][..],
        &[0x9f, 4, 0, 4, 0, 0, 0, 77],
        &[0x50, 2, 0, 6, 2, 1, 0, 0, 0xfd, 0xfc],
        &[0x40, 1, 1, 0],
        &[0x40, 3, 4, 192, 0, 2, 20],
    ]
    .concat();
    let (one, other) = (decoded(external(), &one), decoded(external(), &other));
    assert_eq!(one, other);
    assert_eq!(one.next_hop.unwrap().to_string(), "192.0.2.20");
    assert_eq!(Canonical(&one.canonical).attr(3), None);
}

#[test]
fn the_first_of_several_counts() {
    let section = [0x80, 4, 4, 0, 0, 0, 1, 0x80, 4, 4, 0, 0, 0, 2, 0xc0, 99, 0, 0xc0, 99, 1, 1];
    assert_eq!(canonical_of(external(), &section).facts().med, Some(1));
    assert_eq!(
        discarded_for(external(), &section),
        [(4, AttrProblem::Repeated), (99, AttrProblem::Repeated)]
    );
    // Even if it is malformed.
    let section = [0x80, 4, 3, 0, 0, 1, 0x80, 4, 4, 0, 0, 0, 2];
    assert_eq!(withdrawn_for(external(), &section), Some((4, AttrProblem::Length)));
}

#[test]
fn the_strongest_consequence_wins() {
    let section = [0x40, 6, 1, 0, 0x80, 4, 0, 0xc0, 7, 0];
    let decoded = decoded(external(), &section);
    assert_eq!(decoded.treat_as_withdraw.map(|fault| fault.code), Some(4));
    assert_eq!(decoded.discarded.iter().map(|fault| fault.code).collect::<Vec<_>>(), [6, 7]);
    assert!(reset_for(external(), &[&section[..], &[0x40, 99, 0]].concat()).is_some());
}

#[test]
fn what_is_mandatory_depends_on_what_is_announced() {
    let all = [0x40, 1, 1, 0, 0x40, 2, 0, 0x40, 3, 4, 192, 0, 2, 20];
    let classic = DecodeCtx { reachable: true, classic: true, ..external() };
    let multiprotocol = DecodeCtx { reachable: true, ..external() };
    assert_eq!(withdrawn_for(classic, &all), None);
    assert_eq!(withdrawn_for(classic, &all[..7]), Some((3, AttrProblem::Missing)));
    assert_eq!(withdrawn_for(multiprotocol, &all[..7]), None);
    assert_eq!(withdrawn_for(multiprotocol, &all[..4]), Some((2, AttrProblem::Missing)));
    assert_eq!(withdrawn_for(multiprotocol, &all[4..]), Some((1, AttrProblem::Missing)));
    assert_eq!(withdrawn_for(external(), &[]), None);
    let sr_policy = DecodeCtx { sr_policy: true, ..multiprotocol };
    assert_eq!(withdrawn_for(sr_policy, &all[..7]), Some((23, AttrProblem::Missing)));
    let tunnel = [&all[..7], &[0xc0, 23, 4, 0, 15, 0, 0]].concat();
    assert_eq!(withdrawn_for(sr_policy, &tunnel), None);
    assert_eq!(
        withdrawn_for(sr_policy, &[&all[..7], &[0xc0, 23, 4, 0, 8, 0, 0]].concat()),
        Some((23, AttrProblem::Value))
    );
}

#[test]
fn contexts_have_different_tags() {
    let mut tags: Vec<u8> = Vec::new();
    for bits in 0..64u8 {
        let on = |bit: u8| bits & bit != 0;
        let ctx = DecodeCtx {
            four_octet: on(1),
            ebgp: on(2),
            reachable: on(4),
            classic: on(8),
            multiprotocol: on(16),
            sr_policy: on(32),
        };
        tags.push(ctx.tag());
    }
    tags.sort_unstable();
    assert_eq!(tags, (0..64).collect::<Vec<u8>>());
}

/// One good value of each attribute that has a row, its flags, and a value of a length that it cannot have.
const GOOD: &[(u8, u8, &[u8], &[u8])] = &[
    (1, 0x40, &[0], &[]),
    (2, 0x40, &[2, 1, 0, 0, 0, 7], &[2, 1, 0]),
    (3, 0x40, &[192, 0, 2, 1], &[192, 0, 2]),
    (4, 0x80, &[0; 4], &[0; 5]),
    (5, 0x40, &[0; 4], &[0; 3]),
    (6, 0x40, &[], &[0]),
    (7, 0xc0, &[0, 0, 0, 7, 9, 9, 9, 9], &[0; 6]),
    (8, 0xc0, &[0; 4], &[0; 6]),
    (9, 0x80, &[0; 4], &[0; 5]),
    (10, 0x80, &[0; 8], &[]),
    (16, 0xc0, &[0; 8], &[0; 9]),
    (17, 0xc0, &[2, 1, 0, 0, 0, 7], &[]),
    (18, 0xc0, &[0, 0, 0, 7, 9, 9, 9, 9], &[0; 6]),
    (23, 0xc0, &[0, 8, 0, 0], &[0, 8, 0]),
    (32, 0xc0, &[0; 12], &[0; 8]),
    (35, 0xc0, &[0; 4], &[0; 3]),
    (40, 0xc0, &[9, 0, 0], &[9, 0]),
];

#[test]
fn each_row_has_its_consequences() {
    let attr = |flags, code, value: &[u8]| [&[flags, code, value.len() as u8], value].concat();
    for &(code, flags, good, bad) in GOOD {
        let (as4, inside) = (matches!(code, 17 | 18), matches!(code, 5 | 9 | 10));
        // From whom it is taken, and from whom not.
        let ctx = DecodeCtx { four_octet: !as4, ebgp: !inside, ..DecodeCtx::default() };
        let decoded_good = decoded(ctx, &attr(flags, code, good));
        assert_eq!((decoded_good.treat_as_withdraw, decoded_good.discarded.len()), (None, 0), "{code}");
        if as4 || inside {
            let other = DecodeCtx { four_octet: true, ebgp: true, ..ctx };
            for value in [good, bad] {
                assert_eq!(
                    discarded_for(other, &attr(flags, code, value)),
                    [(code, AttrProblem::OutOfPlace)]
                );
                assert_eq!(withdrawn_for(other, &attr(flags, code, value)), None);
            }
        }
        // RFC 7606 section 3(c): Optional or Transitive that contradict the type.
        for flip in [0x80, 0x40, 0xc0] {
            let found = withdrawn_for(ctx, &attr(flags ^ flip, code, good));
            assert_eq!(found, Some((code, AttrProblem::Flags)), "{code} {flip:x}");
        }
        // Partial and the unused bits contradict nothing.
        assert_eq!(withdrawn_for(ctx, &attr(flags | 0x2f, code, good)), None);
        let attr = attr(flags, code, bad);
        if matches!(code, 6 | 7 | 17 | 18 | 40) {
            assert_eq!(discarded_for(ctx, &attr), [(code, AttrProblem::Length)]);
            assert_eq!(withdrawn_for(ctx, &attr), None);
        } else {
            assert_eq!(withdrawn_for(ctx, &attr), Some((code, AttrProblem::Length)), "{code}");
        }
    }
    // None is forgotten; the two multiprotocol ones have tests of their own.
    let rows: Vec<u8> = (0..=255).filter(|code| row(*code).is_some()).collect();
    let tested: Vec<u8> =
        rows.iter().copied().filter(|code| GOOD.iter().any(|(of, ..)| of == code)).collect();
    assert_eq!(rows.len(), tested.len() + 2);
    assert_eq!(tested.len(), GOOD.len());
}

/// RFC 8654: in an extended message a path of 2-octet numbers may have more of them than an attribute of 4-octet ones.
#[test]
fn a_path_that_is_too_long_with_four_octets_counts_as_withdrawn() {
    let section = |segments: usize| {
        let path = [&[2, 255][..], &[0xfd; 510]].concat().repeat(segments);
        let [high, low] = (path.len() as u16).to_be_bytes();
        [&[0x40, 1, 1, 0, 0x50, 2, high, low][..], &path].concat()
    };
    let kept = canonical_of(two_octet(), &section(64));
    assert_eq!(kept.as_ref().as_path().length(), 64 * 255);
    assert_eq!(withdrawn_for(two_octet(), &section(65)), Some((2, AttrProblem::Length)));
    assert_eq!(withdrawn_for(two_octet(), &section(127)), Some((2, AttrProblem::Length)));
}
