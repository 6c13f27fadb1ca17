//! `sr`: segment routing over IPv6 (RFC 8986): local SIDs, policies, steering.
//!
//! What can be built is what does VPP no harm: it dies of an empty list of segments and of a local SID with a behaviour that
//! it doesn't know, and reads on behind a list that says that it has more than 16. It dies, too, of steering in a table that
//! doesn't exist, which only whoever knows its tables can rule out. Its return values are its own: see
//! [`SrReply::outcome`].
//!
//! Everything stands in the main table but what is steered.

use std::net::Ipv6Addr;

use ipnet::IpNet;

use crate::head::RequestHead;
use crate::message::Refused;
use crate::retval::Retval;
use crate::types::{Address, Bool, Ip6Address, Prefix, SwIfIndex, TableId};
use zerocopy::big_endian::U32;

include!(concat!(env!("OUT_DIR"), "/sr.rs"));

/// Most SIDs of a list.
pub const MAX_SIDS: usize = 16;

impl Srv6SidList {
    /// A list of segments, the first one first, with its share of the traffic.
    ///
    /// # Errors
    /// [`Refused::Sids`] for none and for more than [`MAX_SIDS`]; [`Refused::Sid`] for `::` among them;
    /// [`Refused::NoWeight`].
    pub fn new(sids: &[Ipv6Addr], weight: u32) -> Result<Self, Refused> {
        if !(1..=MAX_SIDS).contains(&sids.len()) {
            return Err(Refused::Sids(sids.len()));
        }
        // All ones would be taken for "not said".
        if weight == 0 || weight == u32::MAX {
            return Err(Refused::NoWeight(weight));
        }
        let mut list = Self {
            num_sids: sids.len() as u8,
            weight: U32::new(weight),
            sids: [Ip6Address::UNSPECIFIED; MAX_SIDS],
        };
        for (place, sid) in list.sids.iter_mut().zip(sids) {
            *place = address(*sid)?;
        }
        Ok(list)
    }

    /// The SIDs; of a list that says that it has more than there is room for, those.
    pub fn iter(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.sids.iter().take(usize::from(self.num_sids)).map(|sid| sid.addr())
    }
}

impl Srv6SidListWithSlIndex {
    /// The SIDs.
    pub fn iter(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.sids.iter().take(usize::from(self.num_sids)).map(|sid| sid.addr())
    }
}

/// An address that is one.
fn address(addr: Ipv6Addr) -> Result<Ip6Address, Refused> {
    if addr.is_unspecified() { Err(Refused::Sid) } else { Ok(addr.into()) }
}

impl SrSetEncapSource {
    /// The source of what policies encapsulate that don't name one.
    ///
    /// # Errors
    /// [`Refused::Sid`] for `::`.
    pub fn new(source: Ipv6Addr) -> Result<Self, Refused> {
        Ok(Self { head: RequestHead::BLANK, encaps_source: address(source)? })
    }
}

impl SrLocalsidAddDel {
    /// A SID whose packets are taken out and looked up in the main table: of IPv4 ([`SrBehavior::DT4`]) or IPv6
    /// ([`SrBehavior::DT6`]).
    ///
    /// # Errors
    /// [`Refused::Behavior`] for every other behaviour; [`Refused::Sid`] for `::`.
    pub fn add(sid: Ipv6Addr, behavior: SrBehavior) -> Result<Self, Refused> {
        if behavior != SrBehavior::DT4 && behavior != SrBehavior::DT6 {
            return Err(Refused::Behavior(behavior.value()));
        }
        Ok(Self { behavior, ..Self::of(address(sid)?) })
    }

    /// The SID goes.
    ///
    /// # Errors
    /// [`Refused::Sid`] for `::`.
    pub fn delete(sid: Ipv6Addr) -> Result<Self, Refused> {
        Ok(Self { is_del: Bool::TRUE, ..Self::of(address(sid)?) })
    }

    fn of(localsid: Ip6Address) -> Self {
        Self {
            head: RequestHead::BLANK,
            is_del: Bool::FALSE,
            localsid,
            end_psp: Bool::FALSE,
            // Of what goes nobody looks at it.
            behavior: SrBehavior::DT6,
            // The table in which packets are looked up when they have been taken out.
            sw_if_index: SwIfIndex::new(0),
            vlan_index: U32::ZERO,
            fib_table: TableId::DEFAULT,
            nh_addr: Address::UNSPECIFIED,
        }
    }
}

impl SrPolicyAddV2 {
    /// A policy that encapsulates with one list of segments. `bsid` is what it is known by.
    ///
    /// # Errors
    /// [`Refused::Sid`] for `::`.
    pub fn new(bsid: Ipv6Addr, source: Ipv6Addr, list: Srv6SidList) -> Result<Self, Refused> {
        Ok(Self {
            head: RequestHead::BLANK,
            bsid_addr: address(bsid)?,
            weight: list.weight,
            is_encap: Bool::TRUE,
            r#type: SrPolicyType::DEFAULT,
            fib_table: TableId::DEFAULT,
            sids: list,
            encap_src: address(source)?,
        })
    }
}

impl SrPolicyModV2 {
    /// One more list for a policy.
    ///
    /// # Errors
    /// [`Refused::Sid`] for `::`.
    pub fn add_list(bsid: Ipv6Addr, source: Ipv6Addr, list: Srv6SidList) -> Result<Self, Refused> {
        let weight = list.weight;
        let of = Self::of(bsid, source, SrPolicyOp::ADD)?;
        Ok(Self { weight, sids: list, ..of })
    }

    /// A list less, by the index that [`SrPoliciesWithSlIndexDetails`] shows. The last one stays: -21.
    ///
    /// # Errors
    /// [`Refused::Sid`] for `::`.
    pub fn delete_list(bsid: Ipv6Addr, source: Ipv6Addr, index: u32) -> Result<Self, Refused> {
        Ok(Self { sl_index: U32::new(index), ..Self::of(bsid, source, SrPolicyOp::DEL)? })
    }

    fn of(bsid: Ipv6Addr, source: Ipv6Addr, operation: SrPolicyOp) -> Result<Self, Refused> {
        Ok(Self {
            head: RequestHead::BLANK,
            bsid_addr: address(bsid)?,
            sr_policy_index: U32::new(u32::MAX),
            fib_table: TableId::DEFAULT,
            operation,
            sl_index: U32::ZERO,
            weight: U32::ZERO,
            sids: Srv6SidList { num_sids: 0, weight: U32::ZERO, sids: [Ip6Address::UNSPECIFIED; MAX_SIDS] },
            encap_src: address(source)?,
        })
    }
}

impl SrPolicyDel {
    /// The policy with this binding SID goes. What is steered into it must be gone before: VPP would hand it to the policy
    /// that comes next.
    #[must_use]
    pub fn by_bsid(bsid: Ipv6Addr) -> Self {
        Self::new(bsid.into(), u32::MAX)
    }
}

impl SrSteeringAddDel {
    /// Packets to a prefix of a table are for a policy, in the place of whichever they were for. **The table must exist**:
    /// VPP dies of one that doesn't.
    ///
    /// # Errors
    /// [`Refused::HostBits`]; [`Refused::Sid`] for `::`.
    pub fn add(table: TableId, prefix: IpNet, bsid: Ipv6Addr) -> Result<Self, Refused> {
        Ok(Self { bsid_addr: address(bsid)?, ..Self::of(table, prefix)? })
    }

    /// They are no longer, whichever it was.
    ///
    /// # Errors
    /// [`Refused::HostBits`].
    pub fn delete(table: TableId, prefix: IpNet) -> Result<Self, Refused> {
        Ok(Self { is_del: Bool::TRUE, ..Self::of(table, prefix)? })
    }

    fn of(table_id: TableId, prefix: IpNet) -> Result<Self, Refused> {
        Ok(Self {
            head: RequestHead::BLANK,
            is_del: Bool::FALSE,
            bsid_addr: Ip6Address::UNSPECIFIED,
            sr_policy_index: U32::new(u32::MAX),
            table_id,
            prefix: Prefix::network(prefix)?,
            sw_if_index: SwIfIndex::NONE,
            traffic_type: if prefix.addr().is_ipv4() { SrSteer::IPV4 } else { SrSteer::IPV6 },
        })
    }
}

/// What a return value means, which depends on what it answers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SrOutcome {
    /// Done.
    Done,
    /// There is one already, or something else has its place: a route to that very address.
    Exists,
    /// There is none.
    Absent,
    /// Something that the request names isn't there: a policy, a table, a list.
    Missing,
    /// Anything else.
    Failed,
}

/// Which request a return value answers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SrReply {
    /// `sr_localsid_add_del`.
    Localsid,
    /// `sr_policy_add_v2`.
    PolicyAdd,
    /// `sr_policy_mod_v2`.
    PolicyMod,
    /// `sr_policy_del`.
    PolicyDel,
    /// `sr_steering_add_del`.
    Steering,
}

impl SrReply {
    /// What a return value means here.
    #[must_use]
    pub const fn outcome(self, retval: Retval) -> SrOutcome {
        match (self, retval.value()) {
            (_, 0) => SrOutcome::Done,
            (Self::Localsid, -1 | -4) | (Self::PolicyAdd, -12) => SrOutcome::Exists,
            (Self::Localsid | Self::PolicyDel, -2 | -1) | (Self::Steering, -4) => SrOutcome::Absent,
            (Self::Localsid, -3)
            | (Self::PolicyAdd, -13)
            | (Self::PolicyMod, -1 | -22 | -32)
            | (Self::Steering, -2) => SrOutcome::Missing,
            _ => SrOutcome::Failed,
        }
    }
}
