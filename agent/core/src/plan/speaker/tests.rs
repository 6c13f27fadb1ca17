//! Order, gates and refusals.

#![allow(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeMap;

use bgp_core::Asn;
use bgp_core::command::{Chain, Origination, PeerConfig};
use bgp_core::peer_key::PeerKey;
use bgp_core::policy::{Default as Otherwise, PolicyDef, PolicyName, SetName};
use bgp_core::session::{GracefulRestart, RemoteAsn};

use super::*;

fn peer_key() -> PeerKey {
    PeerKey::new("192.0.2.2".parse().unwrap())
}

fn peer(policy: &str) -> BgpEdit {
    let mut config = PeerConfig::new(RemoteAsn::Is(Asn(65001)));
    config.export = Chain::named(PolicyName::new(policy));
    BgpEdit::Put(BgpObject::Peer(peer_key(), Box::new(config), ObjectRef::new("BGPPeer", "tor")))
}

fn policy(name: &str) -> BgpEdit {
    let definition = PolicyDef { statements: Vec::new(), default: Otherwise::Accept };
    BgpEdit::Put(BgpObject::Policy(PolicyName::new(name), definition))
}

fn set(name: &str) -> BgpEdit {
    BgpEdit::Put(BgpObject::PrefixSet(SetName::new(name), Vec::new()))
}

fn origination() -> BgpEdit {
    BgpEdit::Put(BgpObject::Origination("10.0.0.0/26".parse().unwrap(), Origination::default()))
}

/// A speaker that refuses peers whose policy it lacks, and lets go of no policy that a peer names.
#[derive(Default)]
struct Speaker {
    policies: BTreeMap<PolicyName, PolicyDef>,
    peers: BTreeMap<PeerKey, PeerConfig>,
    heard: Vec<String>,
}

impl Speaker {
    fn obey(&mut self, command: &Command) -> Result<Applied, Refusal> {
        let name = format!("{command:?}");
        self.heard.push(name.split(['(', ' ']).next().unwrap().to_owned());
        match command {
            Command::PutPolicy(name, definition) => {
                self.policies.insert(name.clone(), definition.clone());
            }
            Command::DeletePolicy(policy) => {
                let user = |config: &PeerConfig| config.export.names(policy);
                if let Some((peer, _)) = self.peers.iter().find(|(_, config)| user(config)) {
                    return Err(Refusal::PolicyInUse { policy: policy.clone(), peer: *peer });
                }
                self.policies.remove(policy);
            }
            Command::PutPeer(key, config) => {
                if let Some(policy) =
                    config.export.policies.iter().find(|name| !self.policies.contains_key(name))
                {
                    return Err(Refusal::NoSuchPolicy(policy.clone()));
                }
                self.peers.insert(*key, config.clone());
            }
            Command::DeletePeer(key) => {
                self.peers.remove(key).ok_or(Refusal::NoSuchPeer(*key))?;
            }
            _ => {}
        }
        Ok(Applied::Applied)
    }

    fn run(&mut self, plan: &mut SpeakerPlan) -> Vec<String> {
        self.heard.clear();
        for round in 0.. {
            assert!(round < 100, "it does not come to rest");
            let mut ops = Vec::new();
            plan.next_ops(3, &mut ops);
            if ops.is_empty() {
                break;
            }
            for op in ops {
                let result = self.obey(&op.command);
                plan.done(op.id, result);
            }
        }
        assert!(plan.idle());
        std::mem::take(&mut self.heard)
    }
}

fn opened() -> SpeakerPlan {
    let mut plan = SpeakerPlan::default();
    plan.set_originate(true);
    plan.open_peers(FamilySet::EMPTY);
    plan
}

#[test]
fn commands_leave_in_the_order_of_their_ranks_and_go_in_reverse() {
    let (mut plan, mut speaker) = (opened(), Speaker::default());
    plan.edit([peer("p"), origination(), policy("p"), set("s")].into_iter());
    assert_eq!(speaker.run(&mut plan), ["PutSet", "PutPolicy", "PutOrigination", "LoadingDone", "PutPeer"]);
    let gone = [
        BgpKey::PrefixSet(SetName::new("s")),
        BgpKey::Policy(PolicyName::new("p")),
        BgpKey::Peer(peer_key()),
        BgpKey::Origination("10.0.0.0/26".parse().unwrap()),
    ];
    plan.edit(gone.into_iter().map(BgpEdit::Delete));
    assert_eq!(speaker.run(&mut plan), ["DeleteOrigination", "DeletePeer", "DeletePolicy", "DeleteSet"]);
    assert_eq!(plan.entries.len(), 1, "only the end of loading is remembered");
}

#[test]
fn peers_are_told_in_which_families_forwarding_outlived_the_restart() {
    for kept in [FamilySet::EMPTY, FamilySet::ALL] {
        let (mut plan, mut speaker) = (SpeakerPlan::default(), Speaker::default());
        let mut config = PeerConfig::new(RemoteAsn::Is(Asn(65001)));
        config.graceful_restart = Some(GracefulRestart::USUAL);
        let tor = ObjectRef::new("BGPPeer", "tor");
        plan.edit(std::iter::once(BgpEdit::Put(BgpObject::Peer(peer_key(), Box::new(config), tor))));
        plan.open_peers(kept);
        assert_eq!(speaker.run(&mut plan), ["LoadingDone", "PutPeer"]);
        assert_eq!(speaker.peers[&peer_key()].graceful_restart.unwrap().forwarding, kept);
        plan.open_peers(FamilySet::EMPTY);
        assert_eq!(speaker.run(&mut plan), [""; 0], "told once");
    }
}

#[test]
fn gates_hold_back_and_take_back() {
    let (mut plan, mut speaker) = (SpeakerPlan::default(), Speaker::default());
    plan.edit([peer("p"), origination(), policy("p")].into_iter());
    assert_eq!(speaker.run(&mut plan), ["PutPolicy"]);
    plan.set_originate(true);
    assert_eq!(speaker.run(&mut plan), ["PutOrigination"]);
    plan.open_peers(FamilySet::EMPTY);
    assert_eq!(speaker.run(&mut plan), ["LoadingDone", "PutPeer"]);
    plan.set_originate(false);
    assert_eq!(speaker.run(&mut plan), ["DeleteOrigination"]);
    plan.set_originate(true);
    assert_eq!(speaker.run(&mut plan), ["PutOrigination"]);
}

#[test]
fn a_refusal_becomes_a_condition_on_the_object_and_is_not_repeated() {
    let (mut plan, mut speaker) = (opened(), Speaker::default());
    plan.edit([peer("missing")].into_iter());
    assert_eq!(speaker.run(&mut plan), ["LoadingDone", "PutPeer"]);
    let conditions = plan.take_conditions().unwrap();
    assert_eq!(conditions.len(), 1);
    assert_eq!(conditions[0].to_string(), "BGPPeer tor: the speaker refuses it: no policy missing");
    assert_eq!(plan.take_conditions(), None, "told once");
    plan.edit([peer("missing")].into_iter());
    assert_eq!(speaker.run(&mut plan), Vec::<String>::new());
    // Another value is tried, and so is everything refused when something else came in.
    plan.edit([policy("missing")].into_iter());
    assert_eq!(speaker.run(&mut plan), ["PutPolicy", "PutPeer"]);
    assert_eq!(plan.take_conditions(), Some(Vec::new()));
}

#[test]
fn what_is_refused_to_go_goes_when_its_user_is_gone() {
    let (mut plan, mut speaker) = (opened(), Speaker::default());
    plan.edit([peer("p"), policy("p")].into_iter());
    speaker.run(&mut plan);
    plan.edit([BgpEdit::Delete(BgpKey::Policy(PolicyName::new("p")))].into_iter());
    assert_eq!(speaker.run(&mut plan), ["DeletePolicy"]);
    assert_eq!(plan.take_conditions().unwrap().len(), 1);
    plan.edit([BgpEdit::Delete(BgpKey::Peer(peer_key()))].into_iter());
    assert_eq!(speaker.run(&mut plan), ["DeletePeer", "DeletePolicy"]);
    assert!(speaker.policies.is_empty() && speaker.peers.is_empty());
    assert_eq!(plan.take_conditions(), Some(Vec::new()));
}

#[test]
fn a_peer_that_is_not_there_is_gone() {
    let (mut plan, mut speaker) = (opened(), Speaker::default());
    plan.edit([peer("p"), policy("p")].into_iter());
    speaker.run(&mut plan);
    speaker.peers.clear();
    plan.edit([BgpEdit::Delete(BgpKey::Peer(peer_key()))].into_iter());
    assert_eq!(speaker.run(&mut plan), ["DeletePeer"]);
    assert_eq!(plan.take_conditions(), None);
}

#[test]
fn a_change_while_a_command_is_out_is_made_good_after_it() {
    let mut plan = opened();
    plan.edit([set("s"), origination()].into_iter());
    let mut ops = Vec::new();
    plan.next_ops(10, &mut ops);
    plan.edit([BgpEdit::Delete(BgpKey::Origination("10.0.0.0/26".parse().unwrap()))].into_iter());
    let mut none = Vec::new();
    plan.next_ops(10, &mut none);
    assert_eq!(none, [], "one command at a time for one object");
    for op in ops {
        plan.done(op.id, Ok(Applied::Applied));
    }
    plan.next_ops(10, &mut none);
    assert!(matches!(none[..], [SpeakerOp { command: Command::DeleteOrigination(_), .. }]), "{none:?}");
}
