//! `cnat`: translation of service and source addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use zerocopy::big_endian::U32;

use crate::head::RequestHead;
use crate::message::Refused;
use crate::types::{Ip4Address, Ip6Address, Prefix, SwIfIndex};

include!(concat!(env!("OUT_DIR"), "/cnat.rs"));

/// The addresses of both families, all zero for one that is to stay what it was. Without any VPP would forget everything
/// that was said about source translation, and go on with an entry that it has freed.
fn addresses(ip4: Option<Ipv4Addr>, ip6: Option<Ipv6Addr>) -> Result<(Ip4Address, Ip6Address), Refused> {
    let ip4 = ip4.unwrap_or(Ipv4Addr::UNSPECIFIED);
    let ip6 = ip6.unwrap_or(Ipv6Addr::UNSPECIFIED);
    if ip4.is_unspecified() && ip6.is_unspecified() {
        return Err(Refused::NoAddress);
    }
    Ok((ip4.into(), ip6.into()))
}

impl CnatSetSnatAddressesV2 {
    /// The addresses that sources become, in the default tables, for whatever has no policy of its own. A family that is
    /// absent stays what it was. Comes before everything else about source translation.
    ///
    /// # Errors
    /// [`Refused::NoAddress`].
    pub fn new(ip4: Option<Ipv4Addr>, ip6: Option<Ipv6Addr>) -> Result<Self, Refused> {
        let (snat_ip4, snat_ip6) = addresses(ip4, ip6)?;
        let default = CnatSnatPolicyFlags::NO_CLIENT.value() | CnatSnatPolicyFlags::USE_AS_DEFAULT.value();
        Ok(Self {
            head: RequestHead::BLANK,
            // Indices, and VPP dies of one that doesn't exist; the default tables always do.
            fwd_fib_index: U32::new(0),
            ret_fib_index: U32::new(0),
            snat_ip4,
            snat_ip6,
            sw_if_index: SwIfIndex::NONE,
            flags: CnatSnatPolicyFlags::new(default),
        })
    }
}

impl CnatSetSnatAddresses {
    /// As [`CnatSetSnatAddressesV2::new`], for releases without it.
    ///
    /// # Errors
    /// [`Refused::NoAddress`].
    pub fn new(ip4: Option<Ipv4Addr>, ip6: Option<Ipv6Addr>) -> Result<Self, Refused> {
        let (snat_ip4, snat_ip6) = addresses(ip4, ip6)?;
        Ok(Self { head: RequestHead::BLANK, snat_ip4, snat_ip6, sw_if_index: SwIfIndex::NONE })
    }
}

impl CnatSetSnatPolicy {
    /// The rules for Kubernetes. To be sent only to a VPP that has addresses ([`CnatGetSnatAddresses`]): others die.
    #[must_use]
    pub const fn kubernetes() -> Self {
        Self { head: RequestHead::BLANK, policy: CnatSnatPolicies::K8S }
    }
}

impl CnatSetSnatPolicy2602 {
    /// As [`CnatSetSnatPolicy::kubernetes`], for releases up to 26.02.
    #[must_use]
    pub const fn kubernetes() -> Self {
        Self { head: RequestHead::BLANK, policy: CnatSnatPolicies::K8S }
    }
}

impl CnatSnatPolicyAddDelExcludePfx {
    /// A destination for which sources are left alone, or no longer. To be sent only to a VPP that has addresses: others
    /// die.
    #[must_use]
    pub fn new(prefix: IpNet, add: bool) -> Self {
        Self { head: RequestHead::BLANK, is_add: u8::from(add), prefix: Prefix::with_host(prefix.trunc()) }
    }
}
