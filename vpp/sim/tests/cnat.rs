//! What ends a process that is told about source translation in the wrong order.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod wire;

use vpp_sim::Sim;
use wire::Peer;

#[tokio::test]
async fn source_translation_without_addresses_is_fatal() {
    let prefix: &[u8] = &[1, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8];
    let addresses = |index: u8| {
        let tables = [0, 0, 0, index, 0, 0, 0, 0];
        [tables.as_slice(), &[192, 0, 2, 1], &[0; 16], &[0xff; 4], &[6]].concat()
    };
    let cases: [(&str, Vec<u8>, &str); 4] = [
        ("cnat_set_snat_policy", vec![2], "before it had any address"),
        ("cnat_snat_policy_add_del_exclude_pfx", prefix.to_vec(), "before it had any address"),
        ("cnat_set_snat_addresses_v2", addresses(9), "table index"),
        ("cnat_translation_update", vec![0; 40], "no backends"),
    ];
    for (message, fields, reason) in cases {
        let dir = tempfile::tempdir().unwrap();
        let sim = Sim::builder(dir.path().join("api.sock")).spawn().unwrap();
        let mut peer = Peer::greeted(sim.socket()).await;
        let request = peer.request(message, 7, &fields);
        peer.send(&request).await;
        assert!(peer.read().await.is_none(), "{message}: the process is dead");
        assert!(sim.death().unwrap().to_string().contains(reason), "{message}");
    }
    let dir = tempfile::tempdir().unwrap();
    let sim = Sim::builder(dir.path().join("api.sock")).spawn().unwrap();
    let mut peer = Peer::greeted(sim.socket()).await;
    assert_eq!(peer.retval("cnat_set_snat_addresses_v2", &addresses(0)).await, 0);
    assert_eq!(peer.retval("cnat_snat_policy_add_del_exclude_pfx", prefix).await, 0);
    assert_eq!(peer.retval("cnat_set_snat_policy", &[2]).await, 0);
    let snat = &sim.meaning()["snat"];
    assert_eq!((&snat["ip4"], &snat["excluded"][0]), (&"192.0.2.1".into(), &"10.0.0.0/8".into()));
}
