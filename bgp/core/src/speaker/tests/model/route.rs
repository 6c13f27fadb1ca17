//! Routes as plain values, and the octets that they are on the wire: IPv4 unicast, AS numbers of four octets, one path.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

/// One step of an AS path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hop {
    As(u32),
    Set(Vec<u32>),
}

/// The attributes of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Attrs {
    pub(super) origin: u8,
    pub(super) path: Vec<Hop>,
    /// Absent: ourselves.
    pub(super) next_hop: Option<Ipv4Addr>,
    pub(super) med: Option<u32>,
    pub(super) local_pref: Option<u32>,
    pub(super) communities: BTreeSet<u32>,
    pub(super) large: BTreeSet<[u32; 3]>,
    /// Extended communities.
    pub(super) extended: BTreeSet<u64>,
    pub(super) originator: Option<u32>,
    pub(super) clusters: Vec<u32>,
    /// Optional transitive ones that nobody here knows, by code: whether they are marked as partial, and their octets. What
    /// an aggregate says of itself stands here too.
    pub(super) unknown: BTreeMap<u8, (bool, Vec<u8>)>,
}

impl Attrs {
    /// The first AS number of the path, if it begins with one.
    pub(super) fn neighbor_as(&self) -> Option<u32> {
        match self.path.first() {
            Some(Hop::As(asn)) => Some(*asn),
            Some(Hop::Set(_)) | None => None,
        }
    }

    /// All AS numbers.
    pub(super) fn asns(&self) -> Vec<u32> {
        self.path
            .iter()
            .flat_map(|hop| match hop {
                Hop::As(asn) => vec![*asn],
                Hop::Set(asns) => asns.clone(),
            })
            .collect()
    }

    /// The section of an UPDATE.
    fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut attr = |flags: u8, code: u8, value: &[u8]| {
            out.extend_from_slice(&[flags, code, u8::try_from(value.len()).unwrap()]);
            out.extend_from_slice(value);
        };
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        attr(0x40, 1, &[self.origin]);
        let mut path = Vec::new();
        for hop in &self.path {
            let (kind, asns) = match hop {
                Hop::As(asn) => (2, vec![*asn]),
                Hop::Set(asns) => (1, asns.clone()),
            };
            path.extend_from_slice(&[kind, asns.len() as u8]);
            path.extend_from_slice(&words(&asns));
        }
        attr(0x40, 2, &path);
        attr(0x40, 3, &self.next_hop.expect("whoever announces has an address").octets());
        if let Some(med) = self.med {
            attr(0x80, 4, &words(&[med]));
        }
        if let Some(local_pref) = self.local_pref {
            attr(0x40, 5, &words(&[local_pref]));
        }
        if !self.communities.is_empty() {
            attr(0xc0, 8, &words(&self.communities.iter().copied().collect::<Vec<_>>()));
        }
        if let Some(originator) = self.originator {
            attr(0x80, 9, &words(&[originator]));
        }
        if !self.clusters.is_empty() {
            attr(0x80, 10, &words(&self.clusters));
        }
        if !self.extended.is_empty() {
            let octets: Vec<_> = self.extended.iter().flat_map(|one| one.to_be_bytes()).collect();
            attr(0xc0, 16, &octets);
        }
        if !self.large.is_empty() {
            attr(0xc0, 32, &words(&self.large.iter().flatten().copied().collect::<Vec<_>>()));
        }
        for (code, (partial, value)) in &self.unknown {
            attr(if *partial { 0xe0 } else { 0xc0 }, *code, value);
        }
        out
    }

    /// What stands in an attribute section.
    pub(super) fn read(mut section: &[u8]) -> Self {
        let mut attrs = Self { origin: u8::MAX, ..Self::default() };
        let mut seen = BTreeSet::new();
        while let [flags, code, rest @ ..] = section {
            let (len, rest) = match rest {
                [high, low, rest @ ..] if flags & 0x10 != 0 => {
                    (usize::from(*high) << 8 | usize::from(*low), rest)
                }
                [len, rest @ ..] => (usize::from(*len), rest),
                [] => panic!("an attribute without a length"),
            };
            let (value, rest) = rest.split_at(len);
            section = rest;
            assert!(seen.insert(*code), "attribute {code} twice");
            attrs.take(*flags, *code, value);
        }
        attrs
    }

    fn take(&mut self, flags: u8, code: u8, value: &[u8]) {
        let words = || -> Vec<u32> {
            value.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect()
        };
        match code {
            1 => self.origin = value[0],
            2 => {
                let mut rest = value;
                while let [kind, count, more @ ..] = rest {
                    let (asns, more) = more.split_at(4 * usize::from(*count));
                    rest = more;
                    let asns = asns.chunks(4).map(|asn| u32::from_be_bytes(asn.try_into().unwrap()));
                    match kind {
                        2 => self.path.extend(asns.map(Hop::As)),
                        kind => {
                            assert_eq!(*kind, 1, "no confederations here");
                            self.path.push(Hop::Set(asns.collect()));
                        }
                    }
                }
            }
            3 => self.next_hop = Some(Ipv4Addr::from(words()[0])),
            4 => self.med = Some(words()[0]),
            5 => self.local_pref = Some(words()[0]),
            6 => {
                assert_eq!((flags, value), (0x40, &[][..]));
                self.unknown.insert(code, (false, vec![]));
            }
            8 => {
                self.communities = words().into_iter().collect();
                assert_eq!(self.communities.len() * 4, value.len(), "a community twice");
            }
            9 => self.originator = Some(words()[0]),
            10 => self.clusters = words(),
            16 => {
                let numbers = value.chunks(8).map(|octets| u64::from_be_bytes(octets.try_into().unwrap()));
                self.extended = numbers.collect();
                assert!(!value.is_empty() && self.extended.len() * 8 == value.len(), "none, or one twice");
            }
            32 => {
                self.large = words().chunks(3).map(|three| three.try_into().unwrap()).collect();
                assert_eq!(self.large.len() * 12, value.len(), "a large community twice");
            }
            code => {
                assert_eq!(flags & 0xc0, 0xc0, "attribute {code} with flags {flags:#x} was passed on");
                self.unknown.insert(code, (flags & 0x20 != 0, value.to_vec()));
            }
        }
    }
}

/// What an UPDATE says.
#[derive(Debug, Default)]
pub(super) struct Update {
    pub(super) withdrawn: Vec<Ipv4Net>,
    pub(super) announced: Vec<Ipv4Net>,
    pub(super) attrs: Option<Attrs>,
}

impl Update {
    /// One route.
    pub(super) fn announce(prefix: Ipv4Net, attrs: Attrs) -> Self {
        Self { announced: vec![prefix], attrs: Some(attrs), ..Self::default() }
    }

    /// One route less.
    pub(super) fn withdraw(prefix: Ipv4Net) -> Self {
        Self { withdrawn: vec![prefix], ..Self::default() }
    }

    /// The whole message.
    pub(super) fn write(&self) -> Vec<u8> {
        let section = |octets: Vec<u8>| [(octets.len() as u16).to_be_bytes().to_vec(), octets].concat();
        let body = [
            section(prefixes(&self.withdrawn)),
            section(self.attrs.as_ref().map(Attrs::write).unwrap_or_default()),
            prefixes(&self.announced),
        ]
        .concat();
        message(2, &body)
    }

    /// What a body says.
    pub(super) fn read(body: &[u8]) -> Self {
        let section = |octets: &[u8]| usize::from(octets[0]) << 8 | usize::from(octets[1]);
        let (withdrawn, rest) = body[2..].split_at(section(body));
        let (attrs, announced) = rest[2..].split_at(section(rest));
        let attrs = (!attrs.is_empty()).then(|| Attrs::read(attrs));
        Self { withdrawn: nets(withdrawn), announced: nets(announced), attrs }
    }
}

/// A message with its header.
pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = (19 + body.len()) as u16;
    [&[0xff; 16], &len.to_be_bytes()[..], &[kind], body].concat()
}

fn prefixes(nets: &[Ipv4Net]) -> Vec<u8> {
    let one = |net: &Ipv4Net| {
        let len = net.prefix_len();
        [vec![len], net.network().octets()[..usize::from(len.div_ceil(8))].to_vec()].concat()
    };
    nets.iter().flat_map(one).collect()
}

fn nets(mut octets: &[u8]) -> Vec<Ipv4Net> {
    let mut nets = Vec::new();
    while let [len, rest @ ..] = octets {
        let (bits, rest) = rest.split_at(usize::from(len.div_ceil(8)));
        let mut address = [0; 4];
        address[..bits.len()].copy_from_slice(bits);
        nets.push(Ipv4Net::new(address.into(), *len).unwrap());
        octets = rest;
    }
    nets
}
