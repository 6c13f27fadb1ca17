//! Base64 (RFC 4648 section 4), one way: octets out of messages into JSON.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of these octets, padded.
pub(crate) fn base64(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len().div_ceil(3) * 4);
    for group in octets.chunks(3) {
        let at = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let six = (bits >> (18 - 6 * place) & 63) as usize;
            text.push(if place > group.len() { '=' } else { char::from(ALPHABET[six]) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_the_rfc() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (octets, text) in cases {
            assert_eq!(base64(octets.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xfb]), "//s=");
    }
}
