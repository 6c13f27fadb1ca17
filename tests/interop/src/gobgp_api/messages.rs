//! Messages of the API, with the numbers of their fields.

use prost::{Message, Name};

/// No fields.
#[derive(Clone, PartialEq, Message)]
pub struct Empty {}

/// A message of any type, with its name.
#[derive(Clone, PartialEq, Message)]
pub struct Any {
    /// `type.googleapis.com/apipb.` and the name.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// Its octets.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

impl Any {
    /// Packs a message.
    #[must_use]
    pub fn new<M: Message + Name>(message: &M) -> Self {
        Self { type_url: Self::url::<M>(), value: message.encode_to_vec() }
    }

    /// The message, if it is of this type.
    #[must_use]
    pub fn get<M: Message + Name + Default>(&self) -> Option<M> {
        if self.type_url == Self::url::<M>() { M::decode(&*self.value).ok() } else { None }
    }

    fn url<M: Name>() -> String {
        format!("type.googleapis.com/{}.{}", M::PACKAGE, M::NAME)
    }
}

/// Gives messages that go into an [`Any`] their names.
macro_rules! named {
    ($($message:ident),* $(,)?) => {$(
        impl Name for $message {
            const PACKAGE: &'static str = "apipb";
            const NAME: &'static str = stringify!($message);
        }
    )*};
}

named!(
    OriginAttribute,
    NextHopAttribute,
    CommunitiesAttribute,
    ExtendedCommunitiesAttribute,
    IPv4AddressSpecificExtended,
    SRPolicyNLRI,
    TunnelEncapAttribute,
    TunnelEncapSubTLVSRPreference,
    TunnelEncapSubTLVSRBindingSID,
    SRBindingSID,
    SRv6BindingSID,
    TunnelEncapSubTLVSRENLP,
    TunnelEncapSubTLVSRPriority,
    TunnelEncapSubTLVSRCandidatePathName,
    TunnelEncapSubTLVSRSegmentList,
    TunnelEncapSubTLVUnknown,
    SegmentTypeA,
    SegmentTypeB,
);

/// A family.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Message)]
pub struct Family {
    /// AFI.
    #[prost(int32, tag = "1")]
    pub afi: i32,
    /// SAFI.
    #[prost(int32, tag = "2")]
    pub safi: i32,
}

/// Adds a path.
#[derive(Clone, PartialEq, Message)]
pub struct AddPathRequest {
    /// 0 is the global table.
    #[prost(int32, tag = "1")]
    pub table_type: i32,
    /// None.
    #[prost(string, tag = "2")]
    pub vrf_id: String,
    /// The path.
    #[prost(message, optional, tag = "3")]
    pub path: Option<Path>,
}

/// What GoBGP calls the path.
#[derive(Clone, PartialEq, Message)]
pub struct AddPathResponse {
    /// Its name.
    #[prost(bytes = "vec", tag = "1")]
    pub uuid: Vec<u8>,
}

/// Takes a path back.
#[derive(Clone, PartialEq, Message)]
pub struct DeletePathRequest {
    /// 0 is the global table.
    #[prost(int32, tag = "1")]
    pub table_type: i32,
    /// None.
    #[prost(string, tag = "2")]
    pub vrf_id: String,
    /// Its family.
    #[prost(message, optional, tag = "3")]
    pub family: Option<Family>,
    /// The path.
    #[prost(message, optional, tag = "4")]
    pub path: Option<Path>,
    /// None.
    #[prost(bytes = "vec", tag = "5")]
    pub uuid: Vec<u8>,
}

/// Asks for a table.
#[derive(Clone, PartialEq, Message)]
pub struct ListPathRequest {
    /// 0 is the global table.
    #[prost(int32, tag = "1")]
    pub table_type: i32,
    /// None.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The family.
    #[prost(message, optional, tag = "3")]
    pub family: Option<Family>,
    /// With the NLRI's octets.
    #[prost(bool, tag = "7")]
    pub enable_nlri_binary: bool,
    /// With the attributes' octets.
    #[prost(bool, tag = "8")]
    pub enable_attribute_binary: bool,
}

/// One destination of a table.
#[derive(Clone, PartialEq, Message)]
pub struct ListPathResponse {
    /// The destination.
    #[prost(message, optional, tag = "1")]
    pub destination: Option<Destination>,
}

/// A destination and its paths.
#[derive(Clone, PartialEq, Message)]
pub struct Destination {
    /// Its text.
    #[prost(string, tag = "1")]
    pub prefix: String,
    /// Its paths.
    #[prost(message, repeated, tag = "2")]
    pub paths: Vec<Path>,
}

/// A path.
#[derive(Clone, PartialEq, Message)]
pub struct Path {
    /// The NLRI.
    #[prost(message, optional, tag = "1")]
    pub nlri: Option<Any>,
    /// The attributes.
    #[prost(message, repeated, tag = "2")]
    pub pattrs: Vec<Any>,
    /// Whether it is the best.
    #[prost(bool, tag = "4")]
    pub best: bool,
    /// Its family.
    #[prost(message, optional, tag = "9")]
    pub family: Option<Family>,
    /// From whom it is.
    #[prost(string, tag = "15")]
    pub neighbor_ip: String,
    /// The NLRI's octets.
    #[prost(bytes = "vec", tag = "20")]
    pub nlri_binary: Vec<u8>,
    /// The attributes' octets, each with its header.
    #[prost(bytes = "vec", repeated, tag = "21")]
    pub pattrs_binary: Vec<Vec<u8>>,
}

/// ORIGIN.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Message)]
pub struct OriginAttribute {
    /// 0 is IGP.
    #[prost(uint32, tag = "1")]
    pub origin: u32,
}

/// The next hop, whatever its family.
#[derive(Clone, PartialEq, Message)]
pub struct NextHopAttribute {
    /// The address.
    #[prost(string, tag = "1")]
    pub next_hop: String,
}

/// COMMUNITIES.
#[derive(Clone, PartialEq, Message)]
pub struct CommunitiesAttribute {
    /// The communities.
    #[prost(uint32, repeated, tag = "1")]
    pub communities: Vec<u32>,
}

/// EXTENDED COMMUNITIES.
#[derive(Clone, PartialEq, Message)]
pub struct ExtendedCommunitiesAttribute {
    /// The communities.
    #[prost(message, repeated, tag = "1")]
    pub communities: Vec<Any>,
}

/// An extended community that begins with an address.
#[derive(Clone, PartialEq, Message)]
pub struct IPv4AddressSpecificExtended {
    /// Whether it may leave the AS.
    #[prost(bool, tag = "1")]
    pub is_transitive: bool,
    /// 2 is a route target.
    #[prost(uint32, tag = "2")]
    pub sub_type: u32,
    /// The address.
    #[prost(string, tag = "3")]
    pub address: String,
    /// The number.
    #[prost(uint32, tag = "4")]
    pub local_admin: u32,
}

/// The NLRI of an SR policy.
#[derive(Clone, PartialEq, Message)]
pub struct SRPolicyNLRI {
    /// In bits.
    #[prost(uint32, tag = "1")]
    pub length: u32,
    /// The distinguisher.
    #[prost(uint32, tag = "2")]
    pub distinguisher: u32,
    /// The color.
    #[prost(uint32, tag = "3")]
    pub color: u32,
    /// The address's octets.
    #[prost(bytes = "vec", tag = "4")]
    pub endpoint: Vec<u8>,
}

/// TUNNEL_ENCAPSULATION.
#[derive(Clone, PartialEq, Message)]
pub struct TunnelEncapAttribute {
    /// Its tunnels.
    #[prost(message, repeated, tag = "1")]
    pub tlvs: Vec<TunnelEncapTLV>,
}

/// A tunnel.
#[derive(Clone, PartialEq, Message)]
pub struct TunnelEncapTLV {
    /// 15 for SR policies.
    #[prost(uint32, tag = "1")]
    pub r#type: u32,
    /// Its sub-TLVs.
    #[prost(message, repeated, tag = "2")]
    pub tlvs: Vec<Any>,
}

/// Sub-TLV 12.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Message)]
pub struct TunnelEncapSubTLVSRPreference {
    /// Its flags.
    #[prost(uint32, tag = "1")]
    pub flags: u32,
    /// The preference.
    #[prost(uint32, tag = "2")]
    pub preference: u32,
}

/// Sub-TLV 13.
#[derive(Clone, PartialEq, Message)]
pub struct TunnelEncapSubTLVSRBindingSID {
    /// An `SRBindingSID` or `SRv6BindingSID`.
    #[prost(message, optional, tag = "1")]
    pub bsid: Option<Any>,
}

/// A binding SID.
#[derive(Clone, PartialEq, Message)]
pub struct SRBindingSID {
    /// S-Flag.
    #[prost(bool, tag = "1")]
    pub s_flag: bool,
    /// I-Flag.
    #[prost(bool, tag = "2")]
    pub i_flag: bool,
    /// A label in four octets, or an SRv6 SID.
    #[prost(bytes = "vec", tag = "3")]
    pub sid: Vec<u8>,
}

/// An SRv6 binding SID, as GoBGP means it.
#[derive(Clone, PartialEq, Message)]
pub struct SRv6BindingSID {
    /// S-Flag.
    #[prost(bool, tag = "1")]
    pub s_flag: bool,
    /// I-Flag.
    #[prost(bool, tag = "2")]
    pub i_flag: bool,
    /// B-Flag.
    #[prost(bool, tag = "3")]
    pub b_flag: bool,
    /// The SID.
    #[prost(bytes = "vec", tag = "4")]
    pub sid: Vec<u8>,
    /// What it does.
    #[prost(message, optional, tag = "5")]
    pub endpoint_behavior_structure: Option<SRv6EndPointBehavior>,
}

/// Sub-TLV 14.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Message)]
pub struct TunnelEncapSubTLVSRENLP {
    /// Its flags.
    #[prost(uint32, tag = "1")]
    pub flags: u32,
    /// 1 to 4.
    #[prost(int32, tag = "2")]
    pub enlp: i32,
}

/// Sub-TLV 15.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Message)]
pub struct TunnelEncapSubTLVSRPriority {
    /// The priority.
    #[prost(uint32, tag = "1")]
    pub priority: u32,
}

/// Sub-TLV 129.
#[derive(Clone, PartialEq, Message)]
pub struct TunnelEncapSubTLVSRCandidatePathName {
    /// The name.
    #[prost(string, tag = "1")]
    pub candidate_path_name: String,
}

/// Sub-TLV 128.
#[derive(Clone, PartialEq, Message)]
pub struct TunnelEncapSubTLVSRSegmentList {
    /// The weight.
    #[prost(message, optional, tag = "1")]
    pub weight: Option<SRWeight>,
    /// `SegmentTypeA` and `SegmentTypeB`.
    #[prost(message, repeated, tag = "2")]
    pub segments: Vec<Any>,
}

/// Another sub-TLV.
#[derive(Clone, PartialEq, Message)]
pub struct TunnelEncapSubTLVUnknown {
    /// Its type.
    #[prost(uint32, tag = "1")]
    pub r#type: u32,
    /// Its octets.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// A segment list's weight.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Message)]
pub struct SRWeight {
    /// Its flags.
    #[prost(uint32, tag = "1")]
    pub flags: u32,
    /// The weight.
    #[prost(uint32, tag = "2")]
    pub weight: u32,
}

/// A segment's flags.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Message)]
pub struct SegmentFlags {
    /// V-Flag.
    #[prost(bool, tag = "1")]
    pub v_flag: bool,
    /// A-Flag.
    #[prost(bool, tag = "2")]
    pub a_flag: bool,
    /// S-Flag.
    #[prost(bool, tag = "3")]
    pub s_flag: bool,
    /// B-Flag.
    #[prost(bool, tag = "4")]
    pub b_flag: bool,
}

/// An MPLS label.
#[derive(Clone, PartialEq, Message)]
pub struct SegmentTypeA {
    /// Its flags.
    #[prost(message, optional, tag = "1")]
    pub flags: Option<SegmentFlags>,
    /// Label, traffic class, bottom of stack and time to live, as they stand in a message.
    #[prost(uint32, tag = "2")]
    pub label: u32,
}

/// An SRv6 SID.
#[derive(Clone, PartialEq, Message)]
pub struct SegmentTypeB {
    /// Its flags.
    #[prost(message, optional, tag = "1")]
    pub flags: Option<SegmentFlags>,
    /// The SID.
    #[prost(bytes = "vec", tag = "2")]
    pub sid: Vec<u8>,
    /// What it does.
    #[prost(message, optional, tag = "3")]
    pub endpoint_behavior_structure: Option<SRv6EndPointBehavior>,
}

/// What an SRv6 SID does, and how it is made up.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Message)]
pub struct SRv6EndPointBehavior {
    /// The code point.
    #[prost(int32, tag = "1")]
    pub behavior: i32,
    /// Bits of the locator block.
    #[prost(uint32, tag = "2")]
    pub block_len: u32,
    /// Bits of the locator node.
    #[prost(uint32, tag = "3")]
    pub node_len: u32,
    /// Bits of the function.
    #[prost(uint32, tag = "4")]
    pub func_len: u32,
    /// Bits of the argument.
    #[prost(uint32, tag = "5")]
    pub arg_len: u32,
}
