//! A route with its attributes as a value, whoever tells of it: our JSON and the answers of five daemons come to the same
//! terms here, so that a test can compare what one end sent with what the other holds.

use std::fmt::{self, Debug};
use std::net::{IpAddr, Ipv4Addr};

/// The attributes of one path. What a teller does not show is what [`Route::hiding`] is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// ORIGIN.
    pub origin: Origin,
    /// AS_PATH: AS numbers in order, a set in braces as one word without spaces (`65100 {65101,65102}`).
    pub as_path: String,
    /// The next hop; of two IPv6 ones the global one.
    pub next_hop: IpAddr,
    /// MULTI_EXIT_DISC.
    pub med: Option<u32>,
    /// LOCAL_PREF.
    pub local_pref: Option<u32>,
    /// ATOMIC_AGGREGATE.
    pub atomic_aggregate: bool,
    /// AGGREGATOR.
    pub aggregator: Option<(u32, Ipv4Addr)>,
    /// COMMUNITIES, as `65001:1`, in order.
    pub communities: Vec<String>,
    /// LARGE_COMMUNITY, as `65001:1:2`, in order.
    pub large_communities: Vec<String>,
    /// EXTENDED COMMUNITIES, as `rt 65001:1` or `soo 192.0.2.1:5`, in order.
    pub ext_communities: Vec<String>,
    /// Attributes that nobody knows, in order of their types.
    pub unknown: Vec<Unknown>,
}

/// ORIGIN.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// 0.
    Igp,
    /// 1.
    Egp,
    /// 2.
    Incomplete,
}

/// An attribute of a type that nobody knows.
#[derive(Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its type.
    pub code: u8,
    /// Whether somebody on the way did not know it.
    pub partial: bool,
    /// Its value.
    pub value: Vec<u8>,
}

/// A part of [`Route`], by the name that a difference has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The sets of AS_PATH.
    Sets,
    /// Attributes that nobody knows.
    Unknown,
    /// Whether they are partial.
    Partial,
    /// What is beyond their first 160 octets.
    Tails,
}

impl Route {
    /// Origin IGP and nothing else.
    #[must_use]
    pub fn new(as_path: &str, next_hop: IpAddr) -> Self {
        Self {
            origin: Origin::Igp,
            as_path: as_path.to_owned(),
            next_hop,
            med: None,
            local_pref: None,
            atomic_aggregate: false,
            aggregator: None,
            communities: Vec::new(),
            large_communities: Vec::new(),
            ext_communities: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// The same without a part that a teller does not show.
    #[must_use]
    pub fn hiding(mut self, parts: &[Part]) -> Self {
        for part in parts {
            match part {
                Part::Sets => {
                    let words = self.as_path.split(' ').filter(|word| !word.starts_with('{'));
                    self.as_path = words.collect::<Vec<_>>().join(" ");
                }
                Part::Unknown => self.unknown.clear(),
                Part::Tails => self.unknown.iter_mut().for_each(|unknown| unknown.value.truncate(160)),
                Part::Partial => self.unknown.iter_mut().for_each(|unknown| unknown.partial = false),
            }
        }
        self
    }

    /// Every part in which `seen` is not what was expected, by name. Communities are compared as sets, as they are.
    #[must_use]
    pub fn differences(&self, seen: &Self) -> Vec<String> {
        fn sorted(list: &[String]) -> Vec<String> {
            let mut list = list.to_vec();
            list.sort();
            list
        }
        let mut list = Differences(Vec::new());
        list.compare("ORIGIN", &self.origin, &seen.origin);
        list.compare("AS_PATH", &self.as_path, &seen.as_path);
        list.compare("next hop", &self.next_hop, &seen.next_hop);
        list.compare("MULTI_EXIT_DISC", &self.med, &seen.med);
        list.compare("LOCAL_PREF", &self.local_pref, &seen.local_pref);
        list.compare("ATOMIC_AGGREGATE", &self.atomic_aggregate, &seen.atomic_aggregate);
        list.compare("AGGREGATOR", &self.aggregator, &seen.aggregator);
        list.compare("COMMUNITIES", &sorted(&self.communities), &sorted(&seen.communities));
        list.compare("LARGE_COMMUNITY", &sorted(&self.large_communities), &sorted(&seen.large_communities));
        list.compare("EXTENDED COMMUNITIES", &sorted(&self.ext_communities), &sorted(&seen.ext_communities));
        list.compare("unknown attributes", &self.unknown, &seen.unknown);
        list.0
    }

    /// From path attributes as on the wire, 4-octet AS numbers, the next hop in NEXT_HOP or MP_REACH_NLRI.
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    pub fn from_attributes<'a>(attributes: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, String> {
        let mut route = Self::new("", IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        for octets in attributes {
            route.read(octets).ok_or_else(|| format!("attribute {octets:02x?}"))?;
        }
        Ok(route)
    }

    fn read(&mut self, octets: &[u8]) -> Option<()> {
        let (flags, code) = (*octets.first()?, *octets.get(1)?);
        let value = octets.get(if flags & 0x10 == 0 { 3 } else { 4 }..)?;
        match code {
            1 => self.origin = Origin::from_code(*value.first()?)?,
            2 => self.as_path = read_path(value)?,
            3 => self.next_hop = IpAddr::V4(<[u8; 4]>::try_from(value).ok()?.into()),
            4 => self.med = Some(u32::from_be_bytes(value.try_into().ok()?)),
            5 => self.local_pref = Some(u32::from_be_bytes(value.try_into().ok()?)),
            6 => self.atomic_aggregate = true,
            7 => {
                let (asn, address) = value.split_first_chunk::<4>()?;
                let address = <[u8; 4]>::try_from(address).ok()?;
                self.aggregator = Some((u32::from_be_bytes(*asn), address.into()));
            }
            8 => self.communities = value.chunks(4).map(|pair| numbers::<2>(pair).join(":")).collect(),
            14 => {
                let hop = value.get(4..)?;
                self.next_hop = match *value.get(3)? {
                    4 => IpAddr::V4(hop.first_chunk::<4>().copied()?.into()),
                    _ => IpAddr::V6(hop.first_chunk::<16>().copied()?.into()),
                };
            }
            16 => self.ext_communities = value.chunks(8).map(ext_community).collect::<Option<_>>()?,
            32 => {
                self.large_communities =
                    value.chunks(12).map(|triple| numbers::<4>(triple).join(":")).collect();
            }
            code => self.unknown.push(Unknown { code, partial: flags & 0x20 != 0, value: value.to_vec() }),
        }
        Some(())
    }
}

/// Numbers of `N` octets each.
fn numbers<const N: usize>(octets: &[u8]) -> Vec<String> {
    let number = |octets: &[u8]| octets.iter().fold(0_u64, |number, octet| number << 8 | u64::from(*octet));
    octets.chunks(N).map(|octets| number(octets).to_string()).collect()
}

fn read_path(mut octets: &[u8]) -> Option<String> {
    let mut words = Vec::new();
    while let [kind, count, rest @ ..] = octets {
        let (segment, rest) = rest.split_at_checked(usize::from(*count) * 4)?;
        match kind {
            1 => words.push(format!("{{{}}}", numbers::<4>(segment).join(","))),
            2 => words.extend(numbers::<4>(segment)),
            _ => return None,
        }
        octets = rest;
    }
    Some(words.join(" "))
}

fn ext_community(octets: &[u8]) -> Option<String> {
    let octets: &[u8; 8] = octets.try_into().ok()?;
    let [kind, sub, rest @ ..] = octets;
    let sub = match sub {
        2 => "rt",
        3 => "soo",
        _ => return Some(format!("{octets:02x?}")),
    };
    let [a, b, c, d, e, f] = *rest;
    Some(match kind {
        0 => format!("{sub} {}:{}", u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f])),
        1 => format!("{sub} {}:{}", Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([e, f])),
        2 => format!("{sub} {}:{}", u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([e, f])),
        _ => format!("{octets:02x?}"),
    })
}

/// An AS path in words as [`Route::as_path`] has it, from the words of any daemon: sets in braces, whatever is between
/// their numbers.
#[must_use]
pub fn as_path(words: &str) -> String {
    let mut path = String::new();
    let mut in_set = false;
    for character in words.chars() {
        let after_digit = path.ends_with(|last: char| last.is_ascii_digit());
        match character {
            '{' => {
                in_set = true;
                path.push(character);
            }
            '}' => {
                in_set = false;
                path = path.trim_end_matches(',').to_owned() + "}";
            }
            ' ' | ',' if in_set => {
                if after_digit {
                    path.push(',');
                }
            }
            character => path.push(character),
        }
    }
    path.trim().to_owned()
}

impl Origin {
    /// By its code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Igp, Self::Egp, Self::Incomplete].get(usize::from(code)).copied()
    }

    /// By its name, whatever its case.
    ///
    /// # Errors
    ///
    /// The name is none.
    pub fn from_name(name: &str) -> Result<Self, String> {
        match name.to_ascii_lowercase().as_str() {
            "igp" => Ok(Self::Igp),
            "egp" => Ok(Self::Egp),
            "incomplete" => Ok(Self::Incomplete),
            _ => Err(format!("origin {name:?}")),
        }
    }
}

struct Differences(Vec<String>);

impl Differences {
    fn compare<T: PartialEq + Debug>(&mut self, name: &str, expected: &T, seen: &T) {
        if expected != seen {
            self.0.push(format!("{name} is {seen:?} instead of {expected:?}"));
        }
    }
}

impl Debug for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let partial = if self.partial { " partial" } else { "" };
        let start: String = self.value.iter().take(16).map(|octet| format!("{octet:02x}")).collect();
        write!(f, "{}{partial} of {} octets {start}", self.code, self.value.len())
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Octets from base64 (RFC 4648 section 4).
#[must_use]
pub fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut octets = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for digit in text.bytes().filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte)) {
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            octets.push((bits >> count) as u8);
        }
    }
    octets
}

/// Octets from hexadecimal digits; anything else between them is skipped.
#[must_use]
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_paths_of_all_daemons() {
        for words in
            ["65100 {65101,65102}", "65100 {65101 65102}", " 65100 { 65101 65102 } ", "65100 {65101, 65102}"]
        {
            assert_eq!(as_path(words), "65100 {65101,65102}", "{words:?}");
        }
        assert_eq!(as_path("1 {2} 3"), "1 {2} 3");
        assert_eq!(as_path(""), "");
    }

    #[test]
    fn octets_from_text() {
        assert_eq!(base64("QAEBAA=="), [0x40, 1, 1, 0]);
        assert_eq!(base64("AQIDBAU="), [1, 2, 3, 4, 5]);
        assert_eq!(hex("01 a2:FF"), [1, 0xa2, 0xff]);
    }

    #[test]
    fn a_difference_is_named() {
        let mut one = Route::new("1 2", "192.0.2.1".parse().expect("an address"));
        one.communities = vec!["1:2".to_owned(), "1:1".to_owned()];
        let mut other = Route { med: Some(5), ..one.clone() };
        other.communities.reverse();
        assert_eq!(one.differences(&other), ["MULTI_EXIT_DISC is Some(5) instead of None"]);
        let set = Route { as_path: "1 {7,8} 2".to_owned(), ..one.clone() };
        assert_eq!(one.differences(&set.hiding(&[Part::Sets])), [""; 0]);
    }
}
