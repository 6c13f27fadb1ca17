//! Value types that several kinds share.

use std::net::Ipv4Addr;

use agent_core::model::{AnyCommunity, RoutePriority};
use bgp_core::{Community, LargeCommunity};
use ipnet::IpNet;

use crate::yaml::{Item, Mistake};

/// A reference to one key of a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretKey {
    /// The Secret's name; its namespace is the agent's own.
    pub(crate) name: String,
    /// The key inside its data.
    pub(crate) key: String,
}

/// An AS number: decimal or asdot (`6.10`), as a number or as text. 0 means "unset" to every field that holds one.
pub(crate) fn as_number(item: &Item<'_>) -> Option<u32> {
    item.parse_with("an AS number such as 64512 or 6.10", parse_as_number)
}

/// Parse an AS number, decimal or asdot.
pub(crate) fn parse_as_number(text: &str) -> Option<u32> {
    match text.split_once('.') {
        None => digits(text),
        Some((high, low)) => {
            let high = u16::try_from(digits(high)?).ok()?;
            let low = u16::try_from(digits(low)?).ok()?;
            Some(u32::from(high) << 16 | u32::from(low))
        }
    }
}

/// Digits only: `str::parse` would take a plus sign too.
fn digits(text: &str) -> Option<u32> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// A prefix. Host bits are cleared with a warning, as one misplaced bit must not cost a node its routes.
pub(crate) fn prefix(item: &Item<'_>) -> Option<IpNet> {
    let net: IpNet = item.parse("a prefix such as 10.0.0.0/26 or fd00::/122")?;
    let masked = net.trunc();
    if masked != net {
        item.flaw(Mistake::HostBits { masked });
    }
    Some(masked)
}

/// A router identifier in dotted quad.
pub(crate) fn dotted_quad(item: &Item<'_>) -> Option<Ipv4Addr> {
    item.parse("a dotted quad such as 192.0.2.1")
}

/// A standard or a large community; the number of colons says which. Digits only, without leading zeros.
pub(crate) fn community(item: &Item<'_>) -> Option<AnyCommunity> {
    item.parse_with("a community such as 64512:100 or 64512:1:2", parse_community)
}

/// Parse a standard or a large community.
pub(crate) fn parse_community(text: &str) -> Option<AnyCommunity> {
    let plain = |part: &str| (part == "0" || !part.starts_with('0')).then(|| digits(part)).flatten();
    let mut parts = text.split(':').map(plain);
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(high), Some(low), None, None) => {
            let (high, low) = (u16::try_from(high?).ok()?, u16::try_from(low?).ok()?);
            Some(AnyCommunity::Standard(Community::new(high, low)))
        }
        (Some(global), Some(one), Some(two), None) => {
            Some(AnyCommunity::Large(LargeCommunity::new(global?, one?, two?)))
        }
        _ => None,
    }
}

/// The priority of a route.
pub(crate) fn route_priority(item: &Item<'_>) -> Option<RoutePriority> {
    item.parse_with("a priority, 1 to 2147483646", |text| RoutePriority::new(text.parse().ok()?))
}

/// A selector expression; its grammar is checked where it is used. Empty counts as absent.
pub(crate) fn selector(item: &Item<'_>) -> Option<String> {
    non_empty(item)
}

/// Text, where an empty string counts as absent.
pub(crate) fn non_empty(item: &Item<'_>) -> Option<String> {
    item.text().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// `{secretKeyRef: {name, key}}`.
pub(crate) fn secret_key(item: &Item<'_>) -> Option<SecretKey> {
    let mut outer = item.fields()?;
    let inner = outer.need("secretKeyRef");
    outer.finish();
    let mut fields = inner?.fields()?;
    fields.ignore(&["optional"]);
    let name = fields.take("name").and_then(|name| non_empty(&name)).unwrap_or_default();
    let key = fields.need("key").and_then(|key| non_empty(&key));
    fields.finish();
    Some(SecretKey { name, key: key? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_numbers_decimal_and_asdot() {
        let cases = [
            ("64512", Some(64512)),
            ("4294967295", Some(u32::MAX)),
            ("4294967296", None),
            ("6.10", Some(6 * 65536 + 10)),
            ("65535.65535", Some(u32::MAX)),
            ("65536.0", None),
            ("1.2.3", None),
            ("+5", None),
            ("1.", None),
            ("", None),
        ];
        for (text, value) in cases {
            assert_eq!(parse_as_number(text), value, "{text:?}");
        }
    }
}
