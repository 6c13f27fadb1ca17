//! `ipsec`: IPsec: security associations, policies, protected tunnels. What IKEv2 has negotiated is seen here.

include!(concat!(env!("OUT_DIR"), "/ipsec.rs"));
