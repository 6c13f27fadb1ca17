//! This node's keys for WireGuard: made once, kept in the folder of state, one for each IP version. Other nodes know this one
//! by them, so they outlive every restart of the agent and of VPP.
//!
//! A file has the private key as the `wg` tools write it, and is its owner's alone. Whoever takes a file away has a new key made
//! at the next start.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use agent_core::model::{KeyPair, PerFamily, PublicKey};
use bgp_core::secret::{Secret, wipe};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
enum KeyError {
    /// A file can't be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// A file holds something else.
    #[error("{0} holds no private key; take it away to have a new one made")]
    NoKey(PathBuf),
}

/// Read the keys of the folder of state, and make those that are missing. What can't be had is logged.
pub(crate) fn load_or_make(state: &Path) -> PerFamily<Option<KeyPair>> {
    let key = |name| match of_file(&state.join(name)) {
        Ok(key) => Some(key),
        Err(error) => {
            tracing::error!(%error, "no key for wireguard, which can't be used therefore");
            None
        }
    };
    PerFamily { v4: key("wireguard.key"), v6: key("wireguard-v6.key") }
}

fn of_file(path: &Path) -> Result<KeyPair, KeyError> {
    let failed = |error| KeyError::File(path.to_owned(), error);
    if let Some(private) = read(path).map_err(failed)? {
        let text = std::str::from_utf8(private.expose()).ok();
        let private = text.and_then(KeyPair::parse_private);
        return private.and_then(pair).ok_or_else(|| KeyError::NoKey(path.to_owned()));
    }
    let keys = make().map_err(failed)?;
    write(path, &keys).map_err(failed)?;
    tracing::info!(file = %path.display(), public = %keys.public(), "a wireguard key was made");
    Ok(keys)
}

/// The content of a file; `None` where there is no file.
fn read(path: &Path) -> io::Result<Option<Secret>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if file.metadata()?.mode() & 0o077 != 0 {
        tracing::warn!(file = %path.display(), "others could read this private key; they can't any more");
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    let mut content = Vec::with_capacity(Secret::MAX_LEN);
    Read::by_ref(&mut file).take(Secret::MAX_LEN as u64 + 1).read_to_end(&mut content)?;
    // What is empty or too long is no key, and is said to be none by whoever looks at it.
    Ok(Some(
        Secret::from_file_content(content)
            .or_else(|_| Secret::new(b"-".to_vec()))
            .map_err(io::Error::other)?,
    ))
}

/// In one go: no crash leaves half a key.
fn write(path: &Path, keys: &KeyPair) -> io::Result<()> {
    let new = path.with_extension("new");
    // Left by a crash.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(keys.private_text().expose())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::rename(&new, path)
}

fn make() -> io::Result<KeyPair> {
    let mut octets = [0; PublicKey::LEN];
    File::open("/dev/urandom")?.read_exact(&mut octets)?;
    // As every key of the curve is made (RFC 7748 section 5).
    octets[0] &= 248;
    octets[31] = octets[31] & 127 | 64;
    let private = Secret::new(octets.to_vec());
    wipe(&mut octets);
    private.ok().and_then(pair).ok_or_else(|| io::Error::other("a key of the wrong length"))
}

/// A private key with the public one that goes with it; `None` where it has the wrong length.
fn pair(private: Secret) -> Option<KeyPair> {
    let mut octets: [u8; PublicKey::LEN] = private.expose().try_into().ok()?;
    let public = PublicKey(x25519(octets, X25519_BASEPOINT_BYTES));
    wipe(&mut octets);
    KeyPair::new(private, public)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_made_once_and_are_their_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let made = load_or_make(dir.path());
        assert_ne!(made.v4.as_ref().unwrap().public(), made.v6.as_ref().unwrap().public());
        assert_eq!(load_or_make(dir.path()), made);
        for name in ["wireguard.key", "wireguard-v6.key"] {
            let path = dir.path().join(name);
            assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
            std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        }
        assert_eq!(load_or_make(dir.path()), made);
        assert_eq!(std::fs::metadata(dir.path().join("wireguard.key")).unwrap().mode() & 0o777, 0o600);
        std::fs::remove_file(dir.path().join("wireguard.key")).unwrap();
        let again = load_or_make(dir.path());
        assert_ne!(again.v4, made.v4);
        assert_eq!(again.v6, made.v6);
    }

    #[test]
    fn the_public_key_is_that_of_the_rfc() {
        // RFC 7748 section 6.1: Alice's keys.
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("wireguard.key"), "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=\n")
            .unwrap();
        let alice = load_or_make(dir.path()).v4.unwrap();
        assert_eq!(alice.public().to_string(), "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=");
    }

    #[test]
    fn what_is_no_key_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wireguard.key");
        for content in ["", "hunter2\n", &"x".repeat(500)] {
            std::fs::write(&path, content).unwrap();
            assert!(load_or_make(dir.path()).v4.is_none(), "{content}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(load_or_make(Path::new("/dev/null/x")), PerFamily::default());
    }
}
