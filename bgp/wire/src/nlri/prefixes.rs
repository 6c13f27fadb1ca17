//! A field of prefixes, one after another, each behind a path identifier where that was agreed.
//!
//! The field is checked once, when a view of its message is built ([`check`]); after that reading cannot
//! fail.

use std::marker::PhantomData;

use super::{
    Ipv4Prefix, Ipv6Prefix, Label, NlriKey, PathId, SrPolicy4, SrPolicy6, VpnIpv4Prefix, VpnIpv6Prefix,
};
use crate::family::Family;

/// Iterates over a field of prefixes. Never allocates; ends at the first octet that is no prefix, which a
/// field that was checked does not have.
#[derive(Copy, Clone, Debug)]
pub struct Prefixes<'a, K> {
    rest: &'a [u8],
    path_ids: bool,
    key: PhantomData<K>,
}

impl<'a, K: NlriKey> Prefixes<'a, K> {
    /// Reads `field`, whose prefixes have path identifiers if `path_ids` says so.
    #[inline]
    #[must_use]
    pub const fn new(field: &'a [u8], path_ids: bool) -> Self {
        Self { rest: field, path_ids, key: PhantomData }
    }

    /// A field without prefixes.
    #[must_use]
    pub const fn empty() -> Self {
        Self::new(&[], false)
    }

    /// Whether nothing is left.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<K: NlriKey> Prefixes<'_, K> {
    /// The next prefix with its path identifier and, where the family has them, its label. Iteration is the same
    /// without labels.
    #[inline]
    pub fn next_labelled(&mut self) -> Option<(PathId, K, Option<Label>)> {
        loop {
            let (id, field) = if self.path_ids {
                let (id, field) = self.rest.split_first_chunk()?;
                (PathId(u32::from_be_bytes(*id)), field)
            } else {
                (PathId::NONE, self.rest)
            };
            if let Some((key, label, rest)) = K::split_first(field) {
                self.rest = rest;
                return Some((id, key, label));
            }
            self.rest = K::skip(field)?;
        }
    }
}

impl<K: NlriKey> Prefixes<'_, K> {
    /// How many things are passed over because they are no keys ([`NlriKey::skip`]).
    #[must_use]
    pub fn passed_over(mut self) -> usize {
        let mut count = 0;
        loop {
            let field = match (self.path_ids, self.rest.split_first_chunk::<4>()) {
                (false, _) => self.rest,
                (true, Some((_, field))) => field,
                (true, None) => return count,
            };
            self.rest = match (K::split_first(field), K::skip(field)) {
                (Some((.., rest)), _) => rest,
                (None, Some(rest)) => {
                    count += 1;
                    rest
                }
                (None, None) => return count,
            };
        }
    }
}

impl<K: NlriKey> Iterator for Prefixes<'_, K> {
    type Item = (PathId, K);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_labelled().map(|(id, key, _)| (id, key))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        // Perhaps all of it is passed over.
        (0, Some(self.rest.len()))
    }
}

/// Whether a field of a family holds whole prefixes and nothing else.
#[inline]
pub(crate) fn check_family(family: Family, field: &[u8], path_ids: bool) -> bool {
    match family {
        Family::Ipv4Unicast => check::<Ipv4Prefix>(field, path_ids),
        Family::Ipv6Unicast => check::<Ipv6Prefix>(field, path_ids),
        Family::Ipv4Vpn => check::<VpnIpv4Prefix>(field, path_ids),
        Family::Ipv6Vpn => check::<VpnIpv6Prefix>(field, path_ids),
        Family::Ipv4SrPolicy => check::<SrPolicy4>(field, path_ids),
        Family::Ipv6SrPolicy => check::<SrPolicy6>(field, path_ids),
    }
}

/// Whether a field holds whole prefixes and nothing else.
#[inline]
pub(crate) fn check<K: NlriKey>(field: &[u8], path_ids: bool) -> bool {
    let mut prefixes = Prefixes::<K>::new(field, path_ids);
    prefixes.by_ref().for_each(drop);
    prefixes.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_prefix_after_prefix() {
        let field = [24, 203, 0, 113, 0, 32, 192, 0, 2, 1, 9, 10, 255];
        let texts: Vec<String> =
            Prefixes::<Ipv4Prefix>::new(&field, false).map(|(_, prefix)| prefix.to_string()).collect();
        assert_eq!(texts, ["203.0.113.0/24", "0.0.0.0/0", "192.0.2.1/32", "10.128.0.0/9"]);
        assert!(check::<Ipv4Prefix>(&field, false));
        for cut in [1, 3, 6, 9, 11, 12] {
            assert!(!check::<Ipv4Prefix>(&field[..cut], false), "{cut}");
        }
    }

    #[test]
    fn reads_path_identifiers() {
        let field = [0, 0, 0, 1, 24, 203, 0, 113, 0, 0, 0, 2, 0];
        let got: Vec<_> =
            Prefixes::<Ipv4Prefix>::new(&field, true).map(|(id, p)| (id.0, p.to_string())).collect();
        assert_eq!(got, [(1, "203.0.113.0/24".to_owned()), (2, "0.0.0.0/0".to_owned())]);
        assert!(!check::<Ipv4Prefix>(&field[..12], true));
        assert!(!check::<Ipv4Prefix>(&field[..10], true));
        assert!(check::<Ipv6Prefix>(&[], true));
    }

    #[test]
    fn the_size_hint_bounds_the_count() {
        for field in [&[][..], &[0], &[0, 0, 0], &[32, 1, 2, 3, 4], &[32, 1, 2, 3, 4, 0]] {
            let prefixes = Prefixes::<Ipv4Prefix>::new(field, false);
            let (least, most) = prefixes.size_hint();
            let count = prefixes.count();
            assert!(least <= count && count <= most.unwrap(), "{field:?}");
        }
    }
}
