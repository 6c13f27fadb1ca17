//! The VPP of a test: simulated or real, with the same uplink.

use test_support::lab::Host;
use test_support::vpp::RealVpp;
use tokio::runtime::Runtime;
use vpp_sim::{Sim, SimHandle};

/// What VPP calls the uplink.
pub(crate) const UPLINK: &str = "loop0";

/// Which VPP a test runs on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// vpp-sim, in the test's own process.
    Sim,
    /// The one that `VPP_BIN` names.
    Real,
}

impl On {
    /// Whether it can be had; what can't has been recorded.
    pub(crate) fn available(self) -> bool {
        match self {
            Self::Sim => true,
            // The same text from every test: the summary has it once.
            Self::Real => test_support::vpp::available("the suite of all providers on a real VPP"),
        }
    }
}

/// A running VPP.
#[derive(Debug)]
pub(crate) enum Vpp {
    Sim(SimHandle),
    Real(RealVpp),
}

impl Vpp {
    /// Starts one in the host's namespace, whose uplink has these addresses. Its socket is `vpp.sock` in the host's folder.
    pub(crate) fn start(on: On, host: &Host, addresses: &[&str], runtime: &Runtime) -> Self {
        match on {
            On::Sim => {
                let _inside = runtime.enter();
                let sim = Sim::builder(host.dir().join("vpp.sock")).interface(UPLINK, addresses).spawn();
                Self::Sim(sim.expect("a socket in the host's folder"))
            }
            On::Real => {
                let mut commands = format!("create loopback interface\nset interface state {UPLINK} up\n");
                for address in addresses {
                    commands += &format!("set interface ip address {UPLINK} {address}\n");
                }
                let mut vpp = RealVpp::new(host, &commands);
                vpp.start();
                Self::Real(vpp)
            }
        }
    }

    /// Ends it without warning, and starts it again with nothing but its uplink.
    pub(crate) fn restart(&mut self, runtime: &Runtime) {
        match self {
            Self::Sim(sim) => runtime.block_on(async {
                sim.down().await;
                sim.up().await;
            }),
            Self::Real(vpp) => vpp.start(),
        }
    }

    /// Stops it; it must have lived till now.
    pub(crate) fn stop(&mut self) {
        match self {
            Self::Sim(sim) => {
                assert!(sim.stats().alive, "the simulated VPP has died");
            }
            Self::Real(vpp) => vpp.stop(),
        }
    }
}
