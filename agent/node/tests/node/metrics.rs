//! `/metrics`: the agent's view of VPP, and VPP's own counters while there are any.

use std::path::Path;

use crate::lab::{Lab, fetch, free_port, until};
use crate::made::{Made, serve, usual};

/// The value of a sample; `None` where it is not there.
fn sample<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

/// Waits until `/metrics` has all of these samples.
async fn scraped(port: u16, wanted: &[(&str, &str)]) -> String {
    until(&format!("/metrics has {wanted:?}"), || async {
        let (line, text) = fetch(port, "/metrics").await.map_err(|error| error.to_string())?;
        let missing = wanted.iter().any(|(name, value)| sample(&text, name) != Some(value));
        if line != "HTTP/1.1 200 OK" || missing { Err(format!("{line}\n{text}")) } else { Ok(text) }
    })
    .await
}

/// An agent's folder with a port for metrics.
fn lab() -> (Lab, u16) {
    let (lab, port) = (Lab::new(), free_port());
    let settings = std::fs::read_to_string(lab.path("agent.yaml")).unwrap();
    let stats = format!("info-file: none, stats: {}", lab.path("stats.sock").display());
    let settings = settings.replace("info-file: none", &stats);
    lab.write("agent.yaml", &format!("{settings}metrics: \"127.0.0.1:{port}\"\n"));
    (lab, port)
}

/// VPP's part in handing out counters, once; the socket is gone afterwards.
fn hand_out(path: &Path, made: Made) -> std::thread::JoinHandle<()> {
    let _ = std::fs::remove_file(path);
    serve(path, Some(made.file()))
}

#[tokio::test]
async fn counters_of_vpp_are_served_under_their_names_while_there_are_any() {
    let (lab, port) = lab();
    let sim = lab.sim();
    let _agent = lab.agent().await;

    // No statistics socket: everything else is served.
    let text = scraped(port, &[("vpp_up", "1"), ("vpp_stats_up", "0"), ("agent_ready", "1")]).await;
    assert!(!text.contains("cni_projectcalico_vpp_"), "{text}");
    assert_eq!(sample(&text, "vpp_generation"), Some("1"));
    assert!(text.contains("vpp_objects{kind=\"route\",state=\"wanted\"}"), "{text}");

    let vpp = hand_out(&lab.path("stats.sock"), usual());
    const RX: &str = "cni_projectcalico_vpp_rx_packets{vppInterfaceName=\"host-eth0\"}";
    let text = scraped(port, &[("vpp_stats_up", "1"), (RX, "5")]).await;
    vpp.join().unwrap();
    for (name, value) in [
        ("cni_projectcalico_vpp_rx_bytes{vppInterfaceName=\"host-eth0\"}", "500"),
        ("cni_projectcalico_vpp_rx_error{vppInterfaceName=\"local0\"}", "4"),
        ("cni_projectcalico_vpp_err_ip4_input_bad_checksum", "10"),
    ] {
        assert_eq!(sample(&text, name), Some(value), "{text}");
    }
    assert_eq!(text.matches("# TYPE cni_projectcalico_vpp_rx_packets counter").count(), 1, "{text}");

    // A VPP that is gone has no counters, and the next one has others.
    sim.control().down().await;
    let text = scraped(port, &[("vpp_up", "0"), ("vpp_stats_up", "0")]).await;
    assert!(!text.contains("cni_projectcalico_vpp_"), "{text}");
    let mut other = Made::new();
    let names = [other.text("local0")];
    let names = other.words(&names, 1);
    let rx = [other.words(&[7, 8], 2)];
    let rx = other.words(&rx, 1);
    other.entries = vec![(4, names, "/if/names"), (3, rx, "/if/rx")];
    let vpp = hand_out(&lab.path("stats.sock"), other);
    sim.control().up().await;
    const LOCAL: &str = "cni_projectcalico_vpp_rx_packets{vppInterfaceName=\"local0\"}";
    let text = scraped(port, &[("vpp_up", "1"), (LOCAL, "7")]).await;
    vpp.join().unwrap();
    assert_eq!(sample(&text, RX), None, "{text}");

    let (line, _) = fetch(port, "/other").await.unwrap();
    assert!(line.contains("404"), "{line}");
}
