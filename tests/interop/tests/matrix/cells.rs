//! What the cells are, what a daemon can't do and why, and where the cells are that have files of their own.

use std::fmt::Write as _;
use std::path::Path;

use interop::daemon::Kind;
use test_support::lab::Lab;
use test_support::programs::{BIRD, IP, available};

/// Each cell, and what it shows.
const CELLS: &[(&str, &str)] = &[
    ("over_ipv4", "session over IPv4, routes and their attributes both ways"),
    ("over_ipv6", "session over IPv6, routes and their attributes both ways"),
    ("both_families_over_one", "IPv4 and IPv6 routes over one session over IPv4"),
    ("md5", "TCP MD5 over IPv4 and IPv6, the wrong key, the right one again"),
    ("ttl_security", "GTSM at both ends"),
    ("hold_time", "the shorter hold time, KEEPALIVEs"),
    ("notification", "Cease both ways, with its reason in words"),
    ("exchange_ebgp", "every attribute, both ways, both families, to another AS"),
    ("exchange_ibgp", "every attribute, both ways, both families, inside an AS"),
    ("withdrawal", "what one end announces no more, the other no longer holds"),
    ("refresh", "asked by ROUTE-REFRESH, we say all again"),
    ("enhanced_refresh", "the same between the marks of RFC 7313"),
    ("our_refresh", "we ask by ROUTE-REFRESH, and lose nothing"),
    ("they_restart", "the daemon gets SIGKILL and returns: a third one behind us hears no withdrawal"),
    ("restart_time", "the daemon gets SIGKILL and stays away: its routes go"),
    (
        "we_restart",
        "we get SIGKILL, then SIGTERM, and return: a third one behind the daemon hears no withdrawal",
    ),
    ("two_octet_as", "AS numbers of 2 octets: AS_TRANS, AS4_PATH and AS4_AGGREGATOR both ways"),
];

/// What can't be tested with a daemon, and why.
const CANNOT: &[(Kind, &str, &str)] = &[
    (
        Kind::Frr,
        "two_octet_as",
        "always offers AS numbers of 4 octets together with other families than IPv4",
    ),
    (Kind::Gobgp, "two_octet_as", "always offers AS numbers of 4 octets"),
    (Kind::Gobgp, "refresh", "sends no ROUTE-REFRESH: its soft reset goes over what it has kept"),
    (Kind::Gobgp, "enhanced_refresh", "does not have it"),
    (
        Kind::Exabgp,
        "enhanced_refresh",
        "offers it, but its events tell of no marks, and it keeps no table that could go wrong",
    ),
    (
        Kind::Exabgp,
        "our_refresh",
        "closes the connection without a word when it is asked and enhanced refresh was agreed on (4.2.21)",
    ),
    (Kind::Openbgpd, "they_restart", "never asks that its own routes be kept"),
    (Kind::Openbgpd, "restart_time", "never asks that its own routes be kept"),
    (Kind::Exabgp, "we_restart", "passes nothing on, so nobody is behind it"),
];

/// Cells with files of their own: what they show, with whom, file and test.
const ELSEWHERE: &[(&str, &str, &str, &str)] = &[
    (
        "a dynamic neighbour with a key",
        "BIRD, FRR",
        "security.rs",
        "a_prefix_of_neighbours_with_a_key_takes_bird_and_frr_and_no_more_than_its_limit",
    ),
    (
        "keys change, one reset each",
        "BIRD, FRR",
        "security.rs",
        "md5_keys_change_with_one_reset_of_that_neighbour_and_none_of_another",
    ),
    ("GTSM against who is too far away", "FRR", "security.rs", "gtsm_with_frr_and_md5_on_top"),
    ("GTSM against who has it not", "BIRD", "security.rs", "gtsm_with_bird_and_who_has_it_not_is_not_heard"),
    ("TCP MD5, whoever connects", "BIRD", "security.rs", "md5_bird_over_both_families_whoever_connects"),
    ("TCP MD5, whoever connects", "FRR", "security.rs", "md5_frr_over_both_families_whoever_connects"),
    ("eBGP over two hops, GTSM over two hops", "BIRD", "security.rs", "multihop_over_a_router_with_bird"),
    (
        "the agent gets SIGKILL and returns",
        "BIRD",
        "restart.rs",
        "the_agent_dies_and_returns_and_nobody_behind_bird_notices",
    ),
    ("`peregrine explain`", "BIRD", "explain.rs", "a_route_of_birds_from_its_arrival_to_vpp"),
    ("equal-cost multipath with weights", "BIRD", "multipath.rs", "two_birds_make_one_route_with_weights"),
    (
        "route reflection (RFC 4456), by us",
        "BIRD, FRR, GoBGP",
        "reflection.rs",
        "we_reflect_between_clients_and_others",
    ),
    (
        "route reflection, by FRR; a cluster loop",
        "BIRD, FRR",
        "reflection.rs",
        "frr_reflects_and_a_loop_through_our_cluster_is_refused",
    ),
    ("route reflection, by each other", "BIRD, FRR", "reflection.rs", "bird_reflects_for_us_as_we_for_it"),
    (
        "another AS number (RFC 7705), ours and theirs",
        "FRR",
        "paths.rs",
        "another_as_number_for_frr_and_frrs_for_us",
    ),
    ("our own AS number in a path", "FRR", "paths.rs", "our_own_number_in_what_frr_tells"),
    ("a foreign AS number first", "ExaBGP", "paths.rs", "a_foreign_number_first_counts_as_withdrawn"),
    (
        "as-override, private AS numbers removed",
        "BIRD, FRR, GoBGP",
        "paths.rs",
        "sites_of_one_as_and_private_numbers",
    ),
    ("an aggregate, summary only", "BIRD, FRR", "paths.rs", "an_aggregate_stands_for_birds_routes"),
    (
        "NO_EXPORT and the like (RFC 1997)",
        "BIRD, FRR, GoBGP",
        "paths.rs",
        "what_must_stay_stays_and_what_is_ours_goes",
    ),
    ("several paths of a prefix (RFC 7911), IPv4", "BIRD", "add_path.rs", "ipv4_paths_both_ways"),
    ("several paths of a prefix, IPv6", "BIRD", "add_path.rs", "ipv6_paths_both_ways"),
    ("several paths, one way only", "BIRD", "add_path.rs", "who_only_sends_or_only_receives"),
    ("roles and ONLY_TO_CUSTOMER (RFC 9234)", "BIRD", "role.rs", "each_pair_of_roles_marks_what_it_must"),
    ("a route leak", "BIRD", "role.rs", "a_leak_is_kept_with_its_reason"),
    ("roles that do not fit", "BIRD", "role.rs", "roles_that_do_not_fit_keep_the_session_down"),
    (
        "long-lived graceful restart (RFC 9494), theirs",
        "BIRD",
        "llgr.rs",
        "birds_routes_are_a_last_resort_while_it_stays_away",
    ),
    (
        "long-lived graceful restart, theirs",
        "FRR",
        "llgr.rs",
        "frrs_routes_are_a_last_resort_while_it_stays_away",
    ),
    (
        "long-lived graceful restart, ours",
        "BIRD",
        "llgr.rs",
        "our_routes_are_a_last_resort_at_bird_while_we_stay_away",
    ),
    (
        "long-lived graceful restart, ours",
        "FRR",
        "llgr.rs",
        "our_routes_are_a_last_resort_at_frr_while_we_stay_away",
    ),
    (
        "long-lived graceful restart, ours",
        "GoBGP",
        "llgr.rs",
        "our_routes_are_a_last_resort_at_gobgp_while_we_stay_away",
    ),
    (
        "long-lived graceful restart, theirs",
        "GoBGP",
        "llgr.rs",
        "gobgps_routes_are_a_last_resort_while_it_stays_away",
    ),
    ("routes of VPNs (RFC 4364, 4659), eBGP", "GoBGP", "vpn.rs", "both_ways_with_an_external_neighbour"),
    ("routes of VPNs, iBGP", "GoBGP", "vpn.rs", "both_ways_with_an_internal_neighbour"),
    ("SR policies of GoBGP's (RFC 9830)", "GoBGP", "sr_policy.rs", "what_gobgp_originates_is_read"),
    ("SR policies of ours", "GoBGP", "sr_policy.rs", "what_we_originate_is_read_by_gobgp"),
    (
        "SR policies through GoBGP, octet for octet",
        "GoBGP",
        "sr_policy.rs",
        "what_goes_through_gobgp_comes_out_as_it_went_in",
    ),
    ("an SR policy's name through GoBGP", "GoBGP", "sr_policy.rs", "a_name_grows_on_its_way_through_gobgp"),
    ("GRACEFUL_SHUTDOWN (RFC 8326), sent", "BIRD", "gshut.rs", "bird_hears_that_it_is_about_to_be_left"),
    ("GRACEFUL_SHUTDOWN, sent", "FRR", "gshut.rs", "frr_hears_that_it_is_about_to_be_left"),
    ("GRACEFUL_SHUTDOWN, obeyed", "FRR, BIRD", "gshut.rs", "frr_that_is_about_to_leave_is_left_for_bird"),
    (
        "prefix limit of ours, warn",
        "BIRD",
        "limits.rs",
        "a_warning_is_logged_and_shown_and_nothing_else_happens",
    ),
    (
        "prefix limit of ours, discard",
        "BIRD",
        "limits.rs",
        "what_is_beyond_the_limit_is_discarded_and_fetched_when_there_is_room",
    ),
    ("prefix limit of ours, reset", "BIRD", "limits.rs", "a_reset_tells_bird_and_ends_after_its_time"),
    ("prefix limit of theirs", "BIRD", "limits.rs", "birds_own_limit_is_shown_in_words"),
    ("several paths, sent", "FRR", "add_path.rs", "frr_hears_several_paths"),
    ("TCP MD5, wrong keys", "BIRD", "security.rs", "md5_a_wrong_key_never_connects_to_bird_or_from_it"),
    ("TCP MD5, a key changes", "FRR", "security.rs", "md5_keys_change_with_frr"),
    (
        "the agent's routes through restarts of either side",
        "BIRD",
        "bird.rs",
        "ebgp_both_families_both_ways_through_restarts_of_either_side",
    ),
    ("the agent inside an AS", "BIRD", "bird.rs", "ibgp_carries_local_pref_and_no_path_change"),
    ("the agent's changes", "BIRD", "bird.rs", "withdrawals_and_new_routes_are_followed_both_ways"),
    (
        "the agent's routes through restarts of either side",
        "FRR",
        "frr.rs",
        "ebgp_both_families_both_ways_through_restarts_of_either_side",
    ),
    ("the agent's changes", "FRR", "frr.rs", "a_block_that_goes_is_withdrawn"),
    ("every cause of an end, in words", "the test", "reasons.rs", "why_a_session_is_down_stands_in_words"),
    (
        "IPv4 routes with IPv6 next hops (RFC 8950)",
        "BIRD",
        "capabilities.rs",
        "ipv4_prefixes_with_ipv6_next_hops_both_ways",
    ),
    (
        "messages beyond 4096 octets (RFC 8654)",
        "BIRD",
        "capabilities.rs",
        "messages_beyond_4096_octets_both_ways",
    ),
    (
        "a BGPFilter edited while sessions are up, both ways",
        "BIRD",
        "filters.rs",
        "an_edited_filter_counts_at_once_both_ways_without_a_reset",
    ),
];

/// Runs a cell in a lab of its own.
pub(crate) fn run(kind: Kind, cell: &str, test: fn(&Lab, Kind)) {
    // BIRD watches restarts as a third one.
    if available(&format!("interop matrix {} {cell}", kind.name()), &[kind.program(), BIRD, IP]) {
        Lab::run(move |lab| test(lab, kind));
    }
}

/// The matrix as `tests/README.md` has it.
fn table() -> String {
    let mut table = "| cell |".to_owned();
    for kind in Kind::ALL {
        let _ = write!(table, " {} |", kind.name());
    }
    table += " what it shows |\n|---|---|---|---|---|---|---|\n";
    let mut notes = String::new();
    for (cell, what) in CELLS {
        let _ = write!(table, "| `{cell}` |");
        for kind in Kind::ALL {
            match CANNOT.iter().position(|(other, name, _)| (other, name) == (&kind, cell)) {
                None => table += " yes |",
                Some(at) => {
                    let _ = write!(table, " no ({}) |", at + 1);
                }
            }
        }
        let _ = writeln!(table, " {what} |");
    }
    for (at, (kind, _, why)) in CANNOT.iter().enumerate() {
        let _ = writeln!(notes, "{}. {} {why}.", at + 1, kind.name());
    }
    for kind in Kind::ALL {
        for (_, why) in kind.hides() {
            let _ = writeln!(notes, "- {} is not compared in full where it can't tell: {why}.", kind.name());
        }
    }
    let mut elsewhere = "| what | with | test |\n|---|---|---|\n".to_owned();
    for (what, whom, file, test) in ELSEWHERE {
        let _ = writeln!(elsewhere, "| {what} | {whom} | `{file}`: `{test}` |");
    }
    format!("{table}\n{notes}\n{elsewhere}")
}

#[test]
fn every_cell_is_tested_or_listed() {
    for kind in Kind::ALL {
        for (cell, _) in CELLS {
            let tested = crate::TESTED.contains(&(kind, cell));
            let listed = CANNOT.iter().any(|(other, name, _)| (other, name) == (&kind, cell));
            assert!(tested != listed, "{} {cell}: tested {tested}, listed {listed}", kind.name());
        }
    }
    for (_, cell) in crate::TESTED {
        assert!(CELLS.iter().any(|(name, _)| name == cell), "{cell} has no row");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (_, _, file, test) in ELSEWHERE {
        let text = std::fs::read_to_string(folder.join("tests").join(file)).expect(file);
        assert!(text.contains(&format!("fn {test}(")), "no test {test} in {file}");
    }
    let readme = std::fs::read_to_string(folder.join("../README.md")).expect("tests/README.md");
    let table = table();
    assert!(readme.contains(&table), "tests/README.md should say:\n\n{table}");
}
