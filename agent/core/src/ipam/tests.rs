use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use ipnet::Ipv6Net;
use proptest::prelude::*;

use super::*;
use crate::model::NodeName;

/// A datastore with the objects of some nodes.
#[derive(Clone, Debug, Default)]
struct Store {
    version: u64,
    handles: BTreeMap<HandleId, (Handle, Revision)>,
    affinities: BTreeMap<(NodeName, Ipv6Net), Affinity>,
    blocks: BTreeMap<Ipv6Net, (Block, Revision)>,
}

impl Store {
    fn next(&mut self) -> Revision {
        self.version += 1;
        Revision(self.version.to_string().into())
    }

    fn ask(&mut self, node: &NodeName, request: Request) -> Answer {
        let revision = self.next();
        let done = Answer::Done(revision.clone());
        match request {
            Request::ReadHandle(id) => Answer::Handle(self.handles.get(&id).cloned()),
            Request::ListAffinities => {
                let own = self.affinities.iter().filter(|((of, _), _)| of == node);
                Answer::Affinities(own.map(|(_, affinity)| affinity.clone()).collect())
            }
            Request::ReadBlock(cidr) => Answer::Block(self.blocks.get(&cidr).cloned()),
            Request::CreateAffinity(cidr) => {
                let key = (node.clone(), cidr);
                if self.affinities.contains_key(&key) {
                    return Answer::Exists;
                }
                self.affinities.insert(key, Affinity { cidr, confirmed: false, leaving: false, revision });
                done
            }
            Request::ConfirmAffinity(cidr, of) => match self.affinities.get_mut(&(node.clone(), cidr)) {
                Some(affinity) if affinity.revision == of => {
                    affinity.confirmed = true;
                    affinity.revision = revision;
                    done
                }
                Some(_) | None => Answer::Conflict,
            },
            Request::DeleteAffinity(cidr, of) => {
                let key = (node.clone(), cidr);
                if self.affinities.get(&key).is_none_or(|affinity| affinity.revision != of) {
                    return Answer::Conflict;
                }
                self.affinities.remove(&key);
                done
            }
            Request::CreateBlock(block) => {
                if self.blocks.contains_key(&block.cidr) {
                    return Answer::Exists;
                }
                self.blocks.insert(block.cidr, (block, revision));
                done
            }
            Request::UpdateBlock(block, of) => match self.blocks.get_mut(&block.cidr) {
                Some(has) if has.1 == of => {
                    *has = (block, revision);
                    done
                }
                Some(_) | None => Answer::Conflict,
            },
            Request::WriteHandle(id, handle, of) => {
                if self.handles.get(&id).map(|(_, revision)| revision) != of.as_ref() {
                    return Answer::Conflict;
                }
                self.handles.insert(id, (handle, revision));
                done
            }
        }
    }

    /// Whatever happened, nobody has another's address, and what a handle says is where its address is.
    fn check(&self, claimed: &BTreeMap<HandleId, Ipv6Addr>) {
        let addresses: BTreeSet<&Ipv6Addr> = claimed.values().collect();
        assert_eq!(addresses.len(), claimed.len(), "{claimed:?}");
        for (id, address) in claimed {
            let (handle, _) = &self.handles[id];
            let cidrs: Vec<&Ipv6Net> = handle.blocks.keys().collect();
            assert_eq!(cidrs.len(), 1, "{id}");
            let (block, _) = &self.blocks[cidrs[0]];
            assert_eq!(block.address_of(id), Some(*address));
            assert_eq!(block.allocations.iter().flatten().filter(|has| *has == id).count(), 1);
        }
        for (block, _) in self.blocks.values() {
            let taken = block.allocations.iter().flatten().count();
            assert_eq!(taken + block.unallocated.len(), block.allocations.len());
        }
    }
}

fn pool() -> Ipv6Net {
    "fd00:b::/112".parse().unwrap()
}

fn id(text: &str) -> HandleId {
    HandleId(text.into())
}

fn claim(node: &str, handle: &str) -> Claim {
    Claim::new(node.into(), pool(), 122, id(handle))
}

/// Answers a claim to its end; the names of what it asked.
fn run(store: &mut Store, node: &str, claim: &mut Claim) -> Vec<String> {
    let mut asked = Vec::new();
    while let Some(request) = claim.request() {
        let words: Vec<String> = request.to_string().split(' ').take(2).map(str::to_owned).collect();
        asked.push(words.join(" "));
        claim.answer(store.ask(&node.into(), request));
        assert!(asked.len() < 2000, "{asked:?}");
    }
    asked
}

fn claimed(store: &mut Store, node: &str, handle: &str) -> Ipv6Addr {
    let mut claim = claim(node, handle);
    run(store, node, &mut claim);
    claim.outcome().unwrap().unwrap()
}

#[test]
fn the_first_claim_of_a_node_takes_a_block_and_the_next_ones_share_it() {
    let mut store = Store::default();
    let mut first = claim("a", "h1");
    assert_eq!(
        run(&mut store, "a", &mut first),
        [
            "read IPAMHandle",
            "list BlockAffinities",
            "create BlockAffinity",
            "create IPAMBlock",
            "confirm BlockAffinity",
            "read IPAMBlock",
            "write IPAMHandle",
            "update IPAMBlock",
        ]
    );
    let first = first.outcome().unwrap().unwrap();
    assert!(pool().contains(&first));
    let mut second = claim("a", "h2");
    let asked = run(&mut store, "a", &mut second);
    assert_eq!(asked.len(), 5, "{asked:?}");
    let second = second.outcome().unwrap().unwrap();
    assert_eq!(second.to_bits(), first.to_bits() + 1);
    // Again, with and without the handle.
    assert_eq!(claimed(&mut store, "a", "h1"), first);
    store.handles.clear();
    assert_eq!(claimed(&mut store, "a", "h2"), second);
}

#[test]
fn another_nodes_block_is_left_alone() {
    let mut store = Store::default();
    let first = claimed(&mut store, "a", "h1");
    let (cidr, (block, revision)) = store.blocks.pop_first().unwrap();
    store.blocks.insert(cidr, (Block { node: Some("b".into()), ..block }, revision));
    store.affinities.clear();
    store.handles.clear();
    let mut mine = claim("a", "h2");
    let asked = run(&mut store, "a", &mut mine);
    assert!(asked.contains(&"delete BlockAffinity".to_owned()), "{asked:?}");
    assert!(!cidr.contains(&mine.outcome().unwrap().unwrap()));
    assert_eq!(store.affinities.len(), 1);
    assert!(cidr.contains(&first));
}

#[test]
fn what_an_earlier_claim_began_is_finished() {
    for left in 1..8 {
        let mut store = Store::default();
        let mut first = claim("a", "h1");
        for _ in 0..left {
            let request = first.request().unwrap();
            first.answer(store.ask(&"a".into(), request));
        }
        let address = claimed(&mut store, "a", "h1");
        store.check(&BTreeMap::from([(id("h1"), address)]));
        assert_eq!((store.affinities.len(), store.blocks.len()), (1, 1), "after {left} steps");
        assert!(store.affinities.values().all(|affinity| affinity.confirmed));
    }
}

#[test]
fn an_affinity_whose_block_is_gone_gets_a_new_one() {
    let mut store = Store::default();
    claimed(&mut store, "a", "h1");
    store.blocks.clear();
    let address = claimed(&mut store, "a", "h2");
    assert_eq!((store.affinities.len(), store.blocks.len()), (1, 1));
    assert!(store.blocks.keys().all(|cidr| cidr.contains(&address)));
}

#[test]
fn blocks_and_affinities_that_leave_are_not_used() {
    let mut store = Store::default();
    let first = claimed(&mut store, "a", "h1");
    for affinity in store.affinities.values_mut() {
        affinity.leaving = true;
    }
    for (block, _) in store.blocks.values_mut() {
        block.leaving = true;
    }
    let second = claimed(&mut store, "a", "h2");
    assert!(!store.blocks.first_key_value().unwrap().0.contains(&second) || store.blocks.len() == 2);
    assert_ne!(first, second);
    assert_eq!(store.blocks.len(), 2);
}

#[test]
fn a_full_pool_and_one_that_is_too_small_are_said() {
    let mut store = Store::default();
    let tiny: Ipv6Net = "fd00:c::/122".parse().unwrap();
    for count in 0..64 {
        let mut claim = Claim::new("a".into(), tiny, 122, id(&format!("h{count}")));
        run(&mut store, "a", &mut claim);
        assert!(claim.outcome().unwrap().is_ok());
    }
    let mut claim = Claim::new("a".into(), tiny, 122, id("one more"));
    run(&mut store, "a", &mut claim);
    assert_eq!(claim.outcome(), Some(Err(ClaimError::Full(tiny))));
    let mut other = Claim::new("b".into(), tiny, 122, id("other"));
    run(&mut store, "b", &mut other);
    assert_eq!(other.outcome(), Some(Err(ClaimError::Full(tiny))));
    assert!(!store.affinities.contains_key(&("b".into(), tiny)), "its affinity is taken back");
    let small = Claim::new("a".into(), "fd00:c::/124".parse().unwrap(), 122, id("h"));
    assert_eq!(small.outcome(), Some(Err(ClaimError::Pool("fd00:c::/124".parse().unwrap(), 122))));
}

#[test]
fn an_answer_that_does_not_fit_begins_anew() {
    let mut claim = claim("a", "h1");
    claim.answer(Answer::Exists);
    assert_eq!(claim.request(), Some(Request::ReadHandle(id("h1"))));
    let mut store = Store::default();
    run(&mut store, "a", &mut claim);
    claim.answer(Answer::Conflict);
    assert!(claim.outcome().unwrap().is_ok(), "what is over stays so");
}

proptest! {
    /// Several nodes claim at the same time, in every order of their steps, and some begin anew in the middle.
    #[test]
    fn in_any_order_everybody_gets_an_address_of_its_own_and_keeps_it(
        steps in prop::collection::vec((0usize..6, prop::bool::weighted(0.05)), 0..400),
        block_len in 122u8..=124,
    ) {
        let mut store = Store::default();
        // Two claims for each of three nodes, in a pool of a few blocks.
        let of = |at: usize| (["a", "b", "c"][at / 2], format!("h{at}"));
        let pool: Ipv6Net = "fd00:b::/120".parse().unwrap();
        let fresh = |at: usize| {
            let (node, handle) = of(at);
            Claim::new(node.into(), pool, block_len, id(&handle))
        };
        let mut claims: Vec<Claim> = (0..6).map(fresh).collect();
        let mut first: BTreeMap<HandleId, Ipv6Addr> = BTreeMap::new();
        for (at, anew) in steps {
            if anew {
                claims[at] = fresh(at);
            }
            if let Some(request) = claims[at].request() {
                let answer = store.ask(&of(at).0.into(), request);
                claims[at].answer(answer);
            }
            if let Some(outcome) = claims[at].outcome() {
                let (_, handle) = of(at);
                let address = outcome.unwrap();
                prop_assert_eq!(*first.entry(id(&handle)).or_insert(address), address, "it is stable");
            }
        }
        for (at, claim) in claims.iter_mut().enumerate() {
            let (node, handle) = of(at);
            run(&mut store, node, claim);
            let address = claim.outcome().unwrap().unwrap();
            prop_assert_eq!(*first.entry(id(&handle)).or_insert(address), address);
        }
        store.check(&first);
    }
}
