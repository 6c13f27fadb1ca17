//! ROUTE-REFRESH (RFC 2918) with the markers of enhanced route refresh (RFC 7313).

use bytes::{BufMut, BytesMut};

use crate::{
    error::{Fault, WireError},
    family::Family,
    frame::{Frame, MessageType, put_header},
};

/// A ROUTE-REFRESH message. The family stays a raw pair: one that was not agreed is ignored, not refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteRefresh {
    /// Address Family Identifier.
    pub afi: u16,
    /// Subsequent Address Family Identifier.
    pub safi: u8,
    /// Message subtype: [`RouteRefresh::REQUEST`], [`RouteRefresh::BEGIN`], [`RouteRefresh::END`]; a receiver
    /// ignores others.
    pub subtype: u8,
}

impl RouteRefresh {
    /// Subtype 0: send me your routes again.
    pub const REQUEST: u8 = 0;
    /// Subtype 1: I am about to send all my routes again.
    pub const BEGIN: u8 = 1;
    /// Subtype 2: I have sent them all.
    pub const END: u8 = 2;

    /// A message for a family that we speak.
    #[must_use]
    pub const fn new(family: Family, subtype: u8) -> Self {
        Self { afi: family.afi(), safi: family.safi(), subtype }
    }

    /// The family, if it is one that we speak.
    #[must_use]
    pub const fn family(&self) -> Option<Family> {
        Family::from_afi_safi(self.afi, self.safi)
    }

    /// Reads a whole message. What follows the four octets of a request is an outbound route filter (RFC
    /// 5291), which we never agree to, and is ignored.
    ///
    /// # Errors
    /// A begin or end marker that is not exactly four octets long (7/1 with the whole message, RFC 7313
    /// section 5); a body shorter than that (1/2).
    pub fn parse(frame: Frame<'_>) -> Result<Self, WireError> {
        let &[afi_high, afi_low, subtype, safi, ref rest @ ..] = frame.body else {
            return Err(WireError::length(Fault::MessageLength(MessageType::RouteRefresh), frame.raw.len()));
        };
        if matches!(subtype, Self::BEGIN | Self::END) && !rest.is_empty() {
            return Err(WireError::new(Fault::RefreshLength, frame.raw));
        }
        Ok(Self { afi: u16::from_be_bytes([afi_high, afi_low]), safi, subtype })
    }

    /// Appends the whole message.
    pub fn encode(&self, out: &mut BytesMut) {
        put_header(out, MessageType::RouteRefresh, 4);
        out.put_u16(self.afi);
        out.put_u8(self.subtype);
        out.put_u8(self.safi);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{frame::split_message, notification::Reason};

    fn parse(raw: &[u8]) -> Result<RouteRefresh, WireError> {
        RouteRefresh::parse(split_message(raw, 4096).unwrap().unwrap())
    }

    #[test]
    fn goes_there_and_back() {
        for subtype in [RouteRefresh::REQUEST, RouteRefresh::BEGIN, RouteRefresh::END, 200] {
            let sent = RouteRefresh::new(Family::Ipv6Unicast, subtype);
            let mut out = BytesMut::new();
            sent.encode(&mut out);
            assert_eq!(parse(&out), Ok(sent));
            assert_eq!(sent.family(), Some(Family::Ipv6Unicast));
        }
        assert_eq!(RouteRefresh { afi: 25, safi: 70, subtype: 0 }.family(), None);
    }

    #[test]
    fn only_a_request_may_be_longer() {
        let mut out = BytesMut::new();
        put_header(&mut out, MessageType::RouteRefresh, 5);
        out.put_slice(&[0, 1, RouteRefresh::BEGIN, 1, 9]);
        let error = parse(&out).unwrap_err().notification;
        assert_eq!((error.reason(), &*error.data), (Some(Reason::RefreshLength), &out[..]));
        out[HEADER] = RouteRefresh::REQUEST;
        assert_eq!(parse(&out), Ok(RouteRefresh::new(Family::Ipv4Unicast, 0)));
    }

    const HEADER: usize = crate::frame::HEADER_LEN + 2;
}
