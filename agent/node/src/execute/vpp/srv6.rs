//! SRv6: operations as requests, and what VPP holds of it.
//!
//! Most operations are one request and go through the pipeline as all others do. A policy of several lists, and one that
//! changes, take several: a task of their own carries these out one after the other.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::sync::Arc;

use agent_core::event::{DumpedPolicy, Srv6Dump, VppReply};
use agent_core::model::{RouteKey, SidList, SrBehavior, TableId};
use agent_core::plan::{OpId, Retval as NamedRetval, Srv6Action, VppFailure};
use bgp_core::Family;
use ipnet::IpNet;
use vpp_client::wire::api::sr::{
    SrBehavior as WireBehavior, SrLocalsidAddDel, SrLocalsidAddDelReply, SrLocalsidsDump, SrOutcome,
    SrPoliciesV2Dump, SrPoliciesWithSlIndexDump, SrPolicyAddV2, SrPolicyAddV2Reply, SrPolicyDel,
    SrPolicyDelReply, SrPolicyModV2, SrPolicyType, SrReply, SrSetEncapSource, SrSetEncapSourceReply, SrSteer,
    SrSteeringAddDel, SrSteeringAddDelReply, SrSteeringPolDump, Srv6SidList,
};
use vpp_client::wire::types::TableId as WireTable;
use vpp_client::wire::{Message, Refused, Reply, Request, Retval};
use vpp_client::{CallError, Client, FromReply, Pipeline};

use super::Wanted;
use super::request::{self, Outcome};
use super::tasks::{self, Failed};

/// What becomes of an operation.
pub(super) enum Submitted {
    /// It is in the pipeline.
    Sent,
    /// It takes several requests: [`carry_out`].
    Several,
}

macro_rules! replies {
    ($($reply:ty),+ $(,)?) => {$(
        impl FromReply<$reply> for Outcome {
            fn from_reply(reply: &$reply) -> Self {
                Self::plain(reply.retval)
            }
        }
    )+};
}

replies!(
    SrLocalsidAddDelReply,
    SrPolicyAddV2Reply,
    SrPolicyDelReply,
    SrSetEncapSourceReply,
    SrSteeringAddDelReply,
);

/// Put an operation into a request and send it, where one is enough. `tables` are those that VPP has.
///
/// # Errors
/// The operation can't be put into a request: VPP would be harmed by it.
pub(super) fn submit(
    pipeline: &Pipeline<(OpId, Wanted), Outcome>,
    id: OpId,
    action: &Srv6Action,
    tables: &BTreeSet<(TableId, Family)>,
) -> Result<Submitted, VppFailure> {
    let tag = |reply| (id, Wanted::Sr(reply));
    let sent = match action {
        Srv6Action::SetEncapSource(source) => {
            let request = SrSetEncapSource::new(*source).map_err(request::refused)?;
            pipeline.submit(&request, (id, Wanted::Nothing))
        }
        Srv6Action::AddLocalsid { sid, behavior } => {
            let behavior = match behavior {
                SrBehavior::Dt4 => WireBehavior::DT4,
                SrBehavior::Dt6 => WireBehavior::DT6,
            };
            let request = SrLocalsidAddDel::add(*sid, behavior).map_err(request::refused)?;
            pipeline.submit(&request, tag(SrReply::Localsid))
        }
        Srv6Action::DelLocalsid { sid } => {
            let request = SrLocalsidAddDel::delete(*sid).map_err(request::refused)?;
            pipeline.submit(&request, tag(SrReply::Localsid))
        }
        Srv6Action::AddPolicy { bsid, source, lists } => {
            let [list] = lists.as_ref() else { return Ok(Submitted::Several) };
            let request = wire_list(list).and_then(|list| SrPolicyAddV2::new(*bsid, *source, list));
            pipeline.submit(&request.map_err(request::refused)?, tag(SrReply::PolicyAdd))
        }
        Srv6Action::ChangePolicy { .. } => return Ok(Submitted::Several),
        Srv6Action::DelPolicy { bsid } => {
            pipeline.submit(&SrPolicyDel::by_bsid(*bsid), tag(SrReply::PolicyDel))
        }
        Srv6Action::Steer { route, bsid } => {
            if !is_there(route, tables) {
                return Err(request::named("a table that VPP does not have, of which it would die"));
            }
            let request = SrSteeringAddDel::add(WireTable::new(route.table.0), route.prefix, *bsid);
            pipeline.submit(&request.map_err(request::refused)?, tag(SrReply::Steering))
        }
        Srv6Action::Unsteer { route } => {
            let request = SrSteeringAddDel::delete(WireTable::new(route.table.0), route.prefix);
            pipeline.submit(&request.map_err(request::refused)?, tag(SrReply::Steering))
        }
    };
    sent.map(|_| Submitted::Sent).map_err(|_| VppFailure::Unanswered)
}

/// The plan waits for the table; this is in case somebody has deleted it since.
fn is_there(route: &RouteKey, tables: &BTreeSet<(TableId, Family)>) -> bool {
    let family = match route.prefix {
        IpNet::V4(_) => Family::Ipv4Unicast,
        IpNet::V6(_) => Family::Ipv6Unicast,
    };
    route.table == TableId::MAIN || tables.contains(&(route.table, family))
}

/// What a return value comes to.
pub(super) fn read(reply: SrReply, retval: Retval) -> Result<VppReply, VppFailure> {
    let named = |name: &str| VppFailure::Retry(NamedRetval { value: retval.value(), name: Arc::from(name) });
    match reply.outcome(retval) {
        SrOutcome::Done => Ok(VppReply::Done),
        SrOutcome::Absent => Err(VppFailure::Absent),
        // Not ours, or it would be known: what has its place may go.
        SrOutcome::Exists => Err(named("there is one, or a route to its address")),
        SrOutcome::Missing => Err(named("what it needs is not there")),
        SrOutcome::Failed => Err(named("SRv6")),
    }
}

fn wire_list(list: &SidList) -> Result<Srv6SidList, Refused> {
    Srv6SidList::new(&list.sids, list.weight)
}

/// Carry out an operation that takes several requests.
pub(super) async fn carry_out(client: Client, action: Srv6Action) -> tasks::Outcome {
    match action {
        Srv6Action::AddPolicy { bsid, source, lists } => add(&client, bsid, source, &lists).await,
        Srv6Action::ChangePolicy { bsid, source, lists } => change(&client, bsid, source, &lists).await,
        Srv6Action::SetEncapSource(_)
        | Srv6Action::AddLocalsid { .. }
        | Srv6Action::DelLocalsid { .. }
        | Srv6Action::DelPolicy { .. }
        | Srv6Action::Steer { .. }
        | Srv6Action::Unsteer { .. } => Err(Failed::Action(VppFailure::Unanswered)),
    }?;
    Ok(VppReply::Done)
}

async fn ask<R: Request>(client: &Client, reply: SrReply, request: Result<R, Refused>) -> Result<(), Failed>
where
    R::Reply: Copy + Send,
{
    let request = request.map_err(|reason| Failed::Action(request::refused(reason)))?;
    let answer = client.ask(&request).await.map_err(Failed::Call)?;
    read(reply, answer.retval()).map(drop).map_err(Failed::Action)
}

/// All of a policy, or nothing of it.
async fn add(client: &Client, bsid: Ipv6Addr, source: Ipv6Addr, lists: &[SidList]) -> Result<(), Failed> {
    let Some((first, more)) = lists.split_first() else {
        return Err(Failed::Action(request::refused(Refused::Sids(0))));
    };
    let request = wire_list(first).and_then(|list| SrPolicyAddV2::new(bsid, source, list));
    ask(client, SrReply::PolicyAdd, request).await?;
    for list in more {
        let added = add_list(client, bsid, source, list).await;
        if added.is_err() {
            let _gone = ask(client, SrReply::PolicyDel, Ok(SrPolicyDel::by_bsid(bsid))).await;
            return added;
        }
    }
    Ok(())
}

async fn add_list(client: &Client, bsid: Ipv6Addr, source: Ipv6Addr, list: &SidList) -> Result<(), Failed> {
    let request = wire_list(list).and_then(|list| SrPolicyModV2::add_list(bsid, source, list));
    ask(client, SrReply::PolicyMod, request).await
}

/// The lists that are new come before those that are old go, so that traffic always has one.
async fn change(client: &Client, bsid: Ipv6Addr, source: Ipv6Addr, lists: &[SidList]) -> Result<(), Failed> {
    let Some(found) = found(client, bsid).await.map_err(Failed::Call)? else {
        return add(client, bsid, source, lists).await;
    };
    if !found.ours_alike {
        // Nothing changes what kind a policy is. Its successor gets its number, by which what is steered knows it.
        ask(client, SrReply::PolicyDel, Ok(SrPolicyDel::by_bsid(bsid))).await?;
        return add(client, bsid, source, lists).await;
    }
    let (missing, surplus) = difference(&found.lists, lists, found.source == source);
    for list in missing {
        add_list(client, bsid, source, list).await?;
    }
    for index in surplus {
        let request = SrPolicyModV2::delete_list(bsid, source, index);
        ask(client, SrReply::PolicyMod, request).await?;
    }
    Ok(())
}

/// A policy as VPP has it.
struct Found {
    source: Ipv6Addr,
    /// It encapsulates, and spreads traffic over its lists.
    ours_alike: bool,
    /// Its lists, with their indices.
    lists: Vec<(u32, SidList)>,
}

async fn found(client: &Client, bsid: Ipv6Addr) -> Result<Option<Found>, CallError> {
    let source = client
        .dump(&SrPoliciesV2Dump::default(), None, move |source, details| {
            if details.bsid.addr() == bsid {
                *source = Some((details.encap_src.addr(), details.r#type == SrPolicyType::DEFAULT));
            }
        })
        .await?;
    let Some((source, is_default)) = source else { return Ok(None) };
    client
        .dump(&SrPoliciesWithSlIndexDump::default(), None, move |found, details| {
            if details.bsid.addr() == bsid {
                let lists = details.sid_lists.iter();
                let lists =
                    lists.map(|list| (list.sl_index.get(), core_list(list.weight.get(), list.iter())));
                let ours_alike =
                    is_default && details.is_encap.is_true() && details.fib_table == WireTable::DEFAULT;
                *found = Some(Found { source, ours_alike, lists: lists.collect() });
            }
        })
        .await
}

/// Which of the lists that are wanted are not there, and the indices of those that are there and not wanted. Of equal ones
/// the last is kept: its source is the newer one. Without `same_source` all are made again.
fn difference<'a>(
    has: &[(u32, SidList)],
    wants: &'a [SidList],
    same_source: bool,
) -> (Vec<&'a SidList>, Vec<u32>) {
    let mut missing: Vec<&SidList> = wants.iter().collect();
    let mut surplus = Vec::new();
    for (index, list) in has.iter().rev() {
        match missing.iter().position(|wanted| same_source && *wanted == list) {
            Some(at) => drop(missing.remove(at)),
            None => surplus.push(*index),
        }
    }
    (missing, surplus)
}

fn core_list(weight: u32, sids: impl Iterator<Item = Ipv6Addr>) -> SidList {
    SidList { weight, sids: sids.collect() }
}

/// Reads all of SRv6; nothing where VPP has no messages for it.
pub(super) async fn dump(client: &Client) -> Result<Srv6Dump, CallError> {
    let lacks = [
        client.knows::<SrLocalsidsDump>(),
        client.knows::<SrPoliciesV2Dump>(),
        client.knows::<SrSteeringPolDump>(),
    ];
    if lacks.contains(&false) {
        tracing::debug!(message = SrPoliciesV2Dump::DESCRIPTOR.name.name(), "vpp has no SRv6");
        return Ok(Srv6Dump::default());
    }
    let localsids = client
        .dump(&SrLocalsidsDump::default(), Vec::new(), |all, details| {
            let plain = !details.end_psp.is_true() && details.xconnect_iface_or_vrf_table.get() == 0;
            let behavior = match details.behavior {
                WireBehavior::DT4 if plain => Some(SrBehavior::Dt4),
                WireBehavior::DT6 if plain => Some(SrBehavior::Dt6),
                _ => None,
            };
            if details.fib_table == WireTable::DEFAULT {
                all.push((details.addr.addr(), behavior));
            }
        })
        .await?;
    let policies = client
        .dump(&SrPoliciesV2Dump::default(), Vec::new(), |all, details| {
            let known = details.is_encap.is_true()
                && details.r#type == SrPolicyType::DEFAULT
                && details.fib_table == WireTable::DEFAULT;
            let says = known.then(|| {
                let lists = details.sid_lists.iter();
                let mut lists: Vec<SidList> =
                    lists.map(|list| core_list(list.weight.get(), list.iter())).collect();
                lists.sort_unstable();
                (details.encap_src.addr(), lists.into())
            });
            all.push(DumpedPolicy { bsid: details.bsid.addr(), says });
        })
        .await?;
    let steering = client
        .dump(&SrSteeringPolDump::default(), Vec::new(), |all, details| {
            let by_prefix = matches!(details.traffic_type, SrSteer::IPV4 | SrSteer::IPV6);
            if let Some(prefix) = details.prefix.truncated().filter(|_| by_prefix) {
                let route = RouteKey { table: TableId(details.fib_table.value()), prefix };
                all.push((route, details.bsid.addr()));
            }
        })
        .await?;
    Ok(Srv6Dump { localsids, policies, steering })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(weight: u32, sid: &str) -> SidList {
        core_list(weight, [sid.parse().unwrap()].into_iter())
    }

    #[test]
    fn only_what_differs_is_touched_and_the_newer_of_equals_stays() {
        let (a, b, c) = (list(1, "fd00::a"), list(2, "fd00::b"), list(1, "fd00::b"));
        let has = [(4, a.clone()), (7, b.clone()), (9, a.clone())];
        let wants = [a.clone(), c.clone()];
        assert_eq!(difference(&has, &wants, true), (vec![&c], vec![7, 4]));
        assert_eq!(difference(&has, &wants, false), (vec![&a, &c], vec![9, 7, 4]));
        assert_eq!(difference(&has[..1], &wants[..1], true), (vec![], vec![]));
    }

    #[test]
    fn a_table_that_vpp_lacks_is_not_steered_in() {
        let key = |table, prefix: &str| RouteKey { table: TableId(table), prefix: prefix.parse().unwrap() };
        let tables = BTreeSet::from([(TableId(2), Family::Ipv6Unicast)]);
        assert!(is_there(&key(0, "10.0.0.0/8"), &tables) && is_there(&key(2, "fd00::/8"), &tables));
        assert!(!is_there(&key(2, "10.0.0.0/8"), &tables) && !is_there(&key(3, "fd00::/8"), &tables));
    }

    #[test]
    fn return_values_have_a_meaning_of_their_own() {
        let of = |reply, code| read(reply, Retval::new(code));
        assert_eq!(of(SrReply::Steering, 0), Ok(VppReply::Done));
        assert_eq!(of(SrReply::Steering, -4), Err(VppFailure::Absent));
        assert_eq!(of(SrReply::PolicyDel, -1), Err(VppFailure::Absent));
        assert!(matches!(of(SrReply::PolicyAdd, -12), Err(VppFailure::Retry(_))));
        assert!(matches!(of(SrReply::Localsid, -4), Err(VppFailure::Retry(_))));
    }
}
