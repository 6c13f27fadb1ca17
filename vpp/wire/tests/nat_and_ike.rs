//! Requests about source translation and IKEv2 are those that were recorded, and none that would hurt a VPP can be built.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use vpp_wire::api::cnat::{
    CnatSetSnatAddresses, CnatSetSnatAddressesV2, CnatSetSnatPolicy, CnatSnatPolicyAddDelExcludePfx,
    CnatSnatPolicyAddDelIf, CnatSnatPolicyTable,
};
use vpp_wire::api::ikev2::{
    AddressIdentity, Ikev2InitiateSaInit, Ikev2ProfileAddDel, Ikev2ProfileSetTs, Ikev2SetEspTransforms,
    Ikev2SetIkeTransforms, Ikev2SetResponder, Ikev2SetTunnelInterface, SharedKey, profile_name,
};
use vpp_wire::types::SwIfIndex;
use vpp_wire::{Message, Payload, Refused};

/// Id, handle and context, which the connection fills in.
const HEAD: usize = 10;

/// The recorded requests of this name, without their heads.
fn recorded(transcript: &str, message: &str) -> Vec<Vec<u8>> {
    let path = format!("{}/../catalogue/transcripts/{transcript}.json", env!("CARGO_MANIFEST_DIR"));
    let json: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let frames = json["frames"].as_array().unwrap().iter();
    let requests = frames.filter(|frame| frame["dir"] == "c2s" && frame["msg"] == message);
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    requests.map(|frame| bytes(frame["frame"].as_str().unwrap())[16 + HEAD..].to_vec()).collect()
}

fn is_recorded<P: Payload>(transcript: &str, request: &P) {
    let mut encoded = Vec::new();
    request.encode(&mut encoded);
    let name = <P::Message as Message>::DESCRIPTOR.name.name();
    let recorded = recorded(transcript, name);
    assert!(recorded.iter().any(|bytes| *bytes == encoded[HEAD..]), "{name}: {:02x?}", &encoded[HEAD..]);
}

#[test]
fn source_translation_is_set_up_as_recorded() {
    let (ip4, ip6) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
    is_recorded("11-cnat", &CnatSetSnatAddressesV2::new(Some(ip4), Some(ip6)).unwrap());
    is_recorded("11-cnat", &CnatSetSnatPolicy::kubernetes());
    for (prefix, add) in [("10.244.0.0/16", true), ("fd10:244::/64", true), ("10.244.0.0/16", false)] {
        is_recorded("11-cnat", &CnatSnatPolicyAddDelExcludePfx::new(prefix.parse().unwrap(), add));
    }
    let (index, tables) = (SwIfIndex::new, CnatSnatPolicyTable::POD);
    is_recorded("11-cnat", &CnatSnatPolicyAddDelIf::new(index(2), 1, tables));
    is_recorded("11-cnat", &CnatSnatPolicyAddDelIf::new(index(1), 1, CnatSnatPolicyTable::HOST));
    let mut clean = Vec::new();
    CnatSnatPolicyAddDelExcludePfx::new("10.244.7.9/16".parse().unwrap(), true).encode(&mut clean);
    assert_eq!(clean[HEAD..], recorded("11-cnat", "cnat_snat_policy_add_del_exclude_pfx")[0]);
}

#[test]
fn source_translation_without_addresses_is_refused() {
    let (zero, zero6) = ("0.0.0.0".parse().unwrap(), "::".parse().unwrap());
    for (ip4, ip6) in [(None, None), (Some(zero), None), (None, Some(zero6)), (Some(zero), Some(zero6))] {
        assert_eq!(CnatSetSnatAddressesV2::new(ip4, ip6).map(drop), Err(Refused::NoAddress));
        assert_eq!(CnatSetSnatAddresses::new(ip4, ip6).map(drop), Err(Refused::NoAddress));
    }
    assert!(CnatSetSnatAddresses::new(Some("192.0.2.1".parse().unwrap()), None).is_ok());
}

#[test]
fn a_profile_is_made_as_recorded() {
    let at = "08-ikev2";
    let name = profile_name("pr_192_0_2_1_to_192_0_2_50").unwrap();
    let (local, remote) = ("192.0.2.1".parse().unwrap(), "192.0.2.50".parse().unwrap());
    is_recorded(at, &Ikev2ProfileAddDel::new(name, true));
    is_recorded(at, &Ikev2ProfileAddDel::new(name, false));
    is_recorded(at, &Ikev2SetTunnelInterface::new(name, SwIfIndex::new(2)));
    is_recorded(at, &SharedKey::new(name, b"test-psk-123").unwrap());
    is_recorded(at, &AddressIdentity::new(name, true, local));
    is_recorded(at, &AddressIdentity::new(name, false, remote));
    is_recorded(at, &Ikev2ProfileSetTs::all_ipv4(name, true));
    is_recorded(at, &Ikev2ProfileSetTs::all_ipv4(name, false));
    is_recorded(at, &Ikev2SetResponder::new(name, SwIfIndex::new(1), remote).unwrap());
    is_recorded(at, &Ikev2SetIkeTransforms::agreed(name));
    is_recorded(at, &Ikev2SetEspTransforms::agreed(name));
    is_recorded(at, &Ikev2InitiateSaInit::new(name));
}

#[test]
fn what_makes_no_profile_is_refused_and_a_key_is_not_printed() {
    let name = profile_name("pr").unwrap();
    assert_eq!(profile_name(""), Err(Refused::NoName));
    assert_eq!(profile_name(&"x".repeat(63)).map(drop), Ok(()));
    assert_eq!(profile_name(&"x".repeat(64)).map(drop), Err(Refused::Text { length: 64, field: 64 }));
    assert_eq!(SharedKey::new(name, b"").map(drop), Err(Refused::NoKey));
    assert_eq!(SharedKey::new(name, &[1; 1 << 16]).map(drop), Err(Refused::Count(1 << 16)));
    let printed = format!("{:?}", SharedKey::new(name, b"swordfish"));
    assert!(!printed.contains("swordfish") && !printed.contains("115"), "{printed}");
    let (nowhere, hop) = ("0.0.0.0".parse().unwrap(), "192.0.2.50".parse().unwrap());
    let responder = |index, hop| Ikev2SetResponder::new(name, index, hop).map(drop);
    assert_eq!(responder(SwIfIndex::NONE, hop), Err(Refused::NoInterface));
    assert_eq!(responder(SwIfIndex::new(1), nowhere), Err(Refused::NextHop(nowhere.into())));
}
