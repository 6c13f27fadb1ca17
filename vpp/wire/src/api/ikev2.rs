//! `ikev2`: IKEv2 (RFC 7296): profiles, security associations.

include!(concat!(env!("OUT_DIR"), "/ikev2.rs"));
