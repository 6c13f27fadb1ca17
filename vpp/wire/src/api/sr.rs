//! `sr`: segment routing over IPv6 (RFC 8986): local SIDs, policies, steering.

include!(concat!(env!("OUT_DIR"), "/sr.rs"));
