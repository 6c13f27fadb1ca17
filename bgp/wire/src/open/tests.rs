use super::*;
use crate::{
    capability::AddPath,
    frame::split_message,
    notification::{Notification, Reason},
};

fn raw(open: &Open) -> BytesMut {
    let mut out = BytesMut::new();
    open.encode(&mut out).unwrap();
    out
}

fn body(parameters: &[u8]) -> Vec<u8> {
    let mut body = vec![4, 0xfd, 0xfc, 0, 90, 192, 0, 2, 20, parameters.len() as u8];
    body.extend_from_slice(parameters);
    body
}

fn refusal(body: &[u8]) -> Notification {
    Open::parse(body).unwrap_err().notification
}

#[test]
fn goes_there_and_back() {
    let open = Open::new(
        Asn(70_000),
        90,
        RouterId(0xc000_0214),
        vec![
            Capability::Multiprotocol(1, 1),
            Capability::Multiprotocol(25, 70),
            Capability::RouteRefresh,
            Capability::ExtendedMessage,
            Capability::FourOctetAs(Asn(70_000)),
            Capability::AddPath(vec![AddPath { afi: 1, safi: 1, receive: true, send: false }]),
            Capability::EnhancedRouteRefresh,
            Capability::Unknown { code: 75, value: Box::new([0]) },
        ],
    );
    assert_eq!(open.my_as, 23456);
    let raw = raw(&open);
    let frame = split_message(&raw, 4096).unwrap().unwrap();
    assert_eq!(Open::parse(frame.body), Ok(open));
}

#[test]
fn many_capabilities_take_the_long_form() {
    for count in [126, 127, 128, 1000] {
        let open = Open::new(Asn(1), 3, RouterId(1), vec![Capability::RouteRefresh; count]);
        let raw = raw(&open);
        assert_eq!(raw[28] == 255 && raw[29] == 255, count > 126);
        assert_eq!(Open::parse(&raw[HEADER_LEN..]), Ok(open), "{count}");
    }
}

#[test]
fn what_does_not_fit_is_not_sent() {
    let long = Capability::Unknown { code: 75, value: vec![0; 256].into() };
    let mut out = BytesMut::new();
    assert_eq!(Open::new(Asn(1), 3, RouterId(1), vec![long]).encode(&mut out), Err(OpenTooLong));
    let many = Open::new(Asn(1), 3, RouterId(1), vec![Capability::RouteRefresh; 2100]);
    assert_eq!(many.encode(&mut out), Err(OpenTooLong));
    assert!(out.is_empty());
}

#[test]
fn several_parameters_with_several_capabilities_each() {
    let open =
        Open::parse(&body(&[2, 6, 1, 4, 0, 1, 0, 1, 2, 8, 2, 0, 65, 4, 0, 0, 0xfd, 0xfc, 2, 0])).unwrap();
    assert_eq!(
        open.capabilities,
        [Capability::Multiprotocol(1, 1), Capability::RouteRefresh, Capability::FourOctetAs(Asn(65020))]
    );
    assert_eq!(Open::parse(&body(&[])).unwrap().capabilities, []);
}

#[test]
fn long_form_of_few_parameters_is_read() {
    let mut long = body(&[]);
    long[9] = 255;
    long.extend_from_slice(&[255, 0, 5, 2, 0, 2, 2, 0]);
    assert_eq!(Open::parse(&long).unwrap().capabilities, [Capability::RouteRefresh]);
    // RFC 9072 section 2: the one-octet length need not be 255, the type decides.
    long[9] = 8;
    assert_eq!(Open::parse(&long).unwrap().capabilities, [Capability::RouteRefresh]);
    for cut in 10..long.len() {
        assert_eq!(refusal(&long[..cut]), Notification::new(Reason::OpenUnspecific), "{cut}");
    }
}

#[test]
fn refusals_name_the_fault() {
    let good = body(&[]);
    let with = |at: usize, octets: &[u8]| {
        let mut body = good.clone();
        body[at..at + octets.len()].copy_from_slice(octets);
        body
    };
    assert_eq!(refusal(&with(0, &[3])), Notification::with_data(Reason::UnsupportedVersion, &[0, 4]));
    assert_eq!(refusal(&with(1, &[0, 0])), Notification::new(Reason::BadPeerAs));
    assert_eq!(refusal(&body(&[2, 6, 65, 4, 0, 0, 0, 0])), Notification::new(Reason::BadPeerAs));
    assert_eq!(refusal(&with(5, &[0; 4])), Notification::new(Reason::BadBgpIdentifier));
    for seconds in [1, 2] {
        assert_eq!(refusal(&with(3, &[0, seconds])), Notification::new(Reason::UnacceptableHoldTime));
    }
    assert!(Open::parse(&with(3, &[0, 3])).is_ok());
    assert!(Open::parse(&with(3, &[0, 0])).is_ok());
    assert_eq!(refusal(&body(&[1, 1, 0])), Notification::new(Reason::UnsupportedOptionalParameter));
}

#[test]
fn lengths_that_contradict_one_another_are_refused() {
    let unspecific = Notification::new(Reason::OpenUnspecific);
    for parameters in [&[2][..], &[2, 1], &[2, 5, 2, 0], &[2, 1, 2], &[2, 3, 65, 4, 0]] {
        assert_eq!(refusal(&body(parameters)), unspecific, "{parameters:?}");
    }
    let mut more = body(&[2, 2, 2, 0]);
    more.push(0);
    assert_eq!(refusal(&more), unspecific);
    assert_eq!(refusal(&more[..9]), Notification::with_data(Reason::BadMessageLength, &[0, 28]));
}
