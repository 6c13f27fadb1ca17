//! What the tests with real daemons share: a network of their own for each test, processes that cannot
//! outlive it, conditions to await, and the daemons' configuration and answers.
//!
//! Nothing here sleeps for a fixed time: [`wait::until`] polls a *named* condition against a deadline, so a
//! test that fails says what never happened.
//!
//! - [`lab`]: network and mount namespaces, hosts on one link
//! - [`process`]: a child process with its log
//! - [`programs`]: where daemons and our own binary are; what was skipped and why
//! - [`bird`], [`frr`], [`gobgp`], [`openbgpd`], [`exabgp`]: the real neighbours
//! - [`route`]: what any of them holds, in terms that compare
//! - [`peregrine`]: our own binary, its manifests and its answers
//! - [`speaker`]: our own binary as a speaker alone
//! - [`vpp`]: a real VPP, where there is one
//! - [`allocations`]: how often code allocates

pub mod allocations;
pub mod bird;
pub mod exabgp;
pub mod frr;
pub mod gobgp;
pub mod lab;
pub mod openbgpd;
pub mod peregrine;
pub mod process;
pub mod programs;
pub mod route;
pub mod speaker;
pub mod vpp;
pub mod wait;
