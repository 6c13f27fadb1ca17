//! `ipip`: IP-in-IP tunnels.

use std::net::IpAddr;

use zerocopy::big_endian::U32;

use crate::head::RequestHead;
use crate::message::Refused;
use crate::retval::Retval;
use crate::types::{Address, SwIfIndex, TableId};

wire_int! {
    /// What is copied between the inner and the outer header.
    pub struct TunnelEncapDecapFlags: u8 {
        /// Nothing.
        NONE = 0,
        /// Don't-fragment, outwards.
        ENCAP_COPY_DF = 1,
        /// Don't-fragment set.
        ENCAP_SET_DF = 2,
        /// Code point, outwards.
        ENCAP_COPY_DSCP = 4,
        /// Congestion mark, outwards.
        ENCAP_COPY_ECN = 8,
        /// Congestion mark, inwards.
        DECAP_COPY_ECN = 16,
    }
    /// One far end or many.
    pub struct TunnelMode: u8 {
        /// One far end.
        P2P = 0,
        /// Many, told by the neighbour table.
        MP = 1,
    }
    /// Differentiated services code point of the outer header.
    pub struct IpDscp: u8 {
        /// The default.
        CS0 = 0,
    }
}

wire_struct! {
    /// A tunnel.
    pub struct IpipTunnel {
        instance: U32,
        src: Address,
        dst: Address,
        sw_if_index: SwIfIndex,
        table_id: TableId,
        flags: TunnelEncapDecapFlags,
        mode: TunnelMode,
        dscp: IpDscp,
    }
}

impl IpipTunnel {
    /// VPP chooses the instance (the number in the name `ipip<n>`).
    pub const ANY_INSTANCE: u32 = u32::MAX;

    /// For who answers: the tunnel of a dump, or a wish.
    #[must_use]
    pub fn new(instance: u32, src: Address, dst: Address, sw_if_index: SwIfIndex, table_id: TableId) -> Self {
        Self {
            instance: U32::new(instance),
            src,
            dst,
            sw_if_index,
            table_id,
            flags: TunnelEncapDecapFlags::NONE,
            mode: TunnelMode::P2P,
            dscp: IpDscp::CS0,
        }
    }

    /// The number in the interface's name; [`Self::ANY_INSTANCE`] in a wish.
    #[must_use]
    pub const fn instance(&self) -> u32 {
        self.instance.get()
    }

    /// The near end.
    #[must_use]
    pub const fn src(&self) -> &Address {
        &self.src
    }

    /// The far end.
    #[must_use]
    pub const fn dst(&self) -> &Address {
        &self.dst
    }

    /// The tunnel's interface; without meaning in a wish.
    #[must_use]
    pub const fn sw_if_index(&self) -> SwIfIndex {
        self.sw_if_index
    }

    /// The table in which the far end is looked up.
    #[must_use]
    pub const fn table_id(&self) -> TableId {
        self.table_id
    }

    /// One far end or many.
    #[must_use]
    pub const fn mode(&self) -> TunnelMode {
        self.mode
    }
}

include!(concat!(env!("OUT_DIR"), "/ipip.rs"));

messages! {
    MESSAGES;
    /// Makes a tunnel. Of one that exists VPP answers -79, with its interface in the reply.
    request IpipAddTunnel "ipip_add_tunnel" 0x2ac3_99f5 => IpipAddTunnelReply {
        tunnel: IpipTunnel,
    }
    /// The tunnel's interface.
    reply IpipAddTunnelReply "ipip_add_tunnel_reply" 0x5383_d31f {
        /// How it went.
        pub retval: Retval,
        /// The new interface, or with -79 (`IF_ALREADY_EXISTS`) the existing one.
        pub sw_if_index: SwIfIndex,
    }
    /// Removes a tunnel. Its routes must be gone before: what still uses it becomes a drop, for good.
    request IpipDelTunnel "ipip_del_tunnel" 0xf9e6_675e => IpipDelTunnelReply {
        /// The tunnel's interface.
        pub sw_if_index: SwIfIndex,
    }
    /// How it went.
    reply IpipDelTunnelReply "ipip_del_tunnel_reply" 0xe8d4_e804 {
        /// How it went.
        pub retval: Retval,
    }
    /// Asks for tunnels.
    dump IpipTunnelDump "ipip_tunnel_dump" 0xf9e6_675e => IpipTunnelDetails {
        /// One, or [`SwIfIndex::NONE`] for all.
        pub sw_if_index: SwIfIndex,
    }
    /// One tunnel.
    details IpipTunnelDetails "ipip_tunnel_details" 0xd31c_b34e {
        /// The tunnel.
        pub tunnel: IpipTunnel,
    }
}

impl IpipAddTunnel {
    /// A tunnel with one far end, which is looked up in `table_id`.
    ///
    /// # Errors
    /// [`Refused::MixedFamilies`], [`Refused::SameEnds`].
    pub fn new(src: IpAddr, dst: IpAddr, table_id: TableId) -> Result<Self, Refused> {
        if src.is_ipv4() != dst.is_ipv4() {
            return Err(Refused::MixedFamilies(src, dst));
        }
        if src == dst {
            return Err(Refused::SameEnds(src));
        }
        let tunnel =
            IpipTunnel::new(IpipTunnel::ANY_INSTANCE, src.into(), dst.into(), SwIfIndex::NONE, table_id);
        Ok(Self { head: RequestHead::BLANK, tunnel })
    }

    /// What is asked for.
    #[must_use]
    pub const fn tunnel(&self) -> &IpipTunnel {
        &self.tunnel
    }
}

impl IpipDelTunnel {
    /// Removes the tunnel of that interface.
    #[must_use]
    pub const fn new(sw_if_index: SwIfIndex) -> Self {
        Self { head: RequestHead::BLANK, sw_if_index }
    }
}

impl IpipTunnelDump {
    /// One tunnel; none if it does not exist.
    #[must_use]
    pub const fn one(sw_if_index: SwIfIndex) -> Self {
        Self { head: RequestHead::BLANK, sw_if_index }
    }

    /// All tunnels.
    #[must_use]
    pub const fn all() -> Self {
        Self::one(SwIfIndex::NONE)
    }
}
