//! `interface`: state, addresses, tables, tags and names of interfaces; loopbacks; events.

use vpp_wire::Message;
use vpp_wire::api::interface::{
    CreateLoopbackInstance, CreateLoopbackInstanceReply, DeleteLoopback, DeleteLoopbackReply,
    SwInterfaceAddDelAddress, SwInterfaceAddDelAddressReply, SwInterfaceDetails, SwInterfaceDump,
    SwInterfaceEvent, SwInterfaceGetTable, SwInterfaceGetTableReply, SwInterfaceSetFlags,
    SwInterfaceSetFlagsReply, SwInterfaceSetTable, SwInterfaceSetTableReply, SwInterfaceSetUnnumbered,
    SwInterfaceSetUnnumberedReply, SwInterfaceTagAddDel, SwInterfaceTagAddDelReply, WantInterfaceEvents,
    WantInterfaceEventsReply,
};
use vpp_wire::name::MsgName;
use vpp_wire::types::Mac;
use zerocopy::FromZeros;

use super::field::{NONE, bytes_at, fixed, prefix_at, text, u32_at};
use super::retval::{
    ADDRESS_FOUND_FOR_INTERFACE, ADDRESS_IN_USE, ADDRESS_LENGTH_MISMATCH, ADDRESS_NOT_FOUND_FOR_INTERFACE,
    INVALID_REGISTRATION, INVALID_SW_IF_INDEX, INVALID_SW_IF_INDEX_2, INVALID_VALUE, NO_SUCH_FIB, OK,
    UNEXPECTED_INTF_STATE,
};
use super::row::{Row, foreign, row};
use crate::context::Cx;
use crate::state::interface::{Interface, Kind};
use crate::state::key::Af;
use crate::state::{AddressError, State};

/// The event that is sent to who asked for it.
pub(crate) const EVENT: &str = SwInterfaceEvent::DESCRIPTOR.name.name();

pub(super) fn rows() -> Vec<Row> {
    let plain = |name, crc, answer, serve| {
        foreign(MsgName::new(name, crc), MsgName::new(answer, 0xe8d4_e804), 10, serve)
    };
    vec![
        row::<SwInterfaceDump, SwInterfaceDetails>(sw_interface_dump),
        row::<SwInterfaceSetFlags, SwInterfaceSetFlagsReply>(set_flags),
        row::<SwInterfaceAddDelAddress, SwInterfaceAddDelAddressReply>(add_del_address),
        row::<SwInterfaceSetUnnumbered, SwInterfaceSetUnnumberedReply>(set_unnumbered),
        row::<SwInterfaceSetTable, SwInterfaceSetTableReply>(set_table),
        row::<SwInterfaceGetTable, SwInterfaceGetTableReply>(get_table),
        row::<SwInterfaceTagAddDel, SwInterfaceTagAddDelReply>(tag_add_del),
        row::<WantInterfaceEvents, WantInterfaceEventsReply>(want_interface_events),
        row::<CreateLoopbackInstance, CreateLoopbackInstanceReply>(create_loopback_instance),
        row::<DeleteLoopback, DeleteLoopbackReply>(delete_loopback),
        foreign(
            MsgName::new("create_loopback", 0x42bb_5d22),
            MsgName::new("create_loopback_reply", 0x5383_d31f),
            14,
            create_loopback,
        ),
        plain("sw_interface_set_mtu", 0x5cbe_85e5, "sw_interface_set_mtu_reply", set_mtu),
        plain(
            "sw_interface_set_interface_name",
            0x45a1_d548,
            "sw_interface_set_interface_name_reply",
            set_interface_name,
        ),
        plain("sw_interface_set_rx_mode", 0xb04d_1cfe, "sw_interface_set_rx_mode_reply", set_rx_mode),
        foreign(
            MsgName::new("sw_interface_get_mac_address", 0xf9e6_675e),
            MsgName::new("sw_interface_get_mac_address_reply", 0x40ef_2c08),
            16,
            get_mac_address,
        ),
    ]
}

/// Runs `change` on an interface; what it answers, or -2 without that interface.
fn on_interface(state: &mut State, sw_if_index: u32, change: impl FnOnce(&mut Interface) -> i32) -> i32 {
    state.interfaces.get_mut(sw_if_index).map_or(INVALID_SW_IF_INDEX, change)
}

fn sw_interface_dump(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = SwInterfaceDump::parse(payload).ok()?;
    let (wanted, filter) = (request.sw_if_index.value(), request.name_filter.to_str());
    let filter = request.name_filter_valid.is_true().then_some(filter.as_bytes());
    let wanted = |at: u32, interface: &Interface| match filter {
        Some(part) => part.is_empty() || interface.name.windows(part.len()).any(|window| window == part),
        None => wanted == NONE || wanted == at,
    };
    let found: Vec<SwInterfaceDetails> = cx
        .state
        .interfaces
        .iter()
        .filter(|(at, interface)| wanted(*at, interface))
        .map(|(at, interface)| details(at, interface))
        .collect();
    for details in found {
        cx.answer::<SwInterfaceDetails>(|answer| *answer = details);
    }
    Some(())
}

fn details(at: u32, interface: &Interface) -> SwInterfaceDetails {
    let mut details = SwInterfaceDetails::new_zeroed();
    details.sw_if_index = at.into();
    details.sup_sw_if_index = at.into();
    details.l2_address = Mac(interface.mac);
    details.flags = interface.flags().into();
    details.link_mtu = interface.link_mtu.into();
    details.mtu = interface.mtu.map(Into::into);
    details.interface_name = fixed(&interface.name);
    details.interface_dev_type = fixed(interface.device.as_bytes());
    details.tag = fixed(&interface.tag);
    details
}

fn set_flags(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = SwInterfaceSetFlags::parse(payload).ok()?;
    let at = request.sw_if_index.value();
    let known = cx.state.interfaces.get(at).is_some();
    if known {
        cx.state.set_up(at, request.flags.is_admin_up());
    }
    cx.retval(if known { OK } else { INVALID_SW_IF_INDEX });
    Some(())
}

fn add_del_address(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = SwInterfaceAddDelAddress::parse(payload).ok()?;
    let (af, addr, len) = prefix_at(payload, 16)?;
    let at = request.sw_if_index.value();
    let done = if cx.state.interfaces.get(at).is_none() {
        None
    } else if request.del_all.is_true() {
        for af in [Af::Ip4, Af::Ip6] {
            for address in cx.state.addresses(at, af) {
                // they were listed just now
                let _removed = cx.state.remove_address(at, af, address);
            }
        }
        Some(Ok(()))
    } else if request.is_add.is_true() {
        Some(cx.state.add_address(at, af, (addr, len)))
    } else {
        Some(cx.state.remove_address(at, af, (addr, len)))
    };
    cx.retval(match done {
        None => INVALID_SW_IF_INDEX,
        Some(Ok(())) => OK,
        Some(Err(AddressError::Length)) => ADDRESS_LENGTH_MISMATCH,
        Some(Err(AddressError::InUse)) => ADDRESS_IN_USE,
        Some(Err(AddressError::NotFound)) => ADDRESS_NOT_FOUND_FOR_INTERFACE,
    });
    Some(())
}

/// `sw_if_index` lends, `unnumbered_sw_if_index` borrows.
fn set_unnumbered(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = SwInterfaceSetUnnumbered::parse(payload).ok()?;
    let (lender, is_add) = (request.sw_if_index.value(), request.is_add.is_true());
    let lends = cx.state.interfaces.get(lender).map(|lender| lender.tables);
    let retval = on_interface(cx.state, request.unnumbered_sw_if_index.value(), |borrower| {
        if is_add && lends.is_none() {
            return INVALID_SW_IF_INDEX_2;
        }
        // Addresses are lent within a table only.
        if is_add && lends != Some(borrower.tables) {
            return UNEXPECTED_INTF_STATE;
        }
        borrower.lender = is_add.then_some(lender);
        OK
    });
    cx.retval(retval);
    Some(())
}

fn set_table(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = SwInterfaceSetTable::parse(payload).ok()?;
    let (at, af, table) =
        (request.sw_if_index.value(), Af::of_flag(request.is_ipv6.is_true()), request.vrf_id.value());
    let retval = match cx.state.interfaces.get(at) {
        None => INVALID_SW_IF_INDEX,
        Some(_) if cx.state.fib.table(af, table).is_none() => NO_SUCH_FIB,
        Some(interface) => {
            let own = !interface.addresses[af.index()].is_empty();
            let borrowed = interface.lender.is_some_and(|lender| !cx.state.addresses(lender, af).is_empty());
            if own || borrowed { ADDRESS_FOUND_FOR_INTERFACE } else { OK }
        }
    };
    if retval == OK {
        cx.state.bind(at, af, table);
    }
    cx.retval(retval);
    Some(())
}

fn get_table(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = SwInterfaceGetTable::parse(payload).ok()?;
    let af = Af::of_flag(request.is_ipv6.is_true());
    match cx.state.interfaces.get(request.sw_if_index.value()).map(|interface| interface.tables[af.index()]) {
        Some(table) => cx.retval_and(OK, table),
        None => cx.retval_and(INVALID_SW_IF_INDEX, NONE),
    }
    Some(())
}

fn tag_add_del(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = SwInterfaceTagAddDel::parse(payload).ok()?;
    let (is_add, tag) = (request.is_add.is_true(), text(bytes_at::<64>(payload, 15)?));
    let retval = on_interface(cx.state, request.sw_if_index.value(), |interface| match (is_add, tag) {
        (true, []) => INVALID_VALUE,
        (true, tag) => {
            interface.tag = tag.to_vec();
            OK
        }
        (false, _) => {
            interface.tag.clear();
            OK
        }
    });
    cx.retval(retval);
    Some(())
}

fn want_interface_events(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = WantInterfaceEvents::parse(payload).ok()?;
    let pid = request.pid.get().to_be_bytes();
    let enable = request.enable_disable.get() != 0;
    let client = cx.clients.get_mut(cx.client)?;
    let retval = if client.wants_events.is_some() == enable {
        INVALID_REGISTRATION
    } else {
        client.wants_events = enable.then_some(pid);
        OK
    };
    cx.retval(retval);
    Some(())
}

fn create_loopback_instance(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = CreateLoopbackInstance::parse(payload).ok()?;
    let instance = request.is_specified.is_true().then(|| request.user_instance.get());
    add_loopback(cx, request.mac_address.0, instance);
    Some(())
}

fn create_loopback(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    add_loopback(cx, *bytes_at::<6>(payload, 10)?, None);
    Some(())
}

fn add_loopback(cx: &mut Cx<'_>, mac: [u8; 6], instance: Option<u32>) {
    let instance = instance.unwrap_or_else(|| cx.state.interfaces.free_loopback());
    if cx.state.interfaces.iter().any(|(_, other)| other.kind == Kind::Loopback(instance)) {
        return cx.retval_and(INVALID_REGISTRATION, NONE);
    }
    let mut interface =
        Interface::new(Kind::Loopback(instance), format!("loop{instance}").into_bytes(), "Loopback");
    let [.., low] = instance.to_be_bytes();
    interface.mac = if mac == [0; 6] { [0xde, 0xad, 0, 0, 0, low] } else { mac };
    let at = cx.state.interfaces.add(interface);
    cx.retval_and(OK, at);
}

fn delete_loopback(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let at = DeleteLoopback::parse(payload).ok()?.sw_if_index.value();
    let is_loopback =
        cx.state.interfaces.get(at).is_some_and(|interface| matches!(interface.kind, Kind::Loopback(_)));
    if is_loopback {
        cx.state.delete_interface(at);
    }
    cx.retval(if is_loopback { OK } else { INVALID_SW_IF_INDEX });
    Some(())
}

fn set_mtu(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let mtu = [u32_at(payload, 14)?, u32_at(payload, 18)?, u32_at(payload, 22)?, u32_at(payload, 26)?];
    let retval = on_interface(cx.state, u32_at(payload, 10)?, |interface| {
        interface.mtu = mtu;
        OK
    });
    cx.retval(retval);
    Some(())
}

fn set_interface_name(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let name = text(bytes_at::<64>(payload, 14)?);
    let retval = on_interface(cx.state, u32_at(payload, 10)?, |interface| {
        interface.name = name.to_vec();
        OK
    });
    cx.retval(retval);
    Some(())
}

fn set_rx_mode(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let mode = u32_at(payload, 19)?;
    let retval = on_interface(cx.state, u32_at(payload, 10)?, |interface| {
        interface.rx_mode = mode;
        OK
    });
    cx.retval(retval);
    Some(())
}

fn get_mac_address(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let mac = cx.state.interfaces.get(u32_at(payload, 10)?).map(|interface| interface.mac);
    let retval = if mac.is_some() { OK } else { INVALID_SW_IF_INDEX };
    cx.answer_with(|out, _| {
        out.extend_from_slice(&retval.to_be_bytes());
        out.extend_from_slice(&mac.unwrap_or_default());
    });
    Some(())
}
