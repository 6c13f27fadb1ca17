//! OPEN and its optional parameters (RFC 4271 section 4.2, 6.2; RFC 5492; RFC 9072).
//!
//! Checks what every session must refuse. Whether this peer is the expected one is the session's question.

use bytes::{BufMut, BytesMut};

use crate::{
    asn::Asn,
    capability::{Capability, Role},
    error::{Fault, WireError},
    frame::{HEADER_LEN, MAX_LEN, MessageType, put_header},
    router_id::RouterId,
};

const VERSION: u8 = 4;
const PARAMETER_CAPABILITIES: u8 = 2;
/// Both the length and the type that announce the two-octet lengths of RFC 9072.
const EXTENDED: u8 = 255;

/// An OPEN, sent or received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Protocol version: 4.
    pub version: u8,
    /// The two-octet AS field. [`Open::asn`] is the sender's AS number.
    pub my_as: u16,
    /// Proposed hold time in seconds: 0, or at least 3.
    pub hold_time: u16,
    /// The sender's identifier, not zero.
    pub router_id: RouterId,
    /// The capabilities, in the order in which they stand.
    pub capabilities: Vec<Capability>,
}

/// The capabilities of an OPEN do not fit into it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("capabilities do not fit into an OPEN")]
pub struct OpenTooLong;

impl Open {
    /// An OPEN of version 4. A speaker whose AS number needs four octets must add
    /// [`Capability::FourOctetAs`].
    #[must_use]
    pub fn new(asn: Asn, hold_time: u16, router_id: RouterId, capabilities: Vec<Capability>) -> Self {
        Self { version: VERSION, my_as: asn.to_2octet(), hold_time, router_id, capabilities }
    }

    /// The sender's AS number: that of the 4-octet capability where there is one (RFC 6793 section 4.1).
    #[must_use]
    pub fn asn(&self) -> Asn {
        self.four_octet_as().unwrap_or(Asn(u32::from(self.my_as)))
    }

    /// Whether the sender speaks 4-octet AS numbers.
    #[must_use]
    pub fn has_four_octet(&self) -> bool {
        self.four_octet_as().is_some()
    }

    fn four_octet_as(&self) -> Option<Asn> {
        self.capabilities.iter().find_map(|capability| {
            if let Capability::FourOctetAs(asn) = capability { Some(*asn) } else { None }
        })
    }

    /// What the sender is to the receiver, where it says so (RFC 9234). Of several the first one; whether they
    /// fit, [`Role::agree`] says.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        self.capabilities
            .iter()
            .find_map(|capability| if let Capability::Role(role) = capability { Some(*role) } else { None })
    }

    /// Reads the body of an OPEN: everything behind the header.
    ///
    /// # Errors
    /// Another version (2/1), AS 0 (2/2), identifier 0 (2/3), a hold time of 1 or 2 s (2/6), an optional
    /// parameter that is not capabilities (2/4), lengths that contradict one another (2/0), a body of fewer
    /// than ten octets (1/2).
    pub fn parse(body: &[u8]) -> Result<Self, WireError> {
        let Some((&[version, as_high, as_low, hold_high, hold_low, a, b, c, d, length], parameters)) =
            body.split_first_chunk::<10>()
        else {
            return Err(WireError::length(Fault::MessageLength(MessageType::Open), HEADER_LEN + body.len()));
        };
        if version != VERSION {
            return Err(WireError::new(Fault::OpenVersion(version), &[0, VERSION]));
        }
        let open = Self {
            version,
            my_as: u16::from_be_bytes([as_high, as_low]),
            hold_time: u16::from_be_bytes([hold_high, hold_low]),
            router_id: RouterId::from([a, b, c, d]),
            capabilities: parse_parameters(length, parameters)?,
        };
        if open.my_as == 0 || open.asn() == Asn::ZERO {
            return Err(WireError::new(Fault::OpenAsZero, &[]));
        }
        if open.router_id == RouterId(0) {
            return Err(WireError::new(Fault::OpenRouterId, &[]));
        }
        if matches!(open.hold_time, 1 | 2) {
            return Err(WireError::new(Fault::OpenHoldTime(open.hold_time), &[]));
        }
        Ok(open)
    }

    /// Appends the whole message. All capabilities stand in one optional parameter; where they need more than
    /// 253 octets, lengths are those of RFC 9072.
    ///
    /// # Errors
    /// A capability of more than 255 octets, or a message of more than 4096: nothing is appended.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), OpenTooLong> {
        let mut capabilities = BytesMut::new();
        for capability in &self.capabilities {
            capability.encode(&mut capabilities).map_err(|_| OpenTooLong)?;
        }
        // Parameter type and length, in their two forms, and what stands before the first parameter.
        let (head, before) = if capabilities.is_empty() {
            (0, 0)
        } else if capabilities.len() <= 253 {
            (2, 0)
        } else {
            (3, 3)
        };
        let parameters = head + capabilities.len();
        let body = 10 + before + parameters;
        if HEADER_LEN + body > MAX_LEN {
            return Err(OpenTooLong);
        }
        put_header(out, MessageType::Open, body);
        out.put_u8(self.version);
        out.put_u16(self.my_as);
        out.put_u16(self.hold_time);
        out.put_slice(&self.router_id.octets());
        match head {
            3 => {
                out.put_slice(&[EXTENDED, EXTENDED]);
                out.put_u16(parameters as u16);
                out.put_u8(PARAMETER_CAPABILITIES);
                out.put_u16(capabilities.len() as u16);
            }
            2 => out.put_slice(&[parameters as u8, PARAMETER_CAPABILITIES, capabilities.len() as u8]),
            _ => out.put_u8(0),
        }
        out.put_slice(&capabilities);
        Ok(())
    }
}

fn truncated() -> WireError {
    WireError::new(Fault::OpenParameters, &[])
}

fn parse_parameters(length: u8, octets: &[u8]) -> Result<Vec<Capability>, WireError> {
    let extended = length != 0 && octets.first() == Some(&EXTENDED);
    let (length, mut rest) = if extended {
        let Some((&[_, high, low], rest)) = octets.split_first_chunk::<3>() else { return Err(truncated()) };
        (usize::from(u16::from_be_bytes([high, low])), rest)
    } else {
        (usize::from(length), octets)
    };
    if rest.len() != length {
        return Err(truncated());
    }
    let mut capabilities = Vec::new();
    while !rest.is_empty() {
        let (code, value, after) = split_parameter(rest, extended).ok_or_else(truncated)?;
        if code != PARAMETER_CAPABILITIES {
            return Err(WireError::new(Fault::OpenParameter(code), &[]));
        }
        capabilities.extend(Capability::parse_all(value).ok_or_else(truncated)?);
        rest = after;
    }
    Ok(capabilities)
}

fn split_parameter(octets: &[u8], extended: bool) -> Option<(u8, &[u8], &[u8])> {
    let (code, length, rest) = if extended {
        let (&[code, high, low], rest) = octets.split_first_chunk::<3>()?;
        (code, usize::from(u16::from_be_bytes([high, low])), rest)
    } else {
        let (&[code, length], rest) = octets.split_first_chunk::<2>()?;
        (code, usize::from(length), rest)
    };
    let (value, after) = rest.split_at_checked(length)?;
    Some((code, value, after))
}

#[cfg(test)]
mod tests;
