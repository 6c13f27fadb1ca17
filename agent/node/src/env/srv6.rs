//! The settings of SRv6, and what they must say together.

use std::net::Ipv6Addr;

use agent_core::model::{OwnSid, Sids};
use agent_core::{Srv6Config, Srv6Pools};
use ipnet::Ipv6Net;

use super::SettingsFault;
use crate::yaml::Mistake;

use super::table::value;

/// What has been read of them.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) on: bool,
    pub(super) localsid_pool: Option<Ipv6Net>,
    pub(super) policy_pool: Option<Ipv6Net>,
    pub(super) localsid_dt4: Option<Ipv6Addr>,
    pub(super) localsid_dt6: Option<Ipv6Addr>,
    pub(super) bsid_dt4: Option<Ipv6Addr>,
    pub(super) bsid_dt6: Option<Ipv6Addr>,
}

/// A pool of SIDs. Nothing says that there is none.
pub(super) fn pool(text: &str) -> Result<Option<Ipv6Net>, Mistake> {
    const WANTED: &str = "an IPv6 prefix such as fd00:a::/64";
    if text.is_empty() {
        return Ok(None);
    }
    let net: Ipv6Net = text.parse().map_err(|_| value(WANTED, text))?;
    if net == net.trunc() && net.prefix_len() > 0 { Ok(Some(net)) } else { Err(value(WANTED, text)) }
}

/// A SID.
pub(super) fn sid(text: &str) -> Result<Option<Ipv6Addr>, Mistake> {
    const WANTED: &str = "an IPv6 address such as fd00:a::1:4";
    let sid: Ipv6Addr = text.parse().map_err(|_| value(WANTED, text))?;
    if sid.is_unspecified() || sid.is_multicast() { Err(value(WANTED, text)) } else { Ok(Some(sid)) }
}

impl Draft {
    /// Where SIDs came from while SRv6 was on, as far as that is still said.
    pub(super) fn former(&self) -> Option<Srv6Pools> {
        let (localsids, policies) = (self.localsid_pool?, self.policy_pool?);
        (!self.on).then_some(Srv6Pools { localsids, policies })
    }

    /// All of it, where SRv6 is on; what is missing, or in contradiction, is noted.
    pub(super) fn finish(&self, faults: &mut Vec<SettingsFault>) -> Option<Srv6Config> {
        if !self.on {
            return None;
        }
        let before = faults.len();
        let mut need = |given: bool, key: &'static str, variable: &'static str| {
            if !given {
                faults.push(SettingsFault::Missing { key, variable });
            }
        };
        need(self.localsid_pool.is_some(), "srv6.localsid-pool", "PEREGRINE_SRV6_LOCALSID_POOL");
        need(self.policy_pool.is_some(), "srv6.policy-pool", "PEREGRINE_SRV6_POLICY_POOL");
        need(self.localsid_dt4.is_some(), "srv6.localsid-dt4", "PEREGRINE_SRV6_LOCALSID_DT4");
        need(self.localsid_dt6.is_some(), "srv6.localsid-dt6", "PEREGRINE_SRV6_LOCALSID_DT6");
        need(self.bsid_dt4.is_some(), "srv6.bsid-dt4", "PEREGRINE_SRV6_BSID_DT4");
        need(self.bsid_dt6.is_some(), "srv6.bsid-dt6", "PEREGRINE_SRV6_BSID_DT6");
        let (localsid_pool, policy_pool) = (self.localsid_pool?, self.policy_pool?);
        let own = |sid, bsid| Some(OwnSid { sid: sid?, bsid: bsid? });
        let sids =
            Sids { dt4: own(self.localsid_dt4, self.bsid_dt4)?, dt6: own(self.localsid_dt6, self.bsid_dt6)? };
        let mut fault = |key, reason: String| faults.push(SettingsFault::Contradiction { key, reason });
        if localsid_pool.contains(&policy_pool) || policy_pool.contains(&localsid_pool) {
            fault(
                "srv6.policy-pool",
                format!("{policy_pool} and srv6.localsid-pool {localsid_pool} overlap"),
            );
        }
        for (key, sid, pool) in [
            ("srv6.localsid-dt4", sids.dt4.sid, localsid_pool),
            ("srv6.localsid-dt6", sids.dt6.sid, localsid_pool),
            ("srv6.bsid-dt4", sids.dt4.bsid, policy_pool),
            ("srv6.bsid-dt6", sids.dt6.bsid, policy_pool),
        ] {
            if !pool.contains(&sid) {
                fault(key, format!("{sid} is not in its pool {pool}"));
            }
        }
        if sids.dt4.sid == sids.dt6.sid {
            fault("srv6.localsid-dt6", format!("{} is srv6.localsid-dt4 already", sids.dt6.sid));
        }
        if sids.dt4.bsid == sids.dt6.bsid {
            fault("srv6.bsid-dt6", format!("{} is srv6.bsid-dt4 already", sids.dt6.bsid));
        }
        (faults.len() == before).then_some(Srv6Config { localsid_pool, policy_pool, sids: Some(sids) })
    }
}
