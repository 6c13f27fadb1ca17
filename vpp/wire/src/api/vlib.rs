//! `vlib`: graph nodes, threads, logs, the command line.

use crate::head::RequestHead;
use crate::message::{Payload, Refused, Request, Tailed};
use crate::types::FixedString;

include!(concat!(env!("OUT_DIR"), "/vlib.rs"));

impl AddNodeNext {
    /// Has IPv4 packets that come out of VXLAN tunnels go on as such; the reply says by which number. Asked again it is the
    /// same.
    ///
    /// # Errors
    /// None that could happen: the names fit.
    pub fn vxlan4_to_ip4() -> Result<Self, Refused> {
        Self::named("vxlan4-input", "ip4-input")
    }

    /// As [`AddNodeNext::vxlan4_to_ip4`], for tunnels between IPv6 addresses, whose packets are IPv6.
    ///
    /// # Errors
    /// None that could happen: the names fit.
    pub fn vxlan6_to_ip6() -> Result<Self, Refused> {
        Self::named("vxlan6-input", "ip6-input")
    }

    fn named(node: &str, next: &str) -> Result<Self, Refused> {
        Ok(Self {
            head: RequestHead::BLANK,
            node_name: FixedString::new(node)?,
            next_name: FixedString::new(next)?,
        })
    }
}

/// Lets go of the connections that VPP has leaked. Writes a [`CliInband`], the one command line that is sent.
///
/// VPP does not notice the end of a client that left without its farewell once it has found some client's socket full: it
/// spins on the leaked descriptors, and the sixteenth stops it. Another system call that fails ends that: here the opening of
/// a script that does not exist. VPP's answer is an error, as it should be.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heal;

impl Heal {
    const COMMAND: &'static str = "exec /proc/absent-on-purpose";
}

impl Payload for Heal {
    type Message = CliInband;

    fn encode(&self, out: &mut Vec<u8>) {
        let message = CliInband::append(out, Self::COMMAND.len()).expect("no text reaches 4 GiB");
        message.cmd.fill(Self::COMMAND);
    }
}

impl Request for Heal {
    type Reply = CliInbandReply;
}
