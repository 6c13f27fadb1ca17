//! A value that must not be seen: the key of TCP MD5 signatures (RFC 2385).
//!
//! A [`Secret`] can be compared, cloned and given to a socket. It can't be printed: `Debug` and `Display` write the same
//! word for every secret, and there is no serialisation. All clones share one place in memory, which is overwritten when
//! the last of them goes; that is as much as safe code can promise, since whoever made the octets may have copied them.
//!
//! *Absent on purpose:* a place for secrets that the kernel never swaps or dumps, which is the process's matter (`PR_SET_DUMPABLE`;
//! `SECURITY.md` says what ours does); encryption.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

/// A password. See the [module](self).
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<Octets>);

#[derive(PartialEq, Eq)]
struct Octets(Vec<u8>);

impl Drop for Octets {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Overwrites octets that were a secret.
pub fn wipe(octets: &mut [u8]) {
    octets.fill(0);
    // Nobody looks at the zeroes, so the compiler would leave them out.
    black_box(octets);
}

/// Why octets can't be a secret.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// There is nothing.
    #[error("the password is empty")]
    Empty,
    /// More than a TCP MD5 key holds.
    #[error("the password has {0} octets; at most {max} fit", max = Secret::MAX_LEN)]
    TooLong(usize),
}

impl Secret {
    /// The most octets a key may have: what Linux takes (`TCP_MD5SIG_MAXKEYLEN`).
    pub const MAX_LEN: usize = 80;

    /// Takes octets, which are overwritten if they can't be a secret.
    ///
    /// # Errors
    /// They are none, or more than [`Secret::MAX_LEN`].
    pub fn new(octets: Vec<u8>) -> Result<Self, SecretError> {
        // Its drop overwrites what is refused.
        let octets = Octets(octets);
        match octets.0.len() {
            0 => Err(SecretError::Empty),
            len if len > Self::MAX_LEN => Err(SecretError::TooLong(len)),
            _ => Ok(Self(Arc::new(octets))),
        }
    }

    /// Takes the content of a file: what stands before the line break at its end, if there is one.
    ///
    /// # Errors
    /// As for [`Secret::new`].
    pub fn from_file_content(mut content: Vec<u8>) -> Result<Self, SecretError> {
        while content.last().is_some_and(|octet| matches!(octet, b'\n' | b'\r')) {
            content.pop();
        }
        Self::new(content)
    }

    /// The octets, for the one who signs with them. They must not be kept.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_format_shows_a_secret() {
        let secret = Secret::new(b"hunter2".to_vec()).unwrap();
        let shown = format!("{secret} {secret:?} {secret:#?} {:?} {:?}", Some(&secret), (1, secret.clone()));
        assert!(!shown.contains("hunter2"), "{shown}");
        let mut octets = String::new();
        for octet in b"hunter2" {
            octets.push_str(&format!("{octet}, "));
        }
        assert!(!shown.contains(octets.trim_end_matches(", ")), "{shown}");
        // Its length isn't shown either.
        assert_eq!(format!("{secret:?}"), format!("{:?}", Secret::new(vec![1; 80]).unwrap()));
    }

    #[test]
    fn equal_octets_are_equal_secrets() {
        let secret = |text: &str| Secret::new(text.into()).unwrap();
        assert_eq!(secret("a"), secret("a"));
        assert_ne!(secret("a"), secret("b"));
        assert_eq!(secret("a").expose(), b"a");
    }

    #[test]
    fn lengths_have_bounds_and_line_breaks_at_the_end_do_not_count() {
        assert_eq!(Secret::new(Vec::new()).unwrap_err(), SecretError::Empty);
        assert!(Secret::new(vec![b'x'; 80]).is_ok());
        let error = Secret::new(vec![b'x'; 81]).unwrap_err();
        assert_eq!(error.to_string(), "the password has 81 octets; at most 80 fit");
        let read = |text: &str| Secret::from_file_content(text.into());
        assert_eq!(read("key\n").unwrap().expose(), b"key");
        assert_eq!(read(" key \r\n").unwrap().expose(), b" key ");
        assert_eq!(read("\n"), Err(SecretError::Empty));
    }

    #[test]
    fn wiping_leaves_nothing() {
        let mut octets = *b"hunter2";
        wipe(&mut octets);
        assert_eq!(octets, [0; 7]);
    }
}
