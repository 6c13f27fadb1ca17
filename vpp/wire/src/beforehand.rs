//! What must have been asked on a connection before a request is sent on it.
//!
//! Some requests hurt VPP, or go wrong without a word, in a state that the request itself does not show: source
//! translation before its addresses are set ends the process, a second WireGuard interface on the same port is made
//! without complaint. So each of them waits for an answer that tells the state, on the same connection. This table says which;
//! the client keeps to it, whatever its user does, and refuses the request unsent.

/// One rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// VPP's name of the request, in whatever form.
    pub request: &'static str,
    /// Before it, one of these replies (with return value 0) or dumps of these details must have come.
    pub answers: &'static [&'static str],
    /// What could happen otherwise.
    pub because: &'static str,
}

/// All rules.
pub const RULES: &[Rule] = &[
    Rule {
        request: "cnat_set_snat_policy",
        answers: SNAT_ADDRESSES,
        because: "without addresses for source translation it ends VPP",
    },
    Rule {
        request: "cnat_snat_policy_add_del_exclude_pfx",
        answers: SNAT_ADDRESSES,
        because: "without addresses for source translation it ends VPP",
    },
    Rule {
        request: "sr_steering_add_del",
        answers: TABLES,
        because: "with a table that does not exist it ends VPP",
    },
    Rule {
        request: "sr_localsid_add_del",
        answers: TABLES,
        because: "with an inner table that does not exist it leads nowhere",
    },
    Rule {
        request: "wireguard_interface_create",
        answers: &["wireguard_interface_details"],
        because: "a second interface on the same address and port is made without complaint",
    },
    Rule {
        request: "fib_source_add",
        answers: &["fib_source_details"],
        because: "a name that exists gets another source, and there are 255",
    },
    Rule {
        request: "feature_enable_disable",
        answers: &["feature_is_enabled_reply"],
        because: "it counts: on, on, off is on",
    },
    Rule {
        request: "ikev2_set_responder",
        answers: INTERFACES,
        because: "an interface that does not exist is taken",
    },
    Rule {
        request: "bfd_udp_add",
        answers: &["ip_address_details"],
        because: "an address that is not on the interface is taken",
    },
    Rule {
        request: "ipip_add_tunnel",
        answers: &["ip_address_details"],
        because: "a source that is not VPP's is taken",
    },
];

const SNAT_ADDRESSES: &[&str] =
    &["cnat_set_snat_addresses_reply", "cnat_set_snat_addresses_v2_reply", "cnat_get_snat_addresses_reply"];
const TABLES: &[&str] = &["ip_table_details"];
const INTERFACES: &[&str] = &["sw_interface_details"];

/// The rule for a request.
#[must_use]
pub fn rule(request: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.request == request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn rules_speak_of_messages_that_exist() {
        for rule in RULES {
            let kinds = |name: &str| {
                crate::api::messages()
                    .filter(|message| message.name.name() == name)
                    .map(|message| message.kind)
                    .collect::<Vec<_>>()
            };
            assert!(
                !kinds(rule.request).is_empty()
                    && kinds(rule.request).iter().all(|kind| *kind == Kind::Request)
            );
            for answer in rule.answers {
                assert!(!kinds(answer).is_empty(), "{answer}");
                assert!(
                    kinds(answer).iter().all(|kind| matches!(kind, Kind::Reply | Kind::Details)),
                    "{answer}"
                );
            }
        }
    }
}
