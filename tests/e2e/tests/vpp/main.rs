//! One suite for every provider of connectivity, on a simulated VPP and, where `VPP_BIN` names one, on a real VPP
//! (`make test-vpp`): add, delete, shared tunnels, change of provider, restarts of the agent and of VPP at every step,
//! drift.
//!
//! The agent is the whole binary with manifests in a folder; what it does is announced to it over BGP. What comes of it is
//! read from VPP, as lines of text (`state`), and compared with what the provider's row expects (`rows`). Between the agent and
//! VPP sits a `relay` which can cut their conversation at any step.
//!
//! **To add a provider**: a file in `rows` with its `ROW`, its line in `suite!` below; for objects of a new kind what reads them
//! (`state`) and what a stranger may do to them (`drift`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod cases;
mod drift;
mod pair;
mod relay;
mod row;
mod rows;
mod state;
mod takeover;
mod target;
mod world;

macro_rules! suite {
    ($($provider:ident),+ $(,)?) => {
        mod sim {
            $(mod $provider { crate::suite!(case Sim $provider); })+
            #[test]
            fn changes_of_provider() {
                crate::cases::changes_of_provider(crate::target::On::Sim, crate::ROWS);
            }
            #[test]
            fn changes_hands() {
                crate::takeover::changes_hands(crate::target::On::Sim);
            }
        }
        mod real {
            $(mod $provider {
                crate::suite!(case Real $provider);
                #[test]
                fn packets_cross() {
                    crate::cases::packets_cross(crate::rows::$provider::ROW);
                }
            })+
            #[test]
            fn changes_of_provider() {
                crate::cases::changes_of_provider(crate::target::On::Real, crate::ROWS);
            }
            #[test]
            fn changes_hands() {
                crate::takeover::changes_hands(crate::target::On::Real);
            }
        }
        const ROWS: &[row::Row] = &[$(rows::$provider::ROW),+];
    };
    (case $on:ident $provider:ident) => {
        crate::suite!(each $on $provider:
            comes_and_goes
            taken_over
            agent_killed_at_every_step
            agent_killed_at_every_step_of_a_removal
            vpp_killed_at_every_step
            drift_is_repaired);
    };
    (each $on:ident $provider:ident: $($case:ident)+) => {
        $(#[test]
        fn $case() {
            crate::cases::$case(crate::target::On::$on, crate::rows::$provider::ROW);
        })+
    };
}
use suite;

/// Networks have no packets here: their pods are not in the main table.
mod network {
    mod sim {
        crate::suite!(case Sim network);
    }
    mod real {
        crate::suite!(case Real network);
    }
}

suite!(flat, ipip, vxlan, wireguard, srv6);
