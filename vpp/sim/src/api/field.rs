//! Fields at offsets of a payload that may be too short, and fields of answers.

use vpp_wire::types::FixedString;
use zerocopy::FromBytes;

use crate::state::key::Af;

/// A number that means none.
pub(crate) const NONE: u32 = u32::MAX;

/// A big-endian number at an offset.
pub(crate) fn u32_at(payload: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*payload.get(at..)?.first_chunk()?))
}

/// A big-endian number at an offset.
pub(crate) fn u16_at(payload: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*payload.get(at..)?.first_chunk()?))
}

/// A byte at an offset.
pub(crate) fn u8_at(payload: &[u8], at: usize) -> Option<u8> {
    payload.get(at).copied()
}

/// N bytes at an offset.
pub(crate) fn bytes_at<const N: usize>(payload: &[u8], at: usize) -> Option<&[u8; N]> {
    payload.get(at..)?.first_chunk()
}

/// An address at an offset: family and 16 bytes. Any family but IPv6's counts as IPv4.
pub(crate) fn address_at(payload: &[u8], at: usize) -> Option<(Af, [u8; 16])> {
    let af = Af::of_flag(u8_at(payload, at)? == 1);
    let mut addr = *bytes_at::<16>(payload, at + 1)?;
    if af == Af::Ip4 {
        addr[4..].fill(0);
    }
    Some((af, addr))
}

/// An address and a prefix length at an offset.
pub(crate) fn prefix_at(payload: &[u8], at: usize) -> Option<(Af, [u8; 16], u8)> {
    let (af, addr) = address_at(payload, at)?;
    Some((af, addr, u8_at(payload, at + 17)?))
}

/// Appends an address as it stands on the wire.
pub(crate) fn push_address(out: &mut Vec<u8>, af: Af, addr: [u8; 16]) {
    out.push(match af {
        Af::Ip4 => 0,
        Af::Ip6 => 1,
    });
    out.extend_from_slice(&addr);
}

/// The text in a fixed field: up to its NUL, and never all of the field.
pub(crate) fn text(field: &[u8]) -> &[u8] {
    let most = field.get(..field.len().saturating_sub(1)).unwrap_or(&[]);
    most.split(|byte| *byte == 0).next().unwrap_or(&[])
}

/// Appends a text as a fixed field of `N` bytes.
pub(crate) fn push_text<const N: usize>(out: &mut Vec<u8>, text: &[u8]) {
    let mut field = [0; N];
    for (place, byte) in field.iter_mut().take(N - 1).zip(text) {
        *place = *byte;
    }
    out.extend_from_slice(&field);
}

/// A text as a fixed field of 64 bytes.
pub(crate) fn fixed(text: &[u8]) -> FixedString<64> {
    let mut field = Vec::with_capacity(64);
    push_text::<64>(&mut field, text);
    FixedString::read_from_bytes(&field).unwrap_or(FixedString::EMPTY)
}
