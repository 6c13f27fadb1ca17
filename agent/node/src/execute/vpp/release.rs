//! Giving VPP back to another agent: what is ours becomes anybody's. Each of our routes is put under VPP's own source, where
//! other clients' routes stand, before ours goes, so that packets never find neither; then tunnels lose our tag.

use agent_core::event::SwIfIndex;
use agent_core::model::TableId;
use agent_core::plan::TUNNEL_TAG;
use bgp_core::Family;
use ipnet::IpNet;
use vpp_client::wire::api::interface::SwInterfaceTagAddDel;
use vpp_client::wire::api::ip::{IpRouteV2Dump, RouteDelete, RouteReplace};
use vpp_client::wire::types::{
    FibPath as WirePath, FibSourceId as WireSource, SwIfIndex as WireInterface, TableId as WireTable,
};
use vpp_client::wire::{Refused, VppError};
use vpp_client::{CallError, Client};

use super::dump;

/// What was given back.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GivenBack {
    /// Routes.
    pub(crate) routes: usize,
    /// Tunnels.
    pub(crate) tunnels: usize,
}

/// Why it stopped half way. It can be done again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReleaseError {
    /// VPP said no, or is gone.
    #[error("VPP: {0}")]
    Call(#[from] CallError),
    /// VPP shows what may not be put into it.
    #[error("a route that VPP shows can't be put into it again: {0}")]
    Refused(#[from] Refused),
}

/// Gives everything back.
pub(crate) async fn give_back(client: &Client) -> Result<GivenBack, ReleaseError> {
    let mut given = GivenBack::default();
    let tables = dump::tables(client).await?;
    if let Some(source) = dump::fib_source(client).await? {
        let source = WireSource::new(source.0);
        for (table, family) in tables {
            let (table, is_ipv6) = (WireTable::new(table.0), family == Family::Ipv6Unicast);
            for (prefix, paths) in routes(client, table, is_ipv6, Some(source)).await? {
                client.call(&RouteReplace::new(table, prefix, source, &paths)?.given_back()).await?;
                absent(client.call(&RouteDelete::new(table, prefix, source)?).await.map(drop))?;
                given.routes += 1;
            }
            // VPP shows a route under its best source only: one of ours may be below another agent's, and would be there
            // again when that goes. To delete what isn't there does no harm.
            if OURS.contains(&TableId(table.value())) {
                for (prefix, _) in routes(client, table, is_ipv6, None).await? {
                    absent(client.call(&RouteDelete::new(table, prefix, source)?).await.map(drop))?;
                }
            }
        }
    }
    for interface in dump::interfaces(client).await? {
        if interface.tag.starts_with(TUNNEL_TAG) {
            let SwIfIndex(index) = interface.index;
            client.call(&SwInterfaceTagAddDel::del(WireInterface::new(index))).await?;
            given.tunnels += 1;
        }
    }
    Ok(given)
}

/// The tables that routes of the default network stand in.
const OURS: [TableId; 2] = [TableId::MAIN, TableId::PODS];

async fn routes(
    client: &Client,
    table: WireTable,
    is_ipv6: bool,
    source: Option<WireSource>,
) -> Result<Vec<(IpNet, Vec<WirePath>)>, CallError> {
    let dump = IpRouteV2Dump::new(table, is_ipv6, source);
    client
        .dump(&dump, Vec::new(), |routes, details| {
            if let Some(prefix) = details.route.prefix.truncated() {
                routes.push((prefix, details.route.paths.to_vec()));
            }
        })
        .await
}

/// What is not there needs no deletion.
fn absent(outcome: Result<(), CallError>) -> Result<(), CallError> {
    match outcome {
        Err(CallError::Retval(VppError::NO_SUCH_ENTRY)) => Ok(()),
        other => other,
    }
}
