//! `vlib`: graph nodes, threads, logs, the command line.

use crate::head::RequestHead;
use crate::message::Refused;
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
