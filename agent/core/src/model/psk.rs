//! A key that two nodes share, by which they believe each other (IKEv2, RFC 7296 section 2.15).
//!
//! It can be compared, cloned and put into a request. It can't be printed: `Debug` writes the same word for every key, and
//! there is no `Display` and no serialisation. All clones share one place in memory, which is overwritten when the last of
//! them goes.

use std::fmt;
use std::sync::Arc;

use bgp_core::secret::wipe;

/// A pre-shared key: at least one octet. See the module's text.
#[derive(Clone, PartialEq, Eq)]
pub struct Psk(Arc<Octets>);

#[derive(PartialEq, Eq)]
struct Octets(Vec<u8>);

impl Drop for Octets {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl Psk {
    /// The key that these octets are; `None` where there are none, which VPP refuses.
    #[must_use]
    pub fn new(octets: Vec<u8>) -> Option<Self> {
        (!octets.is_empty()).then(|| Self(Arc::new(Octets(octets))))
    }

    /// The octets, for a request and nothing else.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0.0
    }
}

impl fmt::Debug for Psk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Psk(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_compared_and_never_printed() {
        let key = Psk::new(b"swordfish".to_vec()).unwrap();
        assert_eq!(Some(key.clone()), Psk::new(b"swordfish".to_vec()));
        assert_ne!(Some(key.clone()), Psk::new(b"trout".to_vec()));
        assert_eq!(format!("{:?}", Some(&key)), "Some(Psk(secret))");
        assert_eq!(key.expose(), b"swordfish");
        assert_eq!(Psk::new(Vec::new()), None);
    }
}
