//! SRv6: local SIDs, policies with their lists, what is steered into them, and the routes that come with all three.
//!
//! As in VPP, what is steered knows its policy by index and nothing keeps a policy that is in use: when it goes, what was
//! steered into it belongs to whichever policy gets its index next, though its route still asks for the old binding SID.

use super::State;
use super::fib::Fib;
use super::key::{Af, Key};
use super::path::{self, NO_INTERFACE};
use super::pool::Pool;
use super::sources::SR;

/// The table in which binding SIDs are looked up for what is steered: one that has no number.
const HIDDEN: u32 = u32::MAX;

/// Weight that means "not said".
const NO_WEIGHT: u32 = u32::MAX;

/// A SID of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Localsid {
    /// Its address.
    pub(crate) sid: [u8; 16],
    /// Bits of it that are looked up.
    pub(crate) len: u8,
    /// Removes the routing header at the last but one.
    pub(crate) psp: bool,
    /// What it does, by VPP's numbers.
    pub(crate) behavior: u8,
    /// The table it stands in.
    pub(crate) table: u32,
    /// Inner table or outgoing interface.
    pub(crate) target: u32,
    /// Next hop of cross-connects.
    pub(crate) next_hop: Option<(Af, [u8; 16])>,
}

/// A list of segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SidList {
    /// Its share.
    pub(crate) weight: u32,
    /// 1 to 16 SIDs.
    pub(crate) sids: Vec<[u8; 16]>,
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Its binding SID.
    pub(crate) bsid: [u8; 16],
    /// Encapsulates, rather than inserts.
    pub(crate) encap: bool,
    /// 0 one list for each flow, 1 all of them, 2 with time stamps.
    pub(crate) kind: u8,
    /// The table of its binding SID.
    pub(crate) table: u32,
    /// The source of what the last list encapsulates.
    pub(crate) encap_src: [u8; 16],
    /// Indices of its lists, in the order in which they came.
    pub(crate) lists: Vec<u32>,
}

/// Traffic that a policy gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Steering {
    /// 4 or 6; the other kind is not simulated.
    pub(crate) af: Af,
    /// The prefix as it was given, host bits and all.
    pub(crate) prefix: ([u8; 16], u8),
    /// Its table.
    pub(crate) table: u32,
    policy: u32,
}

/// All of SRv6.
#[derive(Debug)]
pub(crate) struct Sr {
    /// The source of what policies encapsulate that do not say it themselves.
    pub(crate) encap_source: [u8; 16],
    localsids: Pool<Localsid>,
    policies: Pool<Policy>,
    lists: Pool<SidList>,
    steerings: Pool<Steering>,
    /// The binding SID that stood last at each index of a policy; a freed one still reads so.
    remains: Vec<[u8; 16]>,
}

impl Sr {
    pub(super) fn new() -> Self {
        Self {
            encap_source: [0; 16],
            localsids: Pool::new(),
            policies: Pool::new(),
            lists: Pool::new(),
            steerings: Pool::new(),
            remains: Vec::new(),
        }
    }

    /// All local SIDs, in the order of VPP's pool.
    pub(crate) fn localsids(&self) -> impl Iterator<Item = &Localsid> {
        self.localsids.iter().map(|(_, sid)| sid)
    }

    /// All policies, in the order of VPP's pool.
    pub(crate) fn policies(&self) -> impl Iterator<Item = &Policy> {
        self.policies.iter().map(|(_, policy)| policy)
    }

    /// The lists of a policy with their indices.
    pub(crate) fn lists<'a>(&'a self, policy: &'a Policy) -> impl Iterator<Item = (u32, &'a SidList)> {
        policy.lists.iter().filter_map(|at| Some((*at, self.lists.get(*at)?)))
    }

    /// All that is steered, in the order of VPP's pool, with the binding SID that VPP shows for it.
    pub(crate) fn steerings(&self) -> impl Iterator<Item = (&Steering, [u8; 16])> {
        self.steerings.iter().map(|(_, steering)| {
            let bsid = self.remains.get(steering.policy as usize).copied().unwrap_or_default();
            (steering, bsid)
        })
    }

    /// There are policies, or there is traffic for some.
    pub(crate) fn is_used(&self) -> bool {
        self.policies.len() + self.steerings.len() > 0
    }

    /// It is as at the start.
    pub(crate) fn is_untouched(&self) -> bool {
        !self.is_used() && self.localsids.len() == 0 && self.encap_source == [0; 16]
    }

    fn policy(&self, bsid: [u8; 16]) -> Option<u32> {
        self.policies.iter().find(|(_, policy)| policy.bsid == bsid).map(|(at, _)| at)
    }

    fn add_list(&mut self, sids: Vec<[u8; 16]>, weight: u32) -> u32 {
        let weight = if weight == NO_WEIGHT { 1 } else { weight };
        self.lists.insert(SidList { weight, sids })
    }
}

impl State {
    /// Adds a local SID whose behaviour exists; its return value.
    pub(crate) fn add_localsid(&mut self, new: Localsid) -> i32 {
        if self.sr.localsids().any(|old| (old.sid, old.len) == (new.sid, new.len)) {
            return -1;
        }
        let key = Key::new(new.sid, new.len);
        match stands(&self.fib, new.table, key) {
            None => return -3,
            Some(true) => return -4,
            Some(false) => {}
        }
        self.fib.put(Af::Ip6, new.table, key, new.sid, SR, &mut [path::lookup(Af::Ip6)]);
        self.sr.localsids.insert(new);
        0
    }

    /// Removes a local SID. Its route is looked for in the table that the request names.
    pub(crate) fn remove_localsid(&mut self, sid: [u8; 16], len: u8, table: u32) -> i32 {
        let found = self.sr.localsids.iter().find(|(_, old)| (old.sid, old.len) == (sid, len));
        let Some((at, _)) = found else { return -2 };
        self.sr.localsids.remove(at);
        self.fib.take(Af::Ip6, table, Key::new(sid, len), SR);
        0
    }

    /// Adds a policy with its first list, which is not empty.
    pub(crate) fn add_sr_policy(&mut self, mut new: Policy, sids: Vec<[u8; 16]>, weight: u32) -> i32 {
        if self.sr.policy(new.bsid).is_some() {
            return -12;
        }
        let key = Key::host(Af::Ip6, new.bsid);
        match stands(&self.fib, new.table, key) {
            None => return -13,
            Some(true) => return -12,
            Some(false) => {}
        }
        self.fib.put(Af::Ip6, new.table, key, new.bsid, SR, &mut [path::lookup(Af::Ip6)]);
        new.lists = vec![self.sr.add_list(sids, weight)];
        let bsid = new.bsid;
        let at = self.sr.policies.insert(new) as usize;
        if self.sr.remains.len() <= at {
            self.sr.remains.resize(at + 1, [0; 16]);
        }
        if let Some(remains) = self.sr.remains.get_mut(at) {
            *remains = bsid;
        }
        0
    }

    /// Removes a policy, whether or not anything is steered into it.
    pub(crate) fn remove_sr_policy(&mut self, bsid: [u8; 16]) -> i32 {
        let Some(gone) = self.sr.policy(bsid).and_then(|at| self.sr.policies.remove(at)) else { return -1 };
        for list in gone.lists {
            self.sr.lists.remove(list);
        }
        self.fib.take(Af::Ip6, gone.table, Key::host(Af::Ip6, bsid), SR);
        0
    }

    /// Adds a list, which is not empty, to a policy.
    pub(crate) fn add_sid_list(
        &mut self,
        bsid: [u8; 16],
        source: [u8; 16],
        sids: Vec<[u8; 16]>,
        weight: u32,
    ) -> i32 {
        let Some(at) = self.sr.policy(bsid) else { return -1 };
        let list = self.sr.add_list(sids, weight);
        if let Some(policy) = self.sr.policies.get_mut(at) {
            policy.lists.push(list);
            policy.encap_src = source;
        }
        0
    }

    /// Removes the list with this index from a policy.
    pub(crate) fn remove_sid_list(&mut self, bsid: [u8; 16], list: u32) -> i32 {
        let Some(policy) = self.sr.policy(bsid).and_then(|at| self.sr.policies.get_mut(at)) else {
            return -1;
        };
        if policy.lists.len() == 1 {
            return -21;
        }
        let Some(at) = policy.lists.iter().position(|other| *other == list) else { return -22 };
        policy.lists.swap_remove(at);
        self.sr.lists.remove(list);
        0
    }

    /// Changes the weight of the list with this index.
    pub(crate) fn weigh_sid_list(&mut self, bsid: [u8; 16], list: u32, weight: u32) -> i32 {
        let Some(policy) = self.sr.policy(bsid).and_then(|at| self.sr.policies.get(at)) else { return -1 };
        if !policy.lists.contains(&list) {
            return -32;
        }
        if let Some(list) = self.sr.lists.get_mut(list) {
            list.weight = weight;
        }
        0
    }

    /// Steers a prefix of a table that exists into a policy, in the place of whichever it was steered into.
    pub(crate) fn steer(&mut self, bsid: [u8; 16], af: Af, table: u32, prefix: ([u8; 16], u8)) -> i32 {
        let Some(policy) = self.sr.policy(bsid) else { return -2 };
        let old = self.steering(af, table, prefix);
        match old.and_then(|at| self.sr.steerings.get_mut(at)) {
            Some(steering) => steering.policy = policy,
            None => {
                self.sr.steerings.insert(Steering { af, prefix, table, policy });
            }
        }
        let mut path = path::neighbour(Af::Ip6, NO_INTERFACE, bsid);
        path.table_id = HIDDEN.into();
        self.fib.put(af, table, Key::new(prefix.0, prefix.1), prefix.0, SR, &mut [path]);
        0
    }

    /// A prefix is steered no longer, whichever policy the request names.
    pub(crate) fn unsteer(&mut self, af: Af, table: u32, prefix: ([u8; 16], u8)) -> i32 {
        let Some(at) = self.steering(af, table, prefix) else { return -4 };
        self.sr.steerings.remove(at);
        self.fib.take(af, table, Key::new(prefix.0, prefix.1), SR);
        0
    }

    /// Whether a prefix is steered.
    pub(crate) fn steering(&self, af: Af, table: u32, prefix: ([u8; 16], u8)) -> Option<u32> {
        let same =
            |steering: &Steering| steering.af == af && steering.table == table && steering.prefix == prefix;
        self.sr.steerings.iter().find(|(_, steering)| same(steering)).map(|(at, _)| at)
    }
}

/// Whether a table has a route to this very prefix; `None` without such a table.
fn stands(fib: &Fib, table: u32, key: Key) -> Option<bool> {
    fib.table(Af::Ip6, table).map(|table| table.has(key))
}
