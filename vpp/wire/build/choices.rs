//! What the catalogue does not say.

/// Types of the catalogue that `src` declares by hand.
pub(crate) const BY_HAND: &[(&str, &str)] = &[
    ("address", "crate::types::Address"),
    ("address_family", "crate::types::AddressFamily"),
    ("address_union", "crate::types::AddressUnion"),
    ("prefix", "crate::types::Prefix"),
    ("address_with_prefix", "crate::types::Prefix"),
    ("ip4_address", "crate::types::Ip4Address"),
    ("ip6_address", "crate::types::Ip6Address"),
    ("mac_address", "crate::types::Mac"),
    ("interface_index", "crate::types::SwIfIndex"),
    ("timestamp", "crate::types::Float"),
    ("ip_table", "crate::types::IpTable"),
    ("fib_path", "crate::types::FibPath"),
    ("fib_path_nh", "crate::types::FibPathNh"),
    ("fib_path_flags", "crate::types::FibPathFlags"),
    ("fib_path_nh_proto", "crate::types::FibPathNhProto"),
    ("fib_path_type", "crate::types::FibPathType"),
    ("fib_mpls_label", "crate::types::FibMplsLabel"),
    ("fib_source", "crate::api::fib::FibSource"),
    ("ip_route_v2", "crate::api::ip::IpRouteV2"),
    ("ipip_tunnel", "crate::api::ipip::IpipTunnel"),
    ("tunnel_encap_decap_flags", "crate::api::ipip::TunnelEncapDecapFlags"),
    ("tunnel_mode", "crate::api::ipip::TunnelMode"),
    ("ip_dscp", "crate::api::ipip::IpDscp"),
    ("if_status_flags", "crate::api::interface::IfStatusFlags"),
    ("if_type", "crate::api::interface::IfType"),
    ("link_duplex", "crate::api::interface::LinkDuplex"),
    ("sub_if_flags", "crate::api::interface::SubIfFlags"),
    ("message_table_entry", "crate::api::memclnt::MessageTableEntry"),
];

/// Numbers whose field name says what they number.
pub(crate) const NUMBERS: &[(&str, &str, &str)] = &[
    ("u32", "table_id", "crate::types::TableId"),
    ("u32", "vrf_id", "crate::types::TableId"),
    ("u32", "encap_vrf_id", "crate::types::TableId"),
    ("u32", "encap_table_id", "crate::types::TableId"),
    ("u32", "fib_table", "crate::types::TableId"),
    ("i32", "retval", "crate::retval::Retval"),
];

/// Fields that hold keys, by the struct or message they stand in.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("wireguard_interface", "private_key"),
    ("wireguard_peer_v2", "preshared_key"),
    ("key", "data"),
    ("ikev2_auth", "data"),
    ("ikev2_profile_set_auth", "data"),
    ("ikev2_keys", "sk_d"),
    ("ikev2_keys", "sk_ai"),
    ("ikev2_keys", "sk_ar"),
    ("ikev2_keys", "sk_ei"),
    ("ikev2_keys", "sk_er"),
    ("ikev2_keys", "sk_pi"),
    ("ikev2_keys", "sk_pr"),
    ("bfd_auth_set_key", "key"),
];

/// Texts that may hold raw bytes.
pub(crate) const RAW: &[(&str, &str)] = &[("ikev2_id", "data")];

/// Requests that VPP would be hurt by, or take and misunderstand, with the wrong fields. Their fields are private, and
/// what constructors they have stand in the module's own file.
pub(crate) const GUARDED: &[&str] = &[
    "add_node_next",
    "bfd_auth_set_key",
    "bfd_udp_add",
    "bfd_udp_mod",
    "bfd_udp_upd",
    "cli_inband",
    "cnat_set_snat_addresses",
    "cnat_set_snat_addresses_v2",
    "cnat_set_snat_policy",
    "cnat_snat_policy_add_del_exclude_pfx",
    "feature_enable_disable",
    "ikev2_profile_set_auth",
    "ikev2_profile_set_id",
    "ikev2_profile_set_ts",
    "ikev2_set_esp_transforms",
    "ikev2_set_ike_transforms",
    "ikev2_set_responder",
    "ip_table_flush",
    "sr_localsid_add_del",
    "sr_policy_add_v2",
    "sr_policy_mod_v2",
    "sr_set_encap_source",
    "sr_steering_add_del",
    "vxlan_add_del_tunnel_v3",
    "wireguard_interface_create",
    "wireguard_peer_add",
    "wireguard_peer_add_v2",
];

/// Requests that nothing here ever sends: read and listed, and no more.
pub(crate) const UNSENT: &[&str] = &[
    // Drops all translations, not only sessions.
    "cnat_session_purge",
    // An association in use lives on behind a reply that says it is gone.
    "ipsec_sad_entry_del",
    // With a key that does not fit its algorithm it ends VPP. Here IKEv2 makes the associations.
    "ipsec_sad_entry_add",
    "ipsec_sad_entry_add_v2",
    "ipsec_sad_entry_update",
    "ipsec_tunnel_protect_update",
    // VPP dies of an empty list of segments, of an unknown behaviour, of a translation without paths. The first two have forms
    // with a constructor, services wait for a user.
    "sr_policy_add",
    "sr_policy_mod",
    "sr_localsid_add_del_v2",
    "cnat_translation_update",
    // By the number of an association, which VPP gives to another one as soon as it is free.
    "ikev2_initiate_del_child_sa",
    "ikev2_initiate_del_ike_sa",
    "ikev2_initiate_rekey_child_sa",
    // Creates and deletes the default table as well; the first version has a constructor that does not.
    "ip_table_add_del_v2",
    // Replaces or flushes what others have put there under VPP's own source.
    "ip_route_add_del",
    "ip_table_replace_begin",
    "ip_table_replace_end",
    // Of no use on the socket, or not answered there.
    "memclnt_keepalive",
    "sock_init_shm",
];

/// A module that waits for a user.
pub(crate) const UNSENT_MODULE: &str = "npol";
