//! What VPP holds of SRv6.

use std::collections::BTreeSet;

use vpp_client::wire::api::sr::{SrBehavior, SrLocalsidsDump, SrPoliciesV2Dump, SrSteeringPolDump};
use vpp_client::{CallError, Client};

use super::State;

impl State {
    /// Local SIDs, policies, and what is steered into them.
    pub(super) async fn srv6(&mut self, client: &Client) -> Result<(), CallError> {
        for localsid in client.dump_all(&SrLocalsidsDump::default()).await? {
            let does = match localsid.behavior {
                SrBehavior::DT4 => "decapsulates ipv4",
                SrBehavior::DT6 => "decapsulates ipv6",
                _ => "does something else",
            };
            self.lines.insert(format!("localsid {}: {does}", localsid.addr.addr()));
        }
        let read = |all: &mut Vec<String>, policy: &vpp_client::wire::api::sr::SrPoliciesV2Details| {
            let lists = policy.sid_lists.iter().map(|list| {
                let sids: Vec<String> = list.iter().map(|sid| sid.to_string()).collect();
                format!("weight {} through {}", list.weight.get(), sids.join(" "))
            });
            // The order in which VPP tells them means nothing.
            let lists: Vec<String> = lists.collect::<BTreeSet<_>>().into_iter().collect();
            let (bsid, source) = (policy.bsid.addr(), policy.encap_src.addr());
            all.push(format!("policy {bsid}: from {source}, {}", lists.join(" and ")));
        };
        self.lines.extend(client.dump(&SrPoliciesV2Dump::default(), Vec::new(), read).await?);
        for steering in client.dump_all(&SrSteeringPolDump::default()).await? {
            let prefix = steering.prefix.net().map_or_else(|| "?".to_owned(), |prefix| prefix.to_string());
            let (table, bsid) = (steering.fib_table.value(), steering.bsid.addr());
            self.lines.insert(format!("steering {prefix} in table {table}: into policy {bsid}"));
        }
        Ok(())
    }
}
