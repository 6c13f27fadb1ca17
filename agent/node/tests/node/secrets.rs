//! A password shows nowhere: not in the log at its most talkative, not in an answer, an error or a check.

use rustix::process::Signal;

use crate::lab::{Lab, run, until};

/// What must not be seen.
const KEY: &str = "correct-horse-battery-staple";
const OTHER_KEY: &str = "another-horse-and-its-staple";
/// As base64 has it, with a slash.
const BASE64_KEY: &str = "c2xhc2hlZC/ob3JzZSBhbmQgc3RhcGxl";
/// Longer than a key may be.
const LONG_KEY: &str =
    "an-endless-horse-whose-battery-is-stapled-again-and-again-until-it-fits-into-no-key-of-any-kernel";

/// As text, as octets in base 10 and 16, and in base64 (its middle, whatever the alignment).
fn shows(text: &str, key: &str) -> bool {
    let hex: String = key.bytes().map(|octet| format!("{octet:02x}")).collect();
    let decimal: Vec<String> = key.bytes().take(6).map(|octet| octet.to_string()).collect();
    text.contains(key)
        || text.contains(&key[4..20])
        || text.to_lowercase().contains(&hex[..24])
        || text.contains(&decimal.join(", "))
        || text.contains("Y29ycmVjdC1ob3Jz")
}

#[tokio::test]
async fn a_password_shows_nowhere() {
    let lab = Lab::new();
    let path = |name: &str| lab.path(name).display().to_string();
    for (name, key) in [("key", KEY), ("other", OTHER_KEY), ("long", LONG_KEY)] {
        lab.write(name, &format!("{key}\n"));
    }
    let file = |first: &str| {
        lab.speaker_file(
            &format!(
                "  - {{ address: 127.77.0.7, asn: 65007, md5-password-file: {first}, connect-retry: 1 }}\n  \
                 - {{ prefix: 127.77.8.0/24, asn: external, md5-password-file: {} }}\n  \
                 - {{ address: 127.77.0.9, asn: 65009, md5-password-file: {} }}\n",
                path("other"),
                path("long")
            ),
            &["203.0.113.0/24"],
        )
    };
    lab.write("speaker.yaml", &file(&path("key")));
    let speaker = lab.speaker_at("trace").await;
    let mut seen = String::new();
    let protected = || async {
        let peers = lab.try_ask("speaker.sock", &["peers"]).await?;
        let peer =
            peers.as_array().unwrap().iter().find(|peer| peer["peer-address"] == "127.77.0.7").cloned();
        let peer = peer.ok_or_else(|| peers.to_string())?;
        if peer["tcp-password-enabled"] == true { Ok(peer) } else { Err(peer.to_string()) }
    };
    // Nobody answers there, and the failure says so.
    let peer = until("an attempt that failed", || async {
        let peer = protected().await?;
        if peer["last-error"].is_string() { Ok(peer) } else { Err(peer.to_string()) }
    })
    .await;
    seen += &peer.to_string();

    // Another key; then one that can't be read, one that isn't any, and a key where its file should be: the old one stays,
    // and the mistake is told.
    lab.write("key", &format!("{OTHER_KEY}\n"));
    speaker.signal(Signal::HUP);
    until("the new key is read", || async {
        let log = speaker.log();
        if log.contains("configuration read again") { Ok(()) } else { Err(log) }
    })
    .await;
    for (wrong, reason) in [
        (path("nowhere"), "No such file"),
        (path("manifests"), "Is a directory"),
        (KEY.to_owned(), "No such file"),
        (path("long"), "at most 80 fit"),
        (BASE64_KEY.to_owned(), "No such file"),
    ] {
        lab.write("speaker.yaml", &file(&wrong));
        speaker.signal(Signal::HUP);
        let peer = until(reason, || async {
            let peer = protected().await?;
            let error = peer["configuration-error"].as_str().unwrap_or_default();
            let told = error.contains("older settings are in force")
                && error.contains(reason)
                && error.contains("neighbors[1].md5-password-file")
                && (error.contains(&*wrong) || [KEY, BASE64_KEY].contains(&&*wrong));
            if told { Ok(peer) } else { Err(peer.to_string()) }
        })
        .await;
        seen += &peer.to_string();
        let config = path("speaker.yaml");
        let check = run(&["check", &config]).await;
        assert_eq!(check.status.code(), Some(1));
        seen += &String::from_utf8([check.stdout, check.stderr].concat()).unwrap();
        seen += &lab.show("speaker.sock", &["peers"]).await;
        seen += &lab.ask("speaker.sock", &["peers"]).await.to_string();
        seen += &lab.ask("speaker.sock", &["routes"]).await.to_string();
    }
    // A file that isn't one at all.
    lab.write("speaker.yaml", &format!("{}\nneighbors: [\n", file(&path("key"))));
    speaker.signal(Signal::HUP);
    until("the mistake is logged", || async {
        let log = speaker.log();
        if log.contains("configuration in force stays") { Ok(()) } else { Err(log) }
    })
    .await;
    lab.write("speaker.yaml", &file(&path("key")));
    speaker.signal(Signal::HUP);
    until("all is well again", || async {
        let peer = protected().await?;
        if peer.get("configuration-error").is_none() { Ok(()) } else { Err(peer.to_string()) }
    })
    .await;
    speaker.signal(Signal::TERM);
    until("the last words", || async {
        let log = speaker.log();
        if log.contains("stopping") { Ok(()) } else { Err(log) }
    })
    .await;
    seen += &speaker.log();
    assert!(seen.contains("TRACE") || seen.contains("DEBUG"), "the log is talkative");
    for key in [KEY, OTHER_KEY, LONG_KEY, BASE64_KEY] {
        assert!(!shows(&seen, key), "{seen}");
    }
}
