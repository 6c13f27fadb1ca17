use super::super::decode::tests::{
    canonical_of, discarded_for, external, internal, two_octet, withdrawn_for,
};
use super::*;
use proptest::prelude::*;

fn path(segments: &[(SegmentKind, &[u32])]) -> Vec<u8> {
    let mut octets = Vec::new();
    for (kind, asns) in segments {
        octets.extend_from_slice(&[*kind as u8, asns.len() as u8]);
        asns.iter().for_each(|asn| octets.extend_from_slice(&asn.to_be_bytes()));
    }
    octets
}

use SegmentKind::{ConfedSequence, ConfedSet, Sequence, Set};

#[test]
fn length_neighbour_and_text() {
    let octets = path(&[(ConfedSequence, &[64512]), (Sequence, &[65020, 70000]), (Set, &[1, 2, 3])]);
    let path = AsPath::new(&octets);
    assert_eq!((path.length(), path.neighbor(), path.origin()), (3, Some(Asn(65020)), None));
    assert_eq!(path.to_string(), "(64512) 65020 70000 {1,2,3}");
    assert!(path.contains(Asn(2)) && !path.contains(Asn(4)));
    assert_eq!(AsPath::default().neighbor(), None);
}

#[test]
fn a_leading_set_has_no_neighbour() {
    let octets = path(&[(Set, &[1, 2]), (Sequence, &[3])]);
    assert_eq!((AsPath::new(&octets).neighbor(), AsPath::new(&octets).origin()), (None, Some(Asn(3))));
}

#[test]
fn malformed_paths_are_treat_as_withdraw() {
    for (value, problem) in [
        (&[2][..], AttrProblem::Length),
        (&[2, 0], AttrProblem::Length),
        (&[2, 1, 0, 0, 0], AttrProblem::Length),
        (&[2, 1, 0, 0, 0, 1, 2], AttrProblem::Length),
        (&[0, 1, 0, 0, 0, 1], AttrProblem::Length),
        (&[5, 1, 0, 0, 0, 1], AttrProblem::Length),
        (&[2, 1, 0, 0, 0, 0], AttrProblem::Value),
        (&[1, 2, 0, 0, 0, 1, 0, 0, 0, 0], AttrProblem::Value),
        (&[3, 1, 0, 0, 0, 1], AttrProblem::Value),
    ] {
        let attr = [&[0x40, 2, value.len() as u8], value].concat();
        assert_eq!(withdrawn_for(external(), &attr), Some((2, problem)), "{value:?}");
    }
    assert_eq!(withdrawn_for(internal(), &[0x40, 2, 6, 3, 1, 0, 0, 0, 1]), None);
    assert_eq!(withdrawn_for(external(), &[0x40, 2, 0]), None);
}

#[test]
fn two_octet_paths_become_four_octet_paths() {
    let kept = canonical_of(two_octet(), &[0x40, 2, 6, 2, 2, 0xfd, 0xfc, 0, 7]);
    assert_eq!(kept.as_ref().as_path().to_string(), "65020 7");
    assert_eq!(withdrawn_for(two_octet(), &[0x40, 2, 6, 2, 1, 0, 7, 0, 7]), Some((2, AttrProblem::Length)));
}

/// What AS_PATH `short` and AS4_PATH `long` make together.
fn merged(short: &[(SegmentKind, &[u32])], long: &[(SegmentKind, &[u32])]) -> String {
    let mut two = Vec::new();
    for (kind, asns) in short {
        two.extend_from_slice(&[*kind as u8, asns.len() as u8]);
        asns.iter().for_each(|asn| two.extend_from_slice(&(*asn as u16).to_be_bytes()));
    }
    AsPath::new(&widen(&two, Some(&path(long)))).to_string()
}

#[test]
fn as4_path_supplies_what_as_trans_stands_for() {
    let long: &[(SegmentKind, &[u32])] = &[(Sequence, &[70000, 80000])];
    assert_eq!(merged(&[(Sequence, &[5, 23456, 23456])], long), "5 70000 80000");
    assert_eq!(merged(&[(Sequence, &[23456, 23456])], long), "70000 80000");
    // Shorter than the AS4_PATH: that one is not used.
    assert_eq!(merged(&[(Sequence, &[23456])], long), "23456");
    // A set counts as one, confederation segments not at all.
    assert_eq!(merged(&[(Set, &[5, 6]), (Sequence, &[23456, 23456])], long), "{5,6} 70000 80000");
    assert_eq!(merged(&[(ConfedSequence, &[9]), (Sequence, &[23456, 23456])], long), "(9) 70000 80000");
    assert_eq!(merged(&[(Sequence, &[1, 23456])], &[(ConfedSet, &[9]), (Sequence, &[70000])]), "1 70000");
    assert_eq!(
        merged(&[(Sequence, &[1, 2, 3]), (Set, &[4, 23456])], &[(Set, &[4, 70000])]),
        "1 2 3 {4,70000}"
    );
}

#[test]
fn as4_path_of_a_four_octet_speaker_is_discarded_whatever_it_holds() {
    for attr in [&[0xc0, 17, 1, 0][..], &[0xc0, 17, 6, 2, 1, 0, 1, 0, 0]] {
        assert_eq!(discarded_for(external(), attr), [(17, AttrProblem::OutOfPlace)]);
        assert_eq!(withdrawn_for(external(), attr), None);
    }
    for (attr, problem) in [
        (&[0xc0, 17, 1, 0][..], AttrProblem::Length),
        (&[0xc0, 17, 0], AttrProblem::Length),
        (&[0xc0, 17, 6, 2, 1, 0, 0, 0, 0], AttrProblem::Value),
    ] {
        assert_eq!(discarded_for(two_octet(), attr), [(17, problem)]);
        assert_eq!(withdrawn_for(two_octet(), attr), None);
    }
}

#[test]
fn prepending_joins_a_leading_sequence_that_has_room() {
    let text = |octets: &[u8], asn, times| {
        let longer = prepend(AsPath::new(octets), Asn(asn), times);
        assert_eq!(check_as_path(&longer, external()), Ok(()));
        (AsPath::new(&longer).to_string(), AsPath::new(&longer).segments().count())
    };
    assert_eq!(text(&[], 7, 1), ("7".into(), 1));
    assert_eq!(text(&path(&[(Sequence, &[5])]), 7, 2), ("7 7 5".into(), 1));
    assert_eq!(text(&path(&[(Set, &[5])]), 7, 1), ("7 {5}".into(), 2));
    assert_eq!(text(&path(&[(Sequence, &[5])]), 7, 0), ("5".into(), 1));
    let full = path(&[(Sequence, &[5; 254])]);
    let longer = prepend(AsPath::new(&full), Asn(7), 3);
    assert_eq!((AsPath::new(&longer).length(), AsPath::new(&longer).segments().count()), (257, 2));
    assert_eq!(AsPath::new(&longer).neighbor(), Some(Asn(7)));
    assert_eq!(check_as_path(&longer, external()), Ok(()));
}

prop_compose! {
    fn any_path()(segments in prop::collection::vec(
        (prop_oneof![Just(Set), Just(Sequence)], prop::collection::vec(1u32..100_000, 1..6)), 0..4)) -> Vec<u8> {
        let segments: Vec<_> = segments.iter().map(|(kind, asns)| (*kind, &asns[..])).collect();
        path(&segments)
    }
}

proptest! {
    /// A 2-octet speaker between two 4-octet speakers loses nothing but the borders between sequences.
    #[test]
    fn narrow_then_wide_is_the_same_path(octets in any_path()) {
        let (two, as4_path) = narrow(AsPath::new(&octets));
        prop_assert_eq!(check_as_path(&two, two_octet()), Ok(()));
        let wide = widen(&two, as4_path.as_deref());
        prop_assert_eq!(AsPath::new(&wide).to_string(), AsPath::new(&octets).to_string());
        if as4_path.is_none() {
            prop_assert_eq!(wide, octets);
        }
    }

    #[test]
    fn prepending_adds_to_the_length(octets in any_path(), times: u8) {
        let longer = prepend(AsPath::new(&octets), Asn(9), times);
        prop_assert_eq!(AsPath::new(&longer).length(), AsPath::new(&octets).length() + u32::from(times));
        prop_assert_eq!(check_as_path(&longer, external()), Ok(()));
    }
}
