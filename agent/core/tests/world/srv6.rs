//! SRv6 of a VPP without wire: it panics where a real one would die or forward wrongly.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::sync::Arc;

use agent_core::event::{DumpedPolicy, Srv6Dump};
use agent_core::model::{RouteKey, SidList, SrBehavior, TableId};
use agent_core::plan::{Retval, Srv6Action, VppFailure};
use bgp_core::Family;
use ipnet::IpNet;

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Srv6 {
    pub source: Option<Ipv6Addr>,
    pub localsids: BTreeMap<Ipv6Addr, SrBehavior>,
    pub policies: BTreeMap<Ipv6Addr, (Ipv6Addr, Arc<[SidList]>)>,
    pub steering: BTreeMap<RouteKey, Ipv6Addr>,
}

impl Srv6 {
    pub fn execute(
        &mut self,
        action: &Srv6Action,
        tables: &BTreeSet<(TableId, Family)>,
    ) -> Result<(), VppFailure> {
        match action {
            Srv6Action::SetEncapSource(source) => self.source = Some(*source),
            Srv6Action::AddLocalsid { sid, behavior } => {
                if self.localsids.contains_key(sid) {
                    return Err(VppFailure::Taken);
                }
                self.localsids.insert(*sid, *behavior);
            }
            Srv6Action::DelLocalsid { sid } => {
                self.localsids.remove(sid).ok_or(VppFailure::Absent)?;
            }
            Srv6Action::AddPolicy { bsid, source, lists } => {
                check(*bsid, lists);
                if self.policies.contains_key(bsid) {
                    return Err(VppFailure::Taken);
                }
                self.policies.insert(*bsid, (*source, Arc::clone(lists)));
            }
            Srv6Action::ChangePolicy { bsid, source, lists } => {
                check(*bsid, lists);
                let Some(policy) = self.policies.get_mut(bsid) else {
                    return Err(VppFailure::Retry(Retval { value: -1, name: "".into() }));
                };
                *policy = (*source, Arc::clone(lists));
            }
            Srv6Action::DelPolicy { bsid } => {
                let user = self.steering.iter().find(|(_, into)| *into == bsid);
                assert_eq!(user, None, "a policy goes while something is steered into it");
                self.policies.remove(bsid).ok_or(VppFailure::Absent)?;
            }
            Srv6Action::Steer { route, bsid } => {
                let family = match route.prefix {
                    IpNet::V4(_) => Family::Ipv4Unicast,
                    IpNet::V6(_) => Family::Ipv6Unicast,
                };
                assert!(tables.contains(&(route.table, family)), "no table {}: VPP dies", route.table);
                assert_eq!(route.prefix, route.prefix.trunc());
                if !self.policies.contains_key(bsid) {
                    return Err(VppFailure::Retry(Retval { value: -2, name: "".into() }));
                }
                self.steering.insert(*route, *bsid);
            }
            Srv6Action::Unsteer { route } => {
                self.steering.remove(route).ok_or(VppFailure::Absent)?;
            }
        }
        Ok(())
    }

    pub fn dump(&self) -> Srv6Dump {
        let policy = |(bsid, says): (&Ipv6Addr, &(Ipv6Addr, Arc<[SidList]>))| DumpedPolicy {
            bsid: *bsid,
            says: Some(says.clone()),
        };
        Srv6Dump {
            localsids: self.localsids.iter().map(|(sid, behavior)| (*sid, Some(*behavior))).collect(),
            policies: self.policies.iter().map(policy).collect(),
            steering: self.steering.iter().map(|(route, bsid)| (*route, *bsid)).collect(),
        }
    }
}

fn check(bsid: Ipv6Addr, lists: &[SidList]) {
    assert!(!bsid.is_unspecified() && !lists.is_empty());
    assert!(lists.iter().all(|list| (1..=SidList::MOST_SIDS).contains(&list.sids.len())), "VPP dies");
    assert!(lists.is_sorted());
}
