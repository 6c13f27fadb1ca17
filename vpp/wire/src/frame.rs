//! Framing on the Unix stream socket.
//!
//! A frame is a header of 16 bytes, of which only the big-endian payload length at offset 8 means anything,
//! and the payload. VPP writes whatever lies in its memory into the other 12 bytes, so they are never looked
//! at. A length that is not fulfilled makes VPP wait, and swallow all that follows, until it dies: a frame's
//! length is therefore always written by [`push`], after its payload, never given by hand.

use thiserror::Error;

/// Bytes of the header.
pub const HEADER: usize = 16;

/// The largest payload believed. VPP's largest known one, its own API as JSON, has 1.8 MB.
pub const MAX_PAYLOAD: usize = 4 << 20;

const LENGTH_AT: usize = 8;

/// The stream cannot be followed any further; only a new connection helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// A header announces more than [`MAX_PAYLOAD`] bytes.
    #[error("a frame announces {0} bytes, more than any VPP message has")]
    TooLong(usize),
}

/// What stands at the start of a receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut<'a> {
    /// A whole frame: its payload; it took [`HEADER`]` + payload.len()` bytes of the buffer.
    Frame(&'a [u8]),
    /// More bytes are needed: the buffer must grow to at least this many.
    Need(usize),
}

/// Looks for one whole frame at the start of `buffer`.
///
/// # Errors
/// [`FrameError::TooLong`] for a length above [`MAX_PAYLOAD`].
pub fn cut(buffer: &[u8]) -> Result<Cut<'_>, FrameError> {
    let Some((header, rest)) = buffer.split_first_chunk::<HEADER>() else {
        return Ok(Cut::Need(HEADER));
    };
    let length = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
    if length > MAX_PAYLOAD {
        return Err(FrameError::TooLong(length));
    }
    Ok(rest.get(..length).map_or(Cut::Need(HEADER + length), Cut::Frame))
}

/// Appends one frame: `payload` appends its bytes to the buffer it is given, and the length follows from them.
pub fn push(out: &mut Vec<u8>, payload: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    payload(out);
    let length = u32::try_from(out.len() - start - HEADER).expect("no message of ours reaches 4 GiB");
    out[start + LENGTH_AT..start + LENGTH_AT + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_length_above_the_limit_is_refused() {
        let mut header = [0xff; HEADER];
        header[8..12].copy_from_slice(&(MAX_PAYLOAD as u32 + 1).to_be_bytes());
        assert_eq!(cut(&header), Err(FrameError::TooLong(MAX_PAYLOAD + 1)));
    }

    #[test]
    fn the_unused_bytes_do_not_matter() {
        let frame = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 0, 0, 1, 0x99, 0xaa, 0xbb, 0xcc, 7];
        assert_eq!(cut(&frame), Ok(Cut::Frame(&[7])));
    }

    proptest! {
        /// Frames pushed one behind the other come out one by one, and no prefix of a frame is taken for a whole.
        #[test]
        fn pushed_frames_are_cut_again(payloads in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..300), 1..5)) {
            let mut stream = Vec::new();
            for payload in &payloads {
                push(&mut stream, |out| out.extend_from_slice(payload));
            }
            let mut rest = stream.as_slice();
            for payload in &payloads {
                for short in 0..HEADER + payload.len() {
                    let needed = if short < HEADER { HEADER } else { HEADER + payload.len() };
                    prop_assert_eq!(cut(&rest[..short]), Ok(Cut::Need(needed)));
                }
                prop_assert_eq!(cut(rest), Ok(Cut::Frame(payload.as_slice())));
                rest = &rest[HEADER + payload.len()..];
            }
            prop_assert!(rest.is_empty());
        }
    }
}
