//! Keys of WireGuard: Curve25519 points, written in base64 as everybody writes them.
//!
//! *Absent on purpose:* making keys, and the arithmetic that gives a private key's public one; the embedder does both.

use std::fmt;

use bgp_core::secret::{Secret, wipe};

/// A public key.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; Self::LEN]);

impl PublicKey {
    /// Octets of a key.
    pub const LEN: usize = 32;

    /// Reads base64 as annotations hold it; `None` where it isn't exactly 32 octets in canonical form, or names no key at all
    /// (all zero).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        decode(text).filter(|key| *key != [0; Self::LEN]).map(Self)
    }
}

impl PublicKey {
    /// What tells it from any other key in a name.
    #[must_use]
    pub fn id(&self) -> KeyId {
        let mut id = KeyId::default();
        for (place, octet) in id.0.iter_mut().zip(self.0) {
            *place = octet;
        }
        id
    }
}

/// The first octets of a public key, as many as twelve characters of its text say. Enough to tell keys of one's own apart.
#[derive(Copy, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 9]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        encode(&self.0, f)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        encode(&self.0, f)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        encode(&self.0, f)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        encode(&self.0, f)
    }
}

/// A private key, which can't be printed, with its public one. Equal where the private keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPair {
    /// 32 octets.
    private: Secret,
    /// What others may know.
    public: PublicKey,
}

impl KeyPair {
    /// Joins the two; `None` where the private one doesn't have 32 octets.
    #[must_use]
    pub fn new(private: Secret, public: PublicKey) -> Option<Self> {
        (private.expose().len() == PublicKey::LEN).then_some(Self { private, public })
    }

    /// What others may know.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// Reads a private key as the `wg` tools write it; `None` where it isn't exactly 32 octets.
    #[must_use]
    pub fn parse_private(text: &str) -> Option<Secret> {
        let mut octets = decode(text)?;
        let private = Secret::new(octets.to_vec());
        wipe(&mut octets);
        private.ok()
    }

    /// The private key as the `wg` tools write it, for the one who keeps it.
    #[must_use]
    pub fn private_text(&self) -> Secret {
        let text = text_of(self.private.expose()).into_bytes();
        Secret::new(text).expect("as short as a key is")
    }

    /// The private key, for the one who gives it to VPP.
    #[must_use]
    pub const fn private(&self) -> &Secret {
        &self.private
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters of a key: 43 and one that fills up.
const TEXT_LEN: usize = 44;

fn encode(key: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&text_of(key))
}

fn text_of(key: &[u8]) -> String {
    let mut text = String::with_capacity(TEXT_LEN);
    for group in key.chunks(3) {
        let at = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let six = (bits >> (18 - 6 * place) & 63) as usize;
            text.push(if place > group.len() { '=' } else { char::from(ALPHABET[six]) });
        }
    }
    text
}

fn decode(text: &str) -> Option<[u8; PublicKey::LEN]> {
    let digits = text.strip_suffix('=').filter(|digits| digits.len() == TEXT_LEN - 1)?;
    let mut key = [0; PublicKey::LEN];
    let (mut bits, mut held, mut at) = (0u32, 0u8, 0);
    for digit in digits.bytes() {
        let six = ALPHABET.iter().position(|letter| *letter == digit)? as u32;
        bits = bits << 6 | six;
        held += 6;
        if held >= 8 {
            held -= 8;
            *key.get_mut(at)? = (bits >> held) as u8;
            at += 1;
            bits &= (1 << held) - 1;
        }
    }
    // What is left over says nothing, so that every key has one text.
    (at == key.len() && bits == 0).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_from_their_text() {
        for fill in [1, 0x5a, 0xff] {
            let mut key = PublicKey([fill; 32]);
            key.0[7] = 0;
            assert_eq!(PublicKey::parse(&key.to_string()), Some(key));
        }
        // Of RFC 7748, section 6.1: Alice's public key.
        let alice = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
        let key = PublicKey::parse(alice).unwrap();
        assert_eq!((key.0[0], key.0[31], key.to_string().as_str()), (0x85, 0x6a, alice));
        assert_eq!(key.id().to_string(), alice[..12]);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let zero = PublicKey([0; 32]).to_string();
        let cases = [
            "",
            "=",
            "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo",
            "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTm==",
            "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmp=",
            "hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo=",
            " hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=",
            &zero,
        ];
        for text in cases {
            assert_eq!(PublicKey::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_private_key_has_32_octets_and_is_not_shown() {
        let public = PublicKey([9; 32]);
        let pair = |len| KeyPair::new(Secret::new(vec![b'x'; len]).unwrap(), public);
        assert!(pair(31).is_none() && pair(33).is_none());
        let shown = format!("{:?}", pair(32).unwrap());
        assert!(!shown.contains("xx") && !shown.contains("120"), "{shown}");
        let text = pair(32).unwrap().private_text();
        let read = KeyPair::parse_private(std::str::from_utf8(text.expose()).unwrap()).unwrap();
        assert_eq!(read.expose(), [b'x'; 32]);
    }
}
