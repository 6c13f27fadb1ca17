//! `interface`: interfaces, their state, addresses, tables and tags.

use ipnet::IpNet;
use zerocopy::big_endian::{U16, U32};

use crate::head::RequestHead;
use crate::message::{Dump, Payload, Refused, Tailed};
use crate::retval::Retval;
use crate::types::{Bool, FixedString, Mac, Prefix, SwIfIndex, TableId, VarText};

wire_int! {
    /// State of an interface, as a set of bits.
    pub struct IfStatusFlags: u32 {
        /// Switched on.
        ADMIN_UP = 1,
        /// Has a carrier. VPP alone sets this.
        LINK_UP = 2,
    }
    /// Kind of an interface.
    pub struct IfType: u32 {
        /// A device, or a tunnel.
        HARDWARE = 0,
        /// A VLAN of another one.
        SUB = 1,
        /// Point to point.
        P2P = 2,
        /// One end of a pipe.
        PIPE = 3,
    }
    /// Duplex mode.
    pub struct LinkDuplex: u32 {
        /// Not known.
        UNKNOWN = 0,
        /// Half.
        HALF = 1,
        /// Full.
        FULL = 2,
    }
    /// Kind of a VLAN interface, as a set of bits.
    pub struct SubIfFlags: u32 { }
}

impl IfStatusFlags {
    /// Whether it is switched on.
    #[must_use]
    pub const fn is_admin_up(self) -> bool {
        self.value() & Self::ADMIN_UP.value() != 0
    }

    /// Whether it has a carrier.
    #[must_use]
    pub const fn is_link_up(self) -> bool {
        self.value() & Self::LINK_UP.value() != 0
    }
}

include!(concat!(env!("OUT_DIR"), "/interface.rs"));

messages! {
    MESSAGES;
    /// Asks for interfaces.
    dump SwInterfaceDump "sw_interface_dump" 0xaa61_0c27 => SwInterfaceDetails {
        /// One, or [`SwIfIndex::NONE`] for all.
        pub sw_if_index: SwIfIndex,
        /// Whether the filter counts.
        pub name_filter_valid: Bool,
        ..
        /// Part of the names wanted.
        pub name_filter: VarText
    }
    /// One interface.
    details SwInterfaceDetails "sw_interface_details" 0x6c22_1fc7 {
        /// The interface.
        pub sw_if_index: SwIfIndex,
        /// The one it is a VLAN of, or itself.
        pub sup_sw_if_index: SwIfIndex,
        /// Ethernet address.
        pub l2_address: Mac,
        /// State.
        pub flags: IfStatusFlags,
        /// Kind.
        pub r#type: IfType,
        /// Duplex mode.
        pub link_duplex: LinkDuplex,
        /// In kbit/s.
        pub link_speed: U32,
        /// Of the device.
        pub link_mtu: U16,
        /// Bytes, for: all, IPv4, IPv6, MPLS; 0 takes the first.
        pub mtu: [U32; 4],
        /// VLAN interface number.
        pub sub_id: U32,
        /// 0 to 2.
        pub sub_number_of_tags: u8,
        /// Outer VLAN.
        pub sub_outer_vlan_id: U16,
        /// Inner VLAN.
        pub sub_inner_vlan_id: U16,
        /// VLAN kind.
        pub sub_if_flags: SubIfFlags,
        /// Tag rewrite.
        pub vtr_op: U32,
        /// Tag rewrite.
        pub vtr_push_dot1q: U32,
        /// Tag rewrite.
        pub vtr_tag1: U32,
        /// Tag rewrite.
        pub vtr_tag2: U32,
        /// Tag rewrite.
        pub outer_tag: U16,
        /// Provider backbone destination.
        pub b_dmac: Mac,
        /// Provider backbone source.
        pub b_smac: Mac,
        /// Provider backbone VLAN.
        pub b_vlanid: U16,
        /// Provider backbone service.
        pub i_sid: U32,
        /// For example `host-eth0`.
        pub interface_name: FixedString<64>,
        /// For example `ipip`.
        pub interface_dev_type: FixedString<64>,
        /// Text a client has put on it; marks what is ours.
        pub tag: FixedString<64>,
    }
    /// Switches an interface on or off.
    request SwInterfaceSetFlags "sw_interface_set_flags" 0xf5ae_c1b8 => SwInterfaceSetFlagsReply {
        /// The interface.
        pub sw_if_index: SwIfIndex,
        /// Only [`IfStatusFlags::ADMIN_UP`] counts.
        pub flags: IfStatusFlags,
    }
    /// How it went.
    reply SwInterfaceSetFlagsReply "sw_interface_set_flags_reply" 0xe8d4_e804 {
        /// How it went.
        pub retval: Retval,
    }
    /// Adds or removes an address.
    request SwInterfaceAddDelAddress "sw_interface_add_del_address" 0x5463_d73b => SwInterfaceAddDelAddressReply {
        /// The interface.
        pub sw_if_index: SwIfIndex,
        /// Add or remove.
        pub is_add: Bool,
        /// Remove all, whatever the prefix.
        pub del_all: Bool,
        /// The address, and the length of its subnet.
        pub prefix: Prefix,
    }
    /// How it went.
    reply SwInterfaceAddDelAddressReply "sw_interface_add_del_address_reply" 0xe8d4_e804 {
        /// -105 when it, or one of its subnet, is there already; -60 when there is none to remove.
        pub retval: Retval,
    }
    /// Lets an interface borrow the addresses of another.
    request SwInterfaceSetUnnumbered "sw_interface_set_unnumbered" 0x154a_6439 => SwInterfaceSetUnnumberedReply {
        /// The one that lends.
        pub sw_if_index: SwIfIndex,
        /// The one that borrows.
        pub unnumbered_sw_if_index: SwIfIndex,
        /// Add or remove.
        pub is_add: Bool,
    }
    /// How it went.
    reply SwInterfaceSetUnnumberedReply "sw_interface_set_unnumbered_reply" 0xe8d4_e804 {
        /// How it went.
        pub retval: Retval,
    }
    /// Puts an interface into a table. Refused with -114 while it has addresses.
    request SwInterfaceSetTable "sw_interface_set_table" 0xdf42_a577 => SwInterfaceSetTableReply {
        /// The interface.
        pub sw_if_index: SwIfIndex,
        /// The family.
        pub is_ipv6: Bool,
        /// The table.
        pub vrf_id: TableId,
    }
    /// How it went.
    reply SwInterfaceSetTableReply "sw_interface_set_table_reply" 0xe8d4_e804 {
        /// How it went.
        pub retval: Retval,
    }
    /// Asks for the table of an interface.
    request SwInterfaceGetTable "sw_interface_get_table" 0x2d03_3de4 => SwInterfaceGetTableReply {
        /// The interface.
        pub sw_if_index: SwIfIndex,
        /// The family.
        pub is_ipv6: Bool,
    }
    /// The table.
    reply SwInterfaceGetTableReply "sw_interface_get_table_reply" 0xa6eb_0109 {
        /// How it went.
        pub retval: Retval,
        /// The table.
        pub vrf_id: TableId,
    }
    /// Puts a text on an interface, or takes it off.
    request SwInterfaceTagAddDel "sw_interface_tag_add_del" 0x426f_8bc1 => SwInterfaceTagAddDelReply {
        /// Add or remove.
        pub is_add: Bool,
        /// The interface.
        pub sw_if_index: SwIfIndex,
        /// The text.
        pub tag: FixedString<64>,
    }
    /// How it went.
    reply SwInterfaceTagAddDelReply "sw_interface_tag_add_del_reply" 0xe8d4_e804 {
        /// How it went.
        pub retval: Retval,
    }
    /// Subscribes to changes of interfaces. Twice is -31; it ends with the connection.
    request WantInterfaceEvents "want_interface_events" 0x476f_5a08 => WantInterfaceEventsReply {
        /// 1 or 0.
        pub enable_disable: U32,
        /// Comes back in every event.
        pub pid: U32,
    }
    /// How it went.
    reply WantInterfaceEventsReply "want_interface_events_reply" 0xe8d4_e804 {
        /// How it went.
        pub retval: Retval,
    }
    /// An interface has changed.
    notice SwInterfaceEvent "sw_interface_event" 0x2d3d_95a7 {
        /// That of the subscription.
        pub pid: U32,
        /// The interface.
        pub sw_if_index: SwIfIndex,
        /// Its state now.
        pub flags: IfStatusFlags,
        /// Whether it is gone.
        pub deleted: Bool,
    }
    /// Makes a loopback interface.
    request CreateLoopbackInstance "create_loopback_instance" 0xd36a_3ee2 => CreateLoopbackInstanceReply {
        /// Zero lets VPP choose.
        pub mac_address: Mac,
        /// Whether the instance counts.
        pub is_specified: Bool,
        /// The number in the name `loop<n>`.
        pub user_instance: U32,
    }
    /// The interface.
    reply CreateLoopbackInstanceReply "create_loopback_instance_reply" 0x5383_d31f {
        /// How it went.
        pub retval: Retval,
        /// The new interface.
        pub sw_if_index: SwIfIndex,
    }
    /// Removes a loopback interface.
    request DeleteLoopback "delete_loopback" 0xf9e6_675e => DeleteLoopbackReply {
        /// The interface.
        pub sw_if_index: SwIfIndex,
    }
    /// How it went.
    reply DeleteLoopbackReply "delete_loopback_reply" 0xe8d4_e804 {
        /// How it went.
        pub retval: Retval,
    }
}

/// Writes a [`SwInterfaceDump`].
#[derive(Debug, Clone, Copy)]
pub struct SwInterfaces<'a> {
    sw_if_index: SwIfIndex,
    name_filter: &'a str,
}

impl SwInterfaces<'static> {
    /// All interfaces.
    #[must_use]
    pub const fn all() -> Self {
        Self { sw_if_index: SwIfIndex::NONE, name_filter: "" }
    }

    /// One interface; none if it does not exist.
    #[must_use]
    pub const fn one(sw_if_index: SwIfIndex) -> Self {
        Self { sw_if_index, name_filter: "" }
    }
}

impl<'a> SwInterfaces<'a> {
    /// Those whose name has this text in it; all, when it is empty.
    #[must_use]
    pub const fn named(part: &'a str) -> Self {
        Self { sw_if_index: SwIfIndex::NONE, name_filter: part }
    }
}

impl Payload for SwInterfaces<'_> {
    type Message = SwInterfaceDump;

    fn encode(&self, out: &mut Vec<u8>) {
        let dump = SwInterfaceDump::append(out, self.name_filter.len()).expect("no text reaches 4 GiB");
        dump.sw_if_index = self.sw_if_index;
        dump.name_filter_valid = (!self.name_filter.is_empty()).into();
        dump.name_filter.fill(self.name_filter);
    }
}

impl Dump for SwInterfaces<'_> {
    type Details = SwInterfaceDetails;
}

impl SwInterfaceSetFlags {
    /// Switches an interface on or off.
    #[must_use]
    pub const fn new(sw_if_index: SwIfIndex, up: bool) -> Self {
        let flags = if up { IfStatusFlags::ADMIN_UP } else { IfStatusFlags::new(0) };
        Self { head: RequestHead::BLANK, sw_if_index, flags }
    }
}

impl SwInterfaceAddDelAddress {
    /// Adds an address, with the length of its subnet.
    #[must_use]
    pub fn add(sw_if_index: SwIfIndex, address: IpNet) -> Self {
        Self {
            head: RequestHead::BLANK,
            sw_if_index,
            is_add: Bool::TRUE,
            del_all: Bool::FALSE,
            prefix: Prefix::with_host(address),
        }
    }

    /// Removes an address.
    #[must_use]
    pub fn del(sw_if_index: SwIfIndex, address: IpNet) -> Self {
        Self { is_add: Bool::FALSE, ..Self::add(sw_if_index, address) }
    }
}

impl SwInterfaceSetUnnumbered {
    /// `borrower` takes its addresses from `lender`, or no longer does.
    #[must_use]
    pub fn new(lender: SwIfIndex, borrower: SwIfIndex, is_add: bool) -> Self {
        Self {
            head: RequestHead::BLANK,
            sw_if_index: lender,
            unnumbered_sw_if_index: borrower,
            is_add: is_add.into(),
        }
    }
}

impl SwInterfaceSetTable {
    /// Puts an interface into a table of one family.
    #[must_use]
    pub fn new(sw_if_index: SwIfIndex, is_ipv6: bool, table: TableId) -> Self {
        Self { head: RequestHead::BLANK, sw_if_index, is_ipv6: is_ipv6.into(), vrf_id: table }
    }
}

impl SwInterfaceGetTable {
    /// Asks for the table of one family.
    #[must_use]
    pub fn new(sw_if_index: SwIfIndex, is_ipv6: bool) -> Self {
        Self { head: RequestHead::BLANK, sw_if_index, is_ipv6: is_ipv6.into() }
    }
}

impl SwInterfaceTagAddDel {
    /// Puts a tag on an interface.
    ///
    /// # Errors
    /// [`Refused::NoName`] for an empty tag, [`Refused::Text`] for one above 63 bytes.
    pub fn add(sw_if_index: SwIfIndex, tag: &str) -> Result<Self, Refused> {
        if tag.is_empty() {
            return Err(Refused::NoName);
        }
        Ok(Self { head: RequestHead::BLANK, is_add: Bool::TRUE, sw_if_index, tag: FixedString::new(tag)? })
    }

    /// Takes the tag off.
    #[must_use]
    pub const fn del(sw_if_index: SwIfIndex) -> Self {
        Self { head: RequestHead::BLANK, is_add: Bool::FALSE, sw_if_index, tag: FixedString::EMPTY }
    }
}

impl WantInterfaceEvents {
    /// Subscribes, or no longer.
    #[must_use]
    pub fn new(enable: bool, pid: u32) -> Self {
        Self { head: RequestHead::BLANK, enable_disable: U32::new(u32::from(enable)), pid: U32::new(pid) }
    }
}

impl CreateLoopbackInstance {
    /// `loop<instance>`, or the next free one.
    #[must_use]
    pub fn new(instance: Option<u32>) -> Self {
        Self {
            head: RequestHead::BLANK,
            mac_address: Mac([0; 6]),
            is_specified: instance.is_some().into(),
            user_instance: U32::new(instance.unwrap_or_default()),
        }
    }
}

impl DeleteLoopback {
    /// Removes one.
    #[must_use]
    pub const fn new(sw_if_index: SwIfIndex) -> Self {
        Self { head: RequestHead::BLANK, sw_if_index }
    }
}
