//! The file in which VPP's manager says what it has given VPP: of it, the interfaces that lead to the host.
//!
//! The manager writes it anew each time it starts VPP: what it says is true of that VPP only, and only once it says
//! `ready`. It is looked at once a second, as it is small and lies in memory.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_core::event::{HostTaps, SwIfIndex};
use serde_json::Value;

/// Looked at this often.
const LOOK: Duration = Duration::from_secs(1);
/// A larger one is something else.
const MAX_FILE: u64 = 1 << 20;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct InfoFile {
    path: PathBuf,
    /// Which file it was when it was last read, and when that was last written.
    read: Option<Identity>,
    told: HostTaps,
}

/// Inode, size, time of the last change.
type Identity = (u64, u64, i64, i64);

impl InfoFile {
    /// The file need not exist yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), read: None, told: HostTaps::default() }
    }

    /// Wait until it says something else than it did. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> HostTaps {
        loop {
            if let Some(taps) = self.look() {
                return taps;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn look(&mut self) -> Option<HostTaps> {
        let meta = std::fs::metadata(&self.path).ok();
        let found = meta.map(|meta| (meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()));
        if found == self.read {
            return None;
        }
        self.read = found;
        let text =
            found.filter(|(_, size, ..)| *size <= MAX_FILE).and_then(|_| std::fs::read(&self.path).ok());
        let taps = text.map(|text| host_taps(&text)).unwrap_or_default();
        (taps != self.told).then(|| {
            self.told.clone_from(&taps);
            taps
        })
    }
}

/// The interfaces that lead to the host; none where the text is not that of a VPP that is ready.
fn host_taps(text: &[u8]) -> HostTaps {
    let Ok(info) = serde_json::from_slice::<Value>(text) else { return HostTaps::default() };
    if info.get("Status").and_then(Value::as_str) != Some("ready") {
        return HostTaps::default();
    }
    let uplinks = info.get("UplinkStatuses").and_then(Value::as_object);
    let tap = |uplink: &Value| u32::try_from(uplink.get("TapSwIfIndex")?.as_u64()?).ok();
    let taps = uplinks.into_iter().flat_map(|all| all.values()).filter_map(tap);
    // local0 is nobody's, and all ones is none.
    HostTaps(taps.filter(|index| *index != 0 && *index != u32::MAX).map(SwIfIndex).collect::<BTreeSet<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &str = r#"{"Status":"ready","UplinkStatuses":{
        "eth0":{"SwIfIndex":1,"TapSwIfIndex":2,"Name":"eth0","IsMain":true,"Mtu":1500},
        "eth1":{"SwIfIndex":3,"TapSwIfIndex":4},
        "eth2":{"SwIfIndex":5,"TapSwIfIndex":4294967295},"eth3":null}, "PhysicalNets":{}}"#;

    fn taps(indices: &[u32]) -> HostTaps {
        HostTaps(indices.iter().copied().map(SwIfIndex).collect())
    }

    #[test]
    fn only_a_vpp_that_is_ready_has_interfaces() {
        assert_eq!(host_taps(READY.as_bytes()), taps(&[2, 4]));
        assert_eq!(host_taps(READY.replace("ready", "starting").as_bytes()), taps(&[]));
        for nonsense in
            ["", "[1]", "{\"Status\":\"ready\"}", "{\"Status\":\"ready\",\"UplinkStatuses\":[]}", "{"]
        {
            assert_eq!(host_taps(nonsense.as_bytes()), taps(&[]), "{nonsense}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_file_may_come_change_and_go() {
        let path = std::env::temp_dir().join(format!("peregrine-info-{}", std::process::id()));
        let mut file = InfoFile::new(&path);
        assert_eq!(file.look(), None);
        std::fs::write(&path, READY).unwrap();
        assert_eq!(file.next().await, taps(&[2, 4]));
        assert_eq!(file.look(), None, "it is read once");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.next().await, taps(&[]));
    }
}
