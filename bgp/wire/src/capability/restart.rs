//! Graceful restart (RFC 4724 section 3, with the N bit of RFC 8538 section 2) and long-lived graceful restart
//! (RFC 9494 section 3.1): what the two capabilities hold. What follows from them is the session's business.

use bytes::{BufMut, BytesMut};

/// The graceful-restart capability of one end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct GracefulRestart {
    /// R: the sender has restarted, and must not be waited for.
    pub restarting: bool,
    /// N: a NOTIFICATION that is no Hard Reset, and an expired hold timer, keep the routes too (RFC 8538).
    pub notification: bool,
    /// How long the sender expects to be away, in seconds: at most [`GracefulRestart::MAX_TIME`].
    pub time: u16,
    /// The families whose forwarding state the sender can keep. None: it only helps others.
    pub families: Vec<GracefulFamily>,
}

/// One family of the graceful-restart capability.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct GracefulFamily {
    /// Address Family Identifier.
    pub afi: u16,
    /// Subsequent Address Family Identifier.
    pub safi: u8,
    /// F: the sender has kept the family's forwarding state over its restart.
    pub forwarding: bool,
}

/// One family of the long-lived graceful-restart capability.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct LongLivedFamily {
    /// Address Family Identifier.
    pub afi: u16,
    /// Subsequent Address Family Identifier.
    pub safi: u8,
    /// F: the sender has kept the family's state over its restart.
    pub forwarding: bool,
    /// How long stale routes may be kept beyond the restart time, in seconds: at most
    /// [`LongLivedFamily::MAX_TIME`].
    pub stale_time: u32,
}

const RESTARTING: u16 = 0x8000;
const NOTIFICATION: u16 = 0x4000;
const FORWARDING: u8 = 0x80;

impl GracefulRestart {
    /// The longest restart time: it has twelve bits.
    pub const MAX_TIME: u16 = 0xfff;

    /// Reads the capability's octets. Reserved bits are ignored.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let (&head, families) = value.split_first_chunk::<2>()?;
        let head = u16::from_be_bytes(head);
        let (families, []) = families.as_chunks::<4>() else { return None };
        Some(Self {
            restarting: head & RESTARTING != 0,
            notification: head & NOTIFICATION != 0,
            time: head & Self::MAX_TIME,
            families: families
                .iter()
                .map(|&[high, low, safi, flags]| GracefulFamily {
                    afi: u16::from_be_bytes([high, low]),
                    safi,
                    forwarding: flags & FORWARDING != 0,
                })
                .collect(),
        })
    }

    /// Appends the capability's octets. A longer time than the field holds becomes the longest.
    pub(super) fn encode(&self, out: &mut BytesMut) {
        let mut head = self.time.min(Self::MAX_TIME);
        if self.restarting {
            head |= RESTARTING;
        }
        if self.notification {
            head |= NOTIFICATION;
        }
        out.put_u16(head);
        for family in &self.families {
            out.put_u16(family.afi);
            out.put_slice(&[family.safi, flags(family.forwarding)]);
        }
    }
}

impl LongLivedFamily {
    /// The longest stale time: it has 24 bits.
    pub const MAX_TIME: u32 = 0xff_ffff;

    pub(super) fn parse_all(value: &[u8]) -> Option<Vec<Self>> {
        let (families, []) = value.as_chunks::<7>() else { return None };
        let one = |&[high, low, safi, flags, a, b, c]: &[u8; 7]| Self {
            afi: u16::from_be_bytes([high, low]),
            safi,
            forwarding: flags & FORWARDING != 0,
            stale_time: u32::from_be_bytes([0, a, b, c]),
        };
        Some(families.iter().map(one).collect())
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let [_, a, b, c] = self.stale_time.min(Self::MAX_TIME).to_be_bytes();
        out.put_u16(self.afi);
        out.put_slice(&[self.safi, flags(self.forwarding), a, b, c]);
    }
}

const fn flags(forwarding: bool) -> u8 {
    if forwarding { FORWARDING } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graceful_restart_octets() {
        let capability = GracefulRestart {
            restarting: true,
            notification: true,
            time: 120,
            families: vec![
                GracefulFamily { afi: 1, safi: 1, forwarding: true },
                GracefulFamily { afi: 2, safi: 1, forwarding: false },
            ],
        };
        let octets = [0xc0, 120, 0, 1, 1, 0x80, 0, 2, 1, 0];
        let mut out = BytesMut::new();
        capability.encode(&mut out);
        assert_eq!(out[..], octets);
        assert_eq!(GracefulRestart::parse(&octets), Some(capability));
        // Reserved bits say nothing.
        let odd = GracefulRestart::parse(&[0x3f, 0xff, 0, 1, 1, 0x7f]).unwrap();
        assert_eq!((odd.restarting, odd.notification, odd.time), (false, false, 4095));
        assert!(!odd.families[0].forwarding);
        // No family: the sender only helps.
        assert_eq!(GracefulRestart::parse(&[0, 0]), Some(GracefulRestart::default()));
        for cut in [0, 1, 3, 5] {
            assert_eq!(GracefulRestart::parse(&octets[..cut]), None, "{cut}");
        }
        out.clear();
        GracefulRestart { time: 5000, ..GracefulRestart::default() }.encode(&mut out);
        assert_eq!(out[..], [0x0f, 0xff]);
    }

    #[test]
    fn long_lived_octets() {
        let octets = [0, 1, 1, 0x80, 1, 0x51, 0x80, 0, 2, 1, 0, 0, 0, 0];
        let families = LongLivedFamily::parse_all(&octets).unwrap();
        assert_eq!((families[0].stale_time, families[0].forwarding), (86_400, true));
        assert_eq!((families[1].afi, families[1].stale_time, families[1].forwarding), (2, 0, false));
        let mut out = BytesMut::new();
        families.iter().for_each(|family| family.encode(&mut out));
        assert_eq!(out[..], octets);
        assert_eq!(LongLivedFamily::parse_all(&[]), Some(vec![]));
        assert_eq!(LongLivedFamily::parse_all(&octets[..8]), None);
        out.clear();
        LongLivedFamily { stale_time: 1 << 24, ..families[0] }.encode(&mut out);
        assert_eq!(out[4..], [0xff; 3]);
    }
}
