//! What a neighbour holds who takes UPDATEs at their word, one after another, and what it was told without need.

use std::collections::BTreeSet;

use bgp_wire::{
    Family, Ipv4Prefix, Ipv6Prefix, MessageType, Negotiated, Nlri, PathId, SrPolicy4, SrPolicy6, UpdateView,
    VpnIpv4Prefix, VpnIpv6Prefix, split_message,
};

/// One session's end.
#[derive(Default)]
pub(super) struct Receiver {
    held: BTreeSet<(Nlri, PathId)>,
}

impl Receiver {
    /// Reads whole messages. Gives what they withdraw that is not held.
    pub(super) fn read(&mut self, mut messages: &[u8], negotiated: &Negotiated) -> Vec<Nlri> {
        let mut superfluous = Vec::new();
        while let Ok(Some(frame)) = split_message(messages, usize::from(u16::MAX)) {
            messages = &messages[frame.raw.len()..];
            if frame.kind == MessageType::Update
                && let Ok(view) = UpdateView::parse(frame.body, negotiated)
            {
                self.update(&view, &mut superfluous);
            }
        }
        superfluous
    }

    fn update(&mut self, view: &UpdateView<'_>, superfluous: &mut Vec<Nlri>) {
        let mut gone: Vec<(Nlri, PathId)> = view.withdrawn().map(|(id, key)| (key.into(), id)).collect();
        let mut there: Vec<(Nlri, PathId)> = view.announced().map(|(id, key)| (key.into(), id)).collect();
        macro_rules! also {
            ($($key:ty: $family:ident),*) => {$(
                if view.mp_unreach().is_some_and(|unreach| unreach.family == Family::$family) {
                    gone.extend(view.mp_withdrawn::<$key>().map(|(id, key)| (key.into(), id)));
                }
                if view.mp_reach().is_some_and(|reach| reach.family == Family::$family) {
                    there.extend(view.mp_announced::<$key>().map(|(id, key)| (key.into(), id)));
                }
            )*};
        }
        also!(
            Ipv4Prefix: Ipv4Unicast, Ipv6Prefix: Ipv6Unicast, VpnIpv4Prefix: Ipv4Vpn,
            VpnIpv6Prefix: Ipv6Vpn, SrPolicy4: Ipv4SrPolicy, SrPolicy6: Ipv6SrPolicy
        );
        for path in gone {
            if !self.held.remove(&path) {
                superfluous.push(path.0);
            }
        }
        self.held.extend(there);
    }
}
