//! Operations as requests, replies as results.

use std::sync::Arc;

use agent_core::desired::{SnatAddresses, SnatTable, VxlanKey};
use agent_core::event::{FibPath, FibPathKind, FibSourceId, SwIfIndex, VppReply};
use agent_core::plan::{NatAction, OpId, Retval as NamedRetval, VppAction, VppFailure};
use bgp_core::Family;
use ipnet::IpNet;
use vpp_client::wire::api::cnat::{
    CnatSetSnatAddresses, CnatSetSnatAddressesReply, CnatSetSnatAddressesV2, CnatSetSnatAddressesV2Reply,
    CnatSetSnatPolicy, CnatSetSnatPolicy2602, CnatSetSnatPolicyReply, CnatSnatPolicyAddDelExcludePfx,
    CnatSnatPolicyAddDelExcludePfxReply, CnatSnatPolicyAddDelIf, CnatSnatPolicyAddDelIfReply,
    CnatSnatPolicyTable, FeatureCnatEnableDisable, FeatureCnatEnableDisableReply,
};
use vpp_client::wire::api::fib::{FibSourceAdd, FibSourceAddReply, FibSourceDump};
use vpp_client::wire::api::gso::{FeatureGsoEnableDisable, FeatureGsoEnableDisableReply};
use vpp_client::wire::api::interface::{
    SwInterfaceAddDelAddress, SwInterfaceAddDelAddressReply, SwInterfaceDump, SwInterfaceSetFlags,
    SwInterfaceSetFlagsReply, SwInterfaceSetMtu, SwInterfaceSetMtuReply, SwInterfaceSetTable,
    SwInterfaceSetTableReply, SwInterfaceSetUnnumbered, SwInterfaceSetUnnumberedReply, SwInterfaceTagAddDel,
    SwInterfaceTagAddDelReply,
};
use vpp_client::wire::api::ip::{
    IpRouteAddDelV2, IpRouteAddDelV2Reply, IpRouteV2Dump, IpTableAddDel, IpTableAddDelReply, IpTableDump,
    RouteDelete, RouteReplace,
};
use vpp_client::wire::api::ipip::{
    IpipAddTunnel, IpipAddTunnelReply, IpipDelTunnel, IpipDelTunnelReply, IpipTunnelDump,
};
use vpp_client::wire::api::vlib::{AddNodeNext, AddNodeNextReply};
use vpp_client::wire::api::vxlan::{VxlanAddDelTunnelV3, VxlanAddDelTunnelV3Reply, VxlanTunnel};
use vpp_client::wire::types::{
    AddressFamily, FibPath as WirePath, FibSourceId as WireSource, FibTarget, SwIfIndex as WireInterface,
    TableId as WireTable,
};
use vpp_client::wire::{Class, Message, MsgName, Refused, Retval, VppError};
use vpp_client::{Client, FromReply, Full, Pipeline};

use super::{Wanted, wireguard};

/// The name of our FIB source in VPP.
pub(super) use agent_core::plan::SOURCE_NAME;
/// Its priority: below VPP's API source, which has 128, so that what others put there stays in force.
const SOURCE_PRIORITY: u8 = 130;
/// The name of tables that we have to make ourselves.
const TABLE_NAME: &str = "peregrine";

/// Messages without which there is nothing we could do.
pub(super) fn required() -> Vec<MsgName> {
    vec![
        FibSourceAdd::DESCRIPTOR.name,
        FibSourceDump::DESCRIPTOR.name,
        IpRouteAddDelV2::DESCRIPTOR.name,
        IpRouteV2Dump::DESCRIPTOR.name,
        IpTableAddDel::DESCRIPTOR.name,
        IpTableDump::DESCRIPTOR.name,
        IpipTunnelDump::DESCRIPTOR.name,
        SwInterfaceDump::DESCRIPTOR.name,
    ]
}

/// What a reply says, whatever it answers.
#[derive(Copy, Clone, Debug)]
pub(super) struct Outcome {
    retval: Retval,
    /// What VPP numbered the object, where it does.
    number: u32,
}

impl Outcome {
    pub(super) const fn plain(retval: Retval) -> Self {
        Self { retval, number: u32::MAX }
    }

    pub(super) const fn numbered(retval: Retval, number: u32) -> Self {
        Self { retval, number }
    }

    /// For what was expected of the reply.
    pub(super) fn read(self, wanted: Wanted) -> Result<VppReply, VppFailure> {
        if let Wanted::Sr(reply) = wanted {
            return super::srv6::read(reply, self.retval);
        }
        match (self.retval.ok(), wanted) {
            (
                Ok(()),
                Wanted::Nothing | Wanted::Absence | Wanted::NoInterface | Wanted::Table(..) | Wanted::Sr(_),
            ) => Ok(VppReply::Done),
            (Ok(()), Wanted::Interface) => Ok(VppReply::SwIfIndex(SwIfIndex(self.number))),
            (Ok(()), Wanted::Source) => match u8::try_from(self.number) {
                Ok(id) => Ok(VppReply::FibSource(FibSourceId(id))),
                Err(_) => Err(failure(VppError::UNSPECIFIED)),
            },
            (Ok(()), Wanted::Index | Wanted::Peer) => Ok(VppReply::Index(self.number)),
            (Err(VppError::ENTRY_ALREADY_EXISTS), Wanted::Peer) => Err(VppFailure::Taken),
            // Gone, or gone and its number another interface's by now.
            (Err(VppError::INVALID_SW_IF_INDEX | VppError::INVALID_VALUE), Wanted::NoInterface) => {
                Err(VppFailure::Absent)
            }
            (Err(VppError::IF_ALREADY_EXISTS), Wanted::Interface) => {
                Err(VppFailure::Exists(SwIfIndex(self.number)))
            }
            (Err(VppError::TUNNEL_EXIST), Wanted::Interface) => Err(VppFailure::Taken),
            (Err(VppError::NO_SUCH_ENTRY), Wanted::Absence) => Err(VppFailure::Absent),
            (Err(error), _) => Err(failure(error)),
        }
    }
}

/// What is to be done about an error.
pub(super) fn failure(error: VppError) -> VppFailure {
    let retval = NamedRetval { value: error.code(), name: Arc::from(error.name().unwrap_or_default()) };
    match error.class() {
        Class::Rejected => VppFailure::Rejected(retval),
        Class::Retry | Class::Lost => VppFailure::Retry(retval),
    }
}

/// Replies that say nothing but whether it was done.
macro_rules! plain_replies {
    ($($reply:ty),+ $(,)?) => {$(
        impl ::vpp_client::FromReply<$reply> for $crate::execute::vpp::request::Outcome {
            fn from_reply(reply: &$reply) -> Self {
                Self::plain(reply.retval)
            }
        }
    )+};
}
pub(super) use plain_replies;

plain_replies!(
    FeatureCnatEnableDisableReply,
    CnatSetSnatAddressesReply,
    CnatSetSnatAddressesV2Reply,
    CnatSetSnatPolicyReply,
    CnatSnatPolicyAddDelExcludePfxReply,
    CnatSnatPolicyAddDelIfReply,
    FeatureGsoEnableDisableReply,
    IpRouteAddDelV2Reply,
    IpTableAddDelReply,
    IpipDelTunnelReply,
    SwInterfaceSetFlagsReply,
    SwInterfaceSetMtuReply,
    SwInterfaceSetTableReply,
    SwInterfaceAddDelAddressReply,
    SwInterfaceSetUnnumberedReply,
    SwInterfaceTagAddDelReply,
);

impl FromReply<IpipAddTunnelReply> for Outcome {
    fn from_reply(reply: &IpipAddTunnelReply) -> Self {
        Self::numbered(reply.retval, reply.sw_if_index.value())
    }
}

impl FromReply<VxlanAddDelTunnelV3Reply> for Outcome {
    fn from_reply(reply: &VxlanAddDelTunnelV3Reply) -> Self {
        Self::numbered(reply.retval, reply.sw_if_index.value())
    }
}

impl FromReply<AddNodeNextReply> for Outcome {
    fn from_reply(reply: &AddNodeNextReply) -> Self {
        Self::numbered(reply.retval, reply.next_index.get())
    }
}

impl FromReply<FibSourceAddReply> for Outcome {
    fn from_reply(reply: &FibSourceAddReply) -> Self {
        Self::numbered(reply.retval, u32::from(reply.id.value()))
    }
}

/// Put an operation into a request and send it.
///
/// # Errors
/// The operation can't be put into a request, and never will be: VPP would be harmed by it.
pub(super) fn submit(
    client: &Client,
    pipeline: &Pipeline<(OpId, Wanted), Outcome>,
    id: OpId,
    action: &VppAction,
) -> Result<(), VppFailure> {
    let sent = match action {
        // Answered by many messages, or carried out by many, and so not for the pipeline.
        VppAction::Dump | VppAction::Ike(_) => return Err(VppFailure::Unanswered),
        VppAction::AddFibSource => {
            let request = FibSourceAdd::below_api(SOURCE_NAME, SOURCE_PRIORITY).map_err(refused)?;
            pipeline.submit(&request, (id, Wanted::Source))
        }
        VppAction::AddTable { table, family } => {
            let is_ipv6 = *family == Family::Ipv6Unicast;
            let request =
                IpTableAddDel::add(WireTable::new(table.0), is_ipv6, TABLE_NAME).map_err(refused)?;
            pipeline.submit(&request, (id, Wanted::Table(*table, *family)))
        }
        VppAction::DelTable { table, family } => {
            let is_ipv6 = *family == Family::Ipv6Unicast;
            let request = IpTableAddDel::del(WireTable::new(table.0), is_ipv6).map_err(refused)?;
            pipeline.submit(&request, (id, Wanted::Absence))
        }
        // Handed over by whoever knows VPP's tables.
        VppAction::Srv6(_) => return Err(VppFailure::Unanswered),
        VppAction::AddDecapNext { family } => {
            let request =
                if family.is_ipv4() { AddNodeNext::vxlan4_to_ip4() } else { AddNodeNext::vxlan6_to_ip6() };
            pipeline.submit(&request.map_err(refused)?, (id, Wanted::Index))
        }
        VppAction::AddVxlan { key, decap_next } => {
            let request = VxlanAddDelTunnelV3::add(&vxlan(key), *decap_next).map_err(refused)?;
            pipeline.submit(&request, (id, Wanted::Interface))
        }
        VppAction::DelVxlan { key, .. } => {
            let request = VxlanAddDelTunnelV3::delete(&vxlan(key)).map_err(refused)?;
            pipeline.submit(&request, (id, Wanted::Absence))
        }
        VppAction::SetCnat { index } => {
            pipeline.submit(&FeatureCnatEnableDisable::new(interface(*index), true), (id, Wanted::Nothing))
        }
        VppAction::SetMtu { index, mtu } => {
            // The first is for all protocols; 0 lets the others follow it.
            let mtu = [*mtu, 0, 0, 0].map(Into::into);
            pipeline.submit(&SwInterfaceSetMtu::new(interface(*index), mtu), (id, Wanted::Nothing))
        }
        VppAction::SetVrf { index, family, table } => {
            let request =
                SwInterfaceSetTable::new(interface(*index), !family.is_ipv4(), WireTable::new(table.0));
            pipeline.submit(&request, (id, Wanted::Nothing))
        }
        VppAction::AddIpip { local, remote } => {
            let request = IpipAddTunnel::new(*local, *remote, WireTable::DEFAULT).map_err(refused)?;
            pipeline.submit(&request, (id, Wanted::Interface))
        }
        VppAction::DelIpip { index } => {
            pipeline.submit(&IpipDelTunnel::new(interface(*index)), (id, Wanted::Absence))
        }
        VppAction::Wireguard(action) => wireguard::submit(pipeline, id, action)?,
        VppAction::SetTag { index, tag } => {
            let request = SwInterfaceTagAddDel::add(interface(*index), tag).map_err(refused)?;
            pipeline.submit(&request, (id, Wanted::Nothing))
        }
        VppAction::SetUnnumbered { index, lender } => {
            let request = SwInterfaceSetUnnumbered::new(interface(*lender), interface(*index), true);
            pipeline.submit(&request, (id, Wanted::Nothing))
        }
        VppAction::SetGso { index } => {
            pipeline.submit(&FeatureGsoEnableDisable::new(interface(*index), true), (id, Wanted::Nothing))
        }
        VppAction::SetAddress { index, address } => {
            let request = SwInterfaceAddDelAddress::add(interface(*index), *address);
            pipeline.submit(&request, (id, Wanted::Nothing))
        }
        VppAction::SetUp { index } => {
            pipeline.submit(&SwInterfaceSetFlags::new(interface(*index), true), (id, Wanted::Nothing))
        }
        VppAction::Nat(action) => nat(client, pipeline, (id, Wanted::Nothing), action)?,
        VppAction::PutRoute { source, table, prefix, paths } => {
            let family = match prefix {
                IpNet::V4(_) => AddressFamily::IP4,
                IpNet::V6(_) => AddressFamily::IP6,
            };
            let mut wire = smallvec::SmallVec::<[WirePath; 4]>::new();
            for path in paths.iter() {
                wire.push(
                    wire_path(path, family)
                        .ok_or_else(|| named("a path that VPP would take for another one"))?,
                );
            }
            let (table, source) = (WireTable::new(table.0), WireSource::new(source.0));
            let request = RouteReplace::new(table, *prefix, source, &wire).map_err(refused)?;
            pipeline.submit(&request, (id, Wanted::Nothing))
        }
        VppAction::DelOther { table, prefix } => {
            let request = RouteDelete::of_another(WireTable::new(table.0), *prefix).map_err(refused)?;
            pipeline.submit(&request, (id, Wanted::Absence))
        }
        VppAction::DelRoute { source, table, prefix } => {
            let (table, source) = (WireTable::new(table.0), WireSource::new(source.0));
            let request = RouteDelete::new(table, *prefix, source).map_err(refused)?;
            pipeline.submit(&request, (id, Wanted::Absence))
        }
    };
    // The engine gives no more than there are slots; where it did, the operation is as good as unanswered.
    sent.map_err(|_| VppFailure::Unanswered)
}

/// Source translation. The engine asks for nothing else of it before VPP has said that it has addresses.
fn nat(
    client: &Client,
    pipeline: &Pipeline<(OpId, Wanted), Outcome>,
    tag: (OpId, Wanted),
    action: &NatAction,
) -> Result<Result<(), Full<(OpId, Wanted)>>, VppFailure> {
    Ok(match action {
        NatAction::SetAddresses(SnatAddresses { ipv4, ipv6 }) => {
            // A VPP that has neither is told by its absence in the answer.
            if client.knows::<CnatSetSnatAddressesV2>() || !client.knows::<CnatSetSnatAddresses>() {
                pipeline.submit(&CnatSetSnatAddressesV2::new(*ipv4, *ipv6).map_err(refused)?, tag)
            } else {
                pipeline.submit(&CnatSetSnatAddresses::new(*ipv4, *ipv6).map_err(refused)?, tag)
            }
        }
        NatAction::Exclude { prefix, add } => {
            pipeline.submit(&CnatSnatPolicyAddDelExcludePfx::new(*prefix, *add), tag)
        }
        NatAction::SetPolicy if client.knows::<CnatSetSnatPolicy2602>() => {
            pipeline.submit(&CnatSetSnatPolicy2602::kubernetes(), tag)
        }
        NatAction::SetPolicy => pipeline.submit(&CnatSetSnatPolicy::kubernetes(), tag),
        NatAction::Interface { index, table, add } => {
            let table = match table {
                SnatTable::Pod => CnatSnatPolicyTable::POD,
                SnatTable::Host => CnatSnatPolicyTable::HOST,
            };
            pipeline.submit(&CnatSnatPolicyAddDelIf::new(interface(*index), u8::from(*add), table), tag)
        }
    })
}

pub(super) fn interface(index: SwIfIndex) -> WireInterface {
    WireInterface::new(index.0)
}

fn vxlan(key: &VxlanKey) -> VxlanTunnel {
    let VxlanKey { local, remote, vni, port, table } = *key;
    VxlanTunnel { local, remote, port, vni: vni.number(), table: WireTable::new(table.0) }
}

pub(super) fn refused(reason: Refused) -> VppFailure {
    named(&reason.to_string())
}

pub(super) fn named(reason: &str) -> VppFailure {
    VppFailure::Rejected(NamedRetval { value: 0, name: Arc::from(reason) })
}

fn wire_path(path: &FibPath, family: AddressFamily) -> Option<WirePath> {
    let target = match path.kind {
        FibPathKind::Attached(index) => FibTarget::Attached(interface(index)),
        FibPathKind::Via(address, index) => FibTarget::Via(interface(index), address),
        FibPathKind::Recursive(address, table) => FibTarget::Recursive(WireTable::new(table.0), address),
        FibPathKind::Drop => FibTarget::Drop,
        FibPathKind::Other => return None,
    };
    Some(WirePath::new(target, family).ok()?.weighted(path.weight))
}

/// A path as VPP shows it.
pub(super) fn read_path(path: &WirePath) -> FibPath {
    let kind = match path.target() {
        Some(FibTarget::Attached(index)) => FibPathKind::Attached(SwIfIndex(index.value())),
        Some(FibTarget::Via(index, address)) => FibPathKind::Via(address, SwIfIndex(index.value())),
        Some(FibTarget::Recursive(table, address)) => {
            FibPathKind::Recursive(address, agent_core::model::TableId(table.value()))
        }
        Some(FibTarget::Drop) => FibPathKind::Drop,
        Some(FibTarget::Lookup(_) | FibTarget::Unreachable | FibTarget::Prohibited | FibTarget::Local)
        | None => FibPathKind::Other,
    };
    FibPath { kind, weight: path.weight().max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_back_as_they_went() {
        let kinds = [
            FibPathKind::Attached(SwIfIndex(3)),
            FibPathKind::Via("192.0.2.2".parse().unwrap(), SwIfIndex(1)),
            FibPathKind::Via("2001:db8::2".parse().unwrap(), SwIfIndex(1)),
            FibPathKind::Recursive("192.0.2.9".parse().unwrap(), agent_core::model::TableId(0)),
            FibPathKind::Recursive("2001:db8::9".parse().unwrap(), agent_core::model::TableId(2)),
            FibPathKind::Drop,
        ];
        for kind in kinds {
            for family in [AddressFamily::IP4, AddressFamily::IP6] {
                let path = FibPath { kind, weight: 5 };
                assert_eq!(read_path(&wire_path(&path, family).unwrap()), path);
            }
        }
        assert_eq!(wire_path(&FibPath { kind: FibPathKind::Other, weight: 1 }, AddressFamily::IP4), None);
    }

    #[test]
    fn return_values_become_what_the_engine_acts_on() {
        let outcome = |code| Outcome { retval: Retval::new(code), number: 7 };
        let retry = |value, name: &str| VppFailure::Retry(NamedRetval { value, name: name.into() });
        assert_eq!(outcome(0).read(Wanted::Nothing), Ok(VppReply::Done));
        assert_eq!(outcome(0).read(Wanted::Interface), Ok(VppReply::SwIfIndex(SwIfIndex(7))));
        assert_eq!(outcome(0).read(Wanted::Source), Ok(VppReply::FibSource(FibSourceId(7))));
        assert_eq!(outcome(-79).read(Wanted::Interface), Err(VppFailure::Exists(SwIfIndex(7))));
        assert_eq!(outcome(-79).read(Wanted::Nothing), Err(retry(-79, "IF_ALREADY_EXISTS")));
        assert_eq!(outcome(-6).read(Wanted::Absence), Err(VppFailure::Absent));
        assert_eq!(outcome(0).read(Wanted::Peer), Ok(VppReply::Index(7)));
        assert_eq!(outcome(-116).read(Wanted::Peer), Err(VppFailure::Taken));
        for gone in [-2, -7] {
            assert_eq!(outcome(gone).read(Wanted::NoInterface), Err(VppFailure::Absent));
        }
        assert_eq!(outcome(-6).read(Wanted::Nothing), Err(retry(-6, "NO_SUCH_ENTRY")));
        assert_eq!(outcome(-9999).read(Wanted::Nothing), Err(retry(-9999, "")));
        assert!(matches!(outcome(-7).read(Wanted::Nothing), Err(VppFailure::Rejected(_))));
    }
}
