//! Why a destination is as it is.

use super::*;
use crate::command::Chain;
use crate::policy::{Act, Condition, Default, Flow, Otherwise, PolicyDef, SetDef, StatementDef};
use crate::query::{Explanation, NotTold};
use crate::rib::{NextHopState, PathRejected, Rung, Standing};

fn explain(world: &mut World, node: usize, text: &str) -> Option<Explanation> {
    let now = world.now;
    world.nodes[node].speaker.explain(now, nlri(text))
}

/// What each neighbour hears, or why not.
fn told(explanation: &Explanation) -> Vec<String> {
    let words = explanation.told.iter().map(|telling| match &telling.told {
        Ok(paths) => {
            let path = Canonical(paths[0].attrs.canonical()).as_path().to_string();
            format!("{} hears {path}", telling.peer)
        }
        Err(why) => format!("{}: {why}", telling.peer),
    });
    words.collect()
}

fn policy(name: &str, statement: StatementDef) -> Command {
    let def = PolicyDef { statements: vec![statement], default: Default::Accept };
    Command::PutPolicy(name.into(), def)
}

#[test]
fn the_life_of_a_prefix() {
    let mut world = World::joined(&[65010, 65020, 65030, 65040, 65050], &[(0, 1), (2, 1), (3, 1), (4, 1)]);
    let unwanted = vec![Condition::PrefixSet("unwanted".into())];
    world.command(
        1,
        Command::PutSet("unwanted".into(), SetDef::Prefixes(vec!["10.0.1.0/24".parse().unwrap()])),
    );
    let reject = StatementDef::new(unwanted.clone(), vec![], Flow::Reject);
    world.command(1, policy("in", reject.clone().labelled("BGPFilter f, importV4 rule 1")));
    world.command(1, policy("out", reject.labelled("BGPFilter f, exportV4 rule 2")));
    world.command(1, policy("better", StatementDef::new(vec![], vec![Act::SetLocalPref(200)], Flow::Accept)));
    let with = |world: &World, node, import: &[&str], export: &[&str]| {
        let chain = |names: &[&str]| Chain::new(names.iter().copied(), Otherwise::Accept);
        let config =
            PeerConfig { import: chain(import), export: chain(export), passive: true, ..world.config(node) };
        Command::PutPeer(key(node), config)
    };
    for command in
        [with(&world, 0, &["better"], &[]), with(&world, 2, &["in"], &[]), with(&world, 3, &[], &["out"])]
    {
        world.command(1, command);
    }
    for node in [0, 2, 3] {
        world.originate(node, nth(1), marked(node as u32));
    }
    world.settle();

    let life = explain(&mut world, 1, "10.0.1.0/24").unwrap();
    assert_eq!((life.nlri, life.decided_by), (nth(1), Some(Rung::LocalPref)));
    let of = |node| life.paths.iter().find(|path| path.path.source == Some(key(node))).unwrap();
    let by = |node| of(node).import.as_ref().unwrap().to_string();
    assert_eq!(of(0).path.standing, Some(Standing::Best));
    assert_eq!(by(0), "policy better, statement 1");
    let local_pref = |set: &crate::rib::AttrSet| set.facts().local_pref;
    assert_eq!((local_pref(&of(0).received), local_pref(&of(0).path.attrs)), (None, Some(200)));
    assert_eq!(of(2).path.standing, Some(Standing::Rejected(PathRejected::ImportPolicy)));
    assert_eq!(by(2), "policy in, statement 1 (BGPFilter f, importV4 rule 1)");
    let Some(Standing::Lost(loss)) = of(3).path.standing else { panic!("{:?}", of(3)) };
    assert_eq!(
        (loss.rung, loss.own.to_string(), loss.better.to_string()),
        (Rung::LocalPref, "100".into(), "200".into())
    );
    assert_eq!(by(3), "no policy");
    assert_eq!(
        told(&life),
        [
            "192.0.2.1: the best path came from there",
            "192.0.2.3 hears 65020 65010",
            "192.0.2.4: export: policy out, statement 1 (BGPFilter f, exportV4 rule 2)",
            "192.0.2.5 hears 65020 65010",
        ]
    );

    // The longest that holds it, and nothing where nothing does.
    for inside in ["10.0.1.128/25", "10.0.1.7/32"] {
        assert_eq!(explain(&mut world, 1, inside).unwrap().nlri, nth(1));
    }
    assert!(explain(&mut world, 1, "10.0.0.0/16").is_none());

    // A next hop that cannot be reached.
    let away = NextHopState { reachable: false, ..NextHopState::default() };
    world.command(1, Command::PutNextHop("192.0.2.1".parse().unwrap(), away));
    world.settle();
    let life = explain(&mut world, 1, "10.0.1.0/24").unwrap();
    let gone = life.paths.iter().find(|path| path.path.source == Some(key(0))).unwrap();
    assert_eq!(gone.path.standing, Some(Standing::Unreachable));
    assert_eq!(told(&life)[0], "192.0.2.1 hears 65020 65040");
}

#[test]
fn what_the_rules_of_bgp_keep_back() {
    let mut world = World::joined(&[65010, 65020, 65020, 65030], &[(0, 1), (2, 1), (3, 1)]);
    world.originate(0, nth(1), Origination { communities: vec![0xffff_ff01], ..Origination::default() });
    world.originate(2, nth(2), marked(1));
    world.originate(
        1,
        nth(3),
        Origination { audience: crate::command::Audience::Ibgp, ..Origination::default() },
    );
    world.settle();
    let life = |world: &mut World, n| told(&explain(world, 1, &nth(n).to_string()).unwrap());
    assert_eq!(
        life(&mut world, 1),
        [
            "192.0.2.1: the best path came from there",
            "192.0.2.3 hears 65010",
            "192.0.2.4: community NO_EXPORT or NO_EXPORT_SUBCONFED",
        ]
    );
    assert_eq!(life(&mut world, 2)[0], "192.0.2.1 hears 65020");
    assert_eq!(
        life(&mut world, 3),
        [
            "192.0.2.1: originated for other neighbors",
            "192.0.2.3 hears ",
            "192.0.2.4: originated for other neighbors",
        ]
    );
    // What an aggregate stands for.
    let aggregate = crate::command::Aggregate { summary_only: true, ..crate::command::Aggregate::default() };
    world.command(1, Command::PutAggregate("10.0.2.0/23".parse().unwrap(), aggregate));
    world.settle();
    let instead = "an aggregate is announced in its place (summary-only)";
    assert_eq!(life(&mut world, 2)[0], format!("192.0.2.1: {instead}"));
    world.cut(0, 1, true);
    world.command(1, Command::DisablePeer(key(3), String::new()));
    world.settle();
    let explanation = explain(&mut world, 1, "10.0.3.0/24").unwrap();
    assert_eq!(explanation.told[2].told.as_ref().unwrap_err(), &NotTold::NoSession);
}
