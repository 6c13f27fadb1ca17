//! A buffer of received messages on its way into the speaker, piece by piece: a full one can take much longer than a turn
//! should, as a prefix can be a single octet.

use bgp_core::peer_key::ConnId;
use bgp_wire::whole_messages;

use crate::buffer::Buffer;

/// How many octets are passed in between two looks at the clock: a few thousand prefixes, however short they are.
const PIECE: usize = 8 * 1024;

/// The messages of one buffer.
#[derive(Debug)]
pub(crate) struct Reading {
    conn: ConnId,
    buffer: Buffer,
    /// How much of it has been passed in.
    done: usize,
}

impl Reading {
    /// Nothing of it is passed in yet.
    pub(crate) const fn new(conn: ConnId, buffer: Buffer) -> Self {
        Self { conn, buffer, done: 0 }
    }

    /// Where the messages came from.
    pub(crate) const fn conn(&self) -> ConnId {
        self.conn
    }

    /// The next whole messages; nothing at the end. A fault goes in with what comes before it, and nothing follows it.
    pub(crate) fn piece(&mut self) -> &[u8] {
        let rest = self.buffer.filled().get(self.done..).unwrap_or_default();
        let whole = whole_messages(rest.get(..PIECE).unwrap_or(rest), usize::from(u16::MAX));
        let piece = if whole.fault || whole.bytes == 0 { rest } else { &rest[..whole.bytes] };
        self.done += piece.len();
        piece
    }

    /// Whether everything has been passed in.
    pub(crate) fn is_done(&self) -> bool {
        self.done >= self.buffer.filled().len()
    }

    /// The buffer, to be used again.
    pub(crate) fn into_buffer(self) -> Buffer {
        self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Pool;

    fn update(len: u16) -> Vec<u8> {
        let mut message = vec![0xff; 16];
        message.extend(len.to_be_bytes());
        message.push(2);
        message.resize(usize::from(len), 0);
        message
    }

    fn pieces(octets: &[u8]) -> Vec<usize> {
        let mut buffer = Pool::default().take();
        buffer.push(octets);
        let mut reading = Reading::new(ConnId::accepted(1), buffer);
        let (mut pieces, mut all) = (Vec::new(), Vec::new());
        while !reading.is_done() {
            let piece = reading.piece();
            pieces.push(piece.len());
            all.extend_from_slice(piece);
        }
        assert_eq!(all, octets, "every octet once");
        pieces
    }

    #[test]
    fn a_buffer_is_passed_in_by_whole_messages() {
        assert_eq!(pieces(&update(100).repeat(600)), [vec![8100; 7], vec![3300]].concat());
        assert_eq!(pieces(&update(4096).repeat(5)), [8192, 8192, 4096]);
        assert_eq!(pieces(&update(30)), [30]);
        assert_eq!(pieces(&update(20_000).repeat(3)), [60_000], "longer than a piece");
    }

    #[test]
    fn a_fault_ends_the_pieces() {
        let octets = [update(4096).repeat(3), vec![0; 100]].concat();
        assert_eq!(pieces(&octets), [8192, 4196]);
    }
}
