//! `ip`: tables, routes and interface addresses.

use ipnet::IpNet;
use zerocopy::big_endian::U32;

use crate::head::RequestHead;
use crate::message::{Payload, Refused, Request, Tailed};
use crate::retval::Retval;
use crate::types::{Bool, FibPath, FibSourceId, FixedString, IpTable, MAX_PATHS, Prefix, SwIfIndex, TableId};

wire_struct! {
    /// A route.
    pub struct IpRouteV2 {
        /// The table it stands in.
        pub table_id: TableId,
        /// Where its counters are; ignored in requests.
        pub stats_index: U32,
        /// The destination.
        pub prefix: Prefix,
        /// How many paths follow.
        pub n_paths: u8,
        /// Whose route it is; 0 in a request means VPP's API source, which is number 8 in a dump.
        pub src: FibSourceId,
        ..
        /// Where it leads.
        pub paths: [FibPath] by n_paths
    }
}

include!(concat!(env!("OUT_DIR"), "/ip.rs"));

messages! {
    MESSAGES;
    /// Asks for the addresses of an interface.
    dump IpAddressDump "ip_address_dump" 0x2d03_3de4 => IpAddressDetails {
        /// The interface.
        pub sw_if_index: SwIfIndex,
        /// The family.
        pub is_ipv6: Bool,
    }
    /// One address.
    details IpAddressDetails "ip_address_details" 0xee29_b797 {
        /// The interface.
        pub sw_if_index: SwIfIndex,
        /// The address, and the length of its subnet.
        pub prefix: Prefix,
    }
    /// Asks who borrows addresses.
    dump IpUnnumberedDump "ip_unnumbered_dump" 0xf9e6_675e => IpUnnumberedDetails {
        /// One borrower, or [`SwIfIndex::NONE`] for all.
        pub sw_if_index: SwIfIndex,
    }
    /// One borrower.
    details IpUnnumberedDetails "ip_unnumbered_details" 0xcc59_bd42 {
        /// The one that borrows.
        pub sw_if_index: SwIfIndex,
        /// The one that lends.
        pub ip_sw_if_index: SwIfIndex,
    }
    /// Creates or deletes a table. Repeating either is harmless; a table in use stays until its last user goes.
    request IpTableAddDel "ip_table_add_del" 0x0ffd_aec0 => IpTableAddDelReply {
        is_add: Bool,
        table: IpTable,
    }
    /// How it went.
    reply IpTableAddDelReply "ip_table_add_del_reply" 0xe8d4_e804 {
        /// How it went.
        pub retval: Retval,
    }
    /// Asks for all tables of both families.
    dump IpTableDump "ip_table_dump" 0x5107_7d14 => IpTableDetails { }
    /// One table.
    details IpTableDetails "ip_table_details" 0xc79f_ca0f {
        /// The table.
        pub table: IpTable,
    }
    /// Adds, replaces or deletes a route; written by [`RouteReplace`] and [`RouteDelete`].
    request IpRouteAddDelV2 "ip_route_add_del_v2" 0x521e_f330 => IpRouteAddDelV2Reply {
        is_add: Bool,
        is_multipath: Bool,
        ..
        route: IpRouteV2
    }
    /// How it went.
    reply IpRouteAddDelV2Reply "ip_route_add_del_v2_reply" 0x1992_deab {
        /// How it went.
        pub retval: Retval,
        /// Where the route's counters are.
        pub stats_index: U32,
    }
    /// Asks for the routes of a table. VPP serves nobody else until all answers are written: use it rarely.
    dump IpRouteV2Dump "ip_route_v2_dump" 0xd16f_72e6 => IpRouteV2Details {
        /// Only this source's routes; 0 for those of every source.
        pub src: FibSourceId,
        /// The table; one that does not exist has no routes.
        pub table: IpTable,
    }
    /// One route.
    details IpRouteV2Details "ip_route_v2_details" 0xb09a_a6c0 {
        ..
        /// The route.
        pub route: IpRouteV2
    }
}

impl IpAddressDump {
    /// The addresses of one family.
    #[must_use]
    pub fn new(sw_if_index: SwIfIndex, is_ipv6: bool) -> Self {
        Self { head: RequestHead::BLANK, sw_if_index, is_ipv6: is_ipv6.into() }
    }
}

impl IpUnnumberedDump {
    /// One borrower, if it is one.
    #[must_use]
    pub const fn one(sw_if_index: SwIfIndex) -> Self {
        Self { head: RequestHead::BLANK, sw_if_index }
    }

    /// All borrowers.
    #[must_use]
    pub const fn all() -> Self {
        Self::one(SwIfIndex::NONE)
    }
}

impl IpTableAddDel {
    /// Creates a table of one family; VPP makes up a name when this one is empty.
    ///
    /// # Errors
    /// [`Refused::DefaultTable`] for table 0, [`Refused::Text`] for a name above 63 bytes.
    pub fn add(table_id: TableId, is_ip6: bool, name: &str) -> Result<Self, Refused> {
        Self::new(true, IpTable { table_id, is_ip6: is_ip6.into(), name: FixedString::new(name)? })
    }

    /// Deletes a table of one family.
    ///
    /// # Errors
    /// [`Refused::DefaultTable`] for table 0.
    pub fn del(table_id: TableId, is_ip6: bool) -> Result<Self, Refused> {
        Self::new(false, IpTable::of(table_id, is_ip6))
    }

    fn new(is_add: bool, table: IpTable) -> Result<Self, Refused> {
        if table.table_id == TableId::DEFAULT {
            return Err(Refused::DefaultTable);
        }
        Ok(Self { head: RequestHead::BLANK, is_add: is_add.into(), table })
    }

    /// Create or delete.
    #[must_use]
    pub const fn is_add(&self) -> bool {
        self.is_add.is_true()
    }

    /// Which.
    #[must_use]
    pub const fn table(&self) -> &IpTable {
        &self.table
    }
}

impl Default for IpTableDump {
    fn default() -> Self {
        Self { head: RequestHead::BLANK }
    }
}

impl IpRouteAddDelV2 {
    /// Add or delete.
    #[must_use]
    pub const fn is_add(&self) -> bool {
        self.is_add.is_true()
    }

    /// Whether single paths are added or removed, instead of the whole route replaced or deleted.
    #[must_use]
    pub const fn is_multipath(&self) -> bool {
        self.is_multipath.is_true()
    }

    /// The route.
    #[must_use]
    pub const fn route(&self) -> &IpRouteV2 {
        &self.route
    }
}

/// Adds a route, or replaces all paths of the one there: one message, no gap. Writes an [`IpRouteAddDelV2`].
#[derive(Debug, Clone, Copy)]
pub struct RouteReplace<'a> {
    table_id: TableId,
    prefix: Prefix,
    source: FibSourceId,
    paths: &'a [FibPath],
}

impl<'a> RouteReplace<'a> {
    /// # Errors
    /// [`Refused::HostBits`], [`Refused::Paths`] for none or more than 228, [`Refused::Source`] for VPP's API source.
    pub fn new(
        table_id: TableId,
        prefix: IpNet,
        source: FibSourceId,
        paths: &'a [FibPath],
    ) -> Result<Self, Refused> {
        if paths.is_empty() || paths.len() > MAX_PATHS {
            return Err(Refused::Paths(paths.len()));
        }
        Ok(Self { table_id, prefix: Prefix::network(prefix)?, source: own(source)?, paths })
    }

    /// The same route under VPP's API source, where every other client's stand: for giving routes back to one.
    #[must_use]
    pub const fn given_back(self) -> Self {
        Self { source: FibSourceId::API, ..self }
    }
}

impl Payload for RouteReplace<'_> {
    type Message = IpRouteAddDelV2;

    fn encode(&self, out: &mut Vec<u8>) {
        let message =
            IpRouteAddDelV2::append(out, self.paths.len()).expect("228 paths are counted in 8 bits");
        message.is_add = Bool::TRUE;
        message.route.table_id = self.table_id;
        message.route.prefix = self.prefix;
        message.route.src = self.source;
        message.route.paths.copy_from_slice(self.paths);
    }
}

impl Request for RouteReplace<'_> {
    type Reply = IpRouteAddDelV2Reply;
}

/// Deletes this source's route, with all its paths. Writes an [`IpRouteAddDelV2`].
#[derive(Debug, Clone, Copy)]
pub struct RouteDelete {
    table_id: TableId,
    prefix: Prefix,
    source: FibSourceId,
}

impl RouteDelete {
    /// # Errors
    /// [`Refused::HostBits`], [`Refused::Source`] for VPP's API source.
    pub fn new(table_id: TableId, prefix: IpNet, source: FibSourceId) -> Result<Self, Refused> {
        Ok(Self { table_id, prefix: Prefix::network(prefix)?, source: own(source)? })
    }

    /// A route under VPP's API source, which any client's may be: the caller knows that it is to go.
    ///
    /// # Errors
    /// [`Refused::HostBits`].
    pub fn of_another(table_id: TableId, prefix: IpNet) -> Result<Self, Refused> {
        Ok(Self { table_id, prefix: Prefix::network(prefix)?, source: FibSourceId::API })
    }
}

impl Payload for RouteDelete {
    type Message = IpRouteAddDelV2;

    fn encode(&self, out: &mut Vec<u8>) {
        let message = IpRouteAddDelV2::append(out, 0).expect("0 can be counted");
        message.route.table_id = self.table_id;
        message.route.prefix = self.prefix;
        message.route.src = self.source;
    }
}

impl Request for RouteDelete {
    type Reply = IpRouteAddDelV2Reply;
}

fn own(source: FibSourceId) -> Result<FibSourceId, Refused> {
    match source {
        FibSourceId::API => Err(Refused::Source(source.value())),
        own => Ok(own),
    }
}

impl IpRouteV2Dump {
    /// The routes of one table of one family: of one source, or of all.
    #[must_use]
    pub fn new(table_id: TableId, is_ip6: bool, source: Option<FibSourceId>) -> Self {
        Self {
            head: RequestHead::BLANK,
            src: source.unwrap_or(FibSourceId::API),
            table: IpTable::of(table_id, is_ip6),
        }
    }
}

impl IpTableFlush {
    /// Removes the API source's routes of a table, and **switches off every interface of it**.
    ///
    /// # Errors
    /// [`Refused::DefaultTable`] for table 0, in which the uplink is.
    pub fn new(table_id: TableId, is_ip6: bool) -> Result<Self, Refused> {
        if table_id == TableId::DEFAULT {
            return Err(Refused::DefaultTable);
        }
        Ok(Self { head: RequestHead::BLANK, table: IpTable::of(table_id, is_ip6) })
    }
}
