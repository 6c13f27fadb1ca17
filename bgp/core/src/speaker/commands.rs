//! What the embedder may ask: each command checks everything first, then changes what it must and nothing else.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bgp_wire::attr::tunnel_encap::CandidatePathError;
use bgp_wire::attr::{Builder, Canonical, Community, LargeCommunity, Origin};
use bgp_wire::{Asn, Family, NextHop, Nlri, RouterId};
use ipnet::IpNet;

use super::Output;
use super::neighbour::Neighbour;
use super::ribs::for_rib;
use super::state::{Speaker, for_family};
use crate::command::{
    Aggregate, Applied, Audience, Chain, Command, Contradiction, Origination, PeerConfig, Refusal,
};
use crate::egress::Filter;
use crate::outbox::Outbox;
use crate::peer_key::{PeerIx, PeerKey};
use crate::policy::{Changed, Direction, PolicyName};
use crate::rib::DecisionSettings;
use crate::session::{self, Peer, PeerSettings, Reconfigured, SettingsError, StopReason};
use crate::time::Instant;

/// Octets that the attributes of an own route may have, so that they fit into a message with what export adds.
const LONGEST_OWN: usize = 4096 - 256;

impl Speaker {
    /// Carries out a command.
    ///
    /// # Errors
    /// A [`Refusal`], and then nothing has changed.
    pub fn command(
        &mut self,
        now: Instant,
        command: Command,
        out: &mut Outbox<Output>,
    ) -> Result<Applied, Refusal> {
        self.started.get_or_insert(now);
        let applied = match command {
            Command::PutPeer(key, config) => self.put_peer(now, key, config, out),
            Command::DeletePeer(key) => Ok(self.delete_peer(now, &key, out)),
            Command::PutPeerRange(prefix, range) => self.put_range(now, prefix, range, out),
            Command::DeletePeerRange(prefix) => Ok(self.delete_range(now, prefix, out)),
            Command::PutOrigination(nlri, origination) => self.put_origination(now, nlri, origination),
            Command::DeleteOrigination(nlri) => Ok(self.delete_origination(now, nlri)),
            Command::PutAggregate(prefix, aggregate) => self.put_aggregate(prefix, aggregate),
            Command::DeleteAggregate(prefix) => {
                let nlri = Nlri::from(prefix);
                Ok(applied_if(for_family!(self, nlri.family(), rib => rib.delete_aggregate(prefix))))
            }
            Command::PutSet(name, def) => {
                let changed = self.policies.put_set(&name, &def);
                changed.map(|changed| self.policies_changed(&changed))
            }
            Command::DeleteSet(kind, name) => self.policies.delete_set(kind, &name).map(applied_if),
            Command::PutPolicy(name, def) => {
                let changed = self.policies.put(&name, def);
                changed.map(|changed| self.policies_changed(&changed))
            }
            Command::DeletePolicy(name) => self.delete_policy(&name),
            Command::PutGlobalPolicies(direction, policies) => {
                let changed = self.policies.put_global(direction, policies);
                if changed == Ok(true) {
                    self.refresh_filters(&|_| true);
                }
                changed.map(applied_if)
            }
            Command::PutNextHop(address, state) => {
                let generation = self.shared.attrs.next_hops().generation();
                let known = self.shared.attrs.next_hops().state(address) == Some(&state);
                self.interface_told(address, state.interface.as_ref());
                if self.shared.attrs.next_hops_mut().put(address, state) {
                    self.compare_next_hops(generation);
                }
                Ok(applied_if(!known))
            }
            Command::DeleteNextHop(address) => {
                let generation = self.shared.attrs.next_hops().generation();
                let known = self.shared.attrs.next_hops().state(address).is_some();
                self.interface_told(address, None);
                if self.shared.attrs.next_hops_mut().delete(address) {
                    self.compare_next_hops(generation);
                }
                Ok(applied_if(known))
            }
            Command::PutClusterId(id) => Ok(self.put_cluster_id(id)),
            Command::PutIdentity { asn, router_id } => self.put_identity(now, asn, router_id, out),
            Command::PutDecision(settings) => Ok(self.put_decision(settings)),
            Command::LoadingDone => {
                let first = self.loaded.is_none();
                self.loaded.get_or_insert(now);
                self.review_convergence(now);
                Ok(applied_if(first))
            }
            Command::ClearPeer(key, how) => self.clear_peer(now, &key, how, out),
            Command::DisablePeer(key, text) => self.disable_peer(now, &key, &text, out),
            Command::EnablePeer(key) => self.enable_peer(now, &key, out),
            Command::GracefulShutdown(key) => self.shut_gracefully(&key),
            Command::Stop(mode) => self.stop(now, &mode, out),
        };
        self.settle(out);
        applied
    }

    pub(super) fn find(&self, key: &PeerKey) -> Result<PeerIx, Refusal> {
        self.by_key.get(key).copied().ok_or(Refusal::NoSuchPeer(*key))
    }

    pub(super) fn keys(&self) -> Vec<PeerIx> {
        self.by_key.values().copied().collect()
    }
}

fn applied_if(changed: bool) -> Applied {
    if changed { Applied::Applied } else { Applied::Unchanged }
}

/// Neighbours.
impl Speaker {
    fn put_peer(
        &mut self,
        now: Instant,
        key: PeerKey,
        config: PeerConfig,
        out: &mut Outbox<Output>,
    ) -> Result<Applied, Refusal> {
        let settings = self.check_peer(&key, &config)?;
        let Some(&peer) = self.by_key.get(&key) else {
            // Whoever is there only for being in a prefix makes way.
            let dynamic = self.at_address(&key).filter_map(|peer| self.peer(peer));
            let dynamic = dynamic.filter(|peer| peer.range.is_some()).map(|peer| peer.key).next();
            if let Some(dynamic) = dynamic {
                self.delete_peer(now, &dynamic, out);
            }
            self.add_peer(now, key, config, settings, None, out);
            self.review_cluster();
            self.doors_version += 1;
            return Ok(Applied::Applied);
        };
        let Some(neighbour) = self.peer(peer) else { return Ok(Applied::Unchanged) };
        let dynamic = neighbour.range.is_some();
        if neighbour.config == config && !dynamic {
            return Ok(Applied::Unchanged);
        }
        if dynamic || neighbour.config.password != config.password {
            self.doors_version += 1;
        }
        self.leave_range(peer);
        let applied = self.update_peer(now, peer, config, settings, out);
        self.review_cluster();
        Ok(applied)
    }

    /// A neighbour gets another configuration, and what has to happen happens.
    pub(super) fn update_peer(
        &mut self,
        now: Instant,
        peer: PeerIx,
        config: PeerConfig,
        settings: PeerSettings,
        out: &mut Outbox<Output>,
    ) -> Applied {
        let import = self.policies.filter(Direction::Import, &config.import);
        let Some(neighbour) = self.peer_mut(peer) else { return Applied::Unchanged };
        let old = std::mem::replace(&mut neighbour.config, config);
        let new = &neighbour.config;
        let other_transport = old.has_other_transport(new);
        let other_import = old.import != new.import || old.judges_otherwise(new);
        let other_client = old.route_reflector_client != new.route_reflector_client;
        neighbour.import = import;
        let helps = new.graceful_restart.is_some();
        let mut applied = self.reconfigure(now, peer, settings, out);
        if !helps {
            self.forget_stale(peer);
        }
        if other_transport && applied != Applied::SessionReset {
            applied = self.restart(now, peer, StopReason::ConfigurationChange, out);
        }
        if other_import {
            self.begin_reimport(peer);
        }
        if other_client {
            self.reflect_again(peer);
        }
        self.change_limits(now, peer, &old, out);
        self.regroup(peer);
        applied
    }

    fn check_peer(&self, key: &PeerKey, config: &PeerConfig) -> Result<PeerSettings, Refusal> {
        let address = key.address;
        let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
        if address.is_unspecified() || address.is_multicast() || broadcast {
            return Err(Refusal::PeerAddress(address));
        }
        let link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        if link_local && key.zone.is_none() && config.device.is_none() {
            return Err(Contradiction::LinkLocalWithoutInterface(address).into());
        }
        self.check_config(address, config)
    }

    /// Checks a configuration for a neighbour at this address, or in a prefix of such.
    pub(super) fn check_config(&self, remote: IpAddr, config: &PeerConfig) -> Result<PeerSettings, Refusal> {
        config.check(remote, self.settings.asn)?;
        self.policies.check(&config.import)?;
        self.policies.check(&config.export)?;
        let settings = config.session(self.settings.asn, self.settings.router_id);
        settings.check()?;
        Ok(settings)
    }

    pub(super) fn add_peer(
        &mut self,
        now: Instant,
        key: PeerKey,
        config: PeerConfig,
        settings: PeerSettings,
        range: Option<IpNet>,
        out: &mut Outbox<Output>,
    ) -> PeerIx {
        self.made += 1;
        let mut session = Peer::new(
            settings,
            self.settings.seed.wrapping_add(self.made.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        );
        if self.settings.restarted
            && let Some(started) = self.started
            && let Some(graceful) = &config.graceful_restart
        {
            session.restarted(started + graceful.longest());
        }
        let import = self.policies.filter(Direction::Import, &config.import);
        let at = self.peers.iter().position(Option::is_none).unwrap_or(self.peers.len());
        if at == self.peers.len() {
            self.peers.push(None);
        }
        let peer = PeerIx(at as u32);
        let mut neighbour = Box::new(Neighbour::new(key, config, session, import, range));
        neighbour.set_limits(now);
        self.peers[at] = Some(neighbour);
        self.by_key.insert(key, peer);
        self.session(now, peer, session::Input::Start, out);
        peer
    }

    pub(super) fn delete_peer(&mut self, now: Instant, key: &PeerKey, out: &mut Outbox<Output>) -> Applied {
        let Some(peer) = self.by_key.remove(key) else { return Applied::Unchanged };
        self.leave_range(peer);
        self.review_cluster();
        self.doors_version += 1;
        self.session(now, peer, session::Input::Stop(StopReason::Deconfigured), out);
        self.forget_stale(peer);
        if let Some(neighbour) = self.peer_mut(peer) {
            neighbour.gone = true;
        }
        // What is left of it goes when a review has passed over every table.
        for family in Family::ALL {
            for_family!(self, family, rib => rib.review.begin());
        }
        self.review_convergence(now);
        Applied::Applied
    }

    /// New settings for a session. Says what that did.
    fn reconfigure(
        &mut self,
        now: Instant,
        peer: PeerIx,
        settings: PeerSettings,
        out: &mut Outbox<Output>,
    ) -> Applied {
        let mut actions = Outbox::new();
        let done =
            self.peer_mut(peer).map(|neighbour| neighbour.session.reconfigure(now, settings, &mut actions));
        self.carry_out(now, peer, &mut actions, out);
        match done {
            Some(Reconfigured::Reset) => Applied::SessionReset,
            Some(Reconfigured::Live | Reconfigured::Unchanged) | None => Applied::Applied,
        }
    }

    /// Ends a session, if there is one, and lets it start again.
    pub(super) fn restart(
        &mut self,
        now: Instant,
        peer: PeerIx,
        why: StopReason,
        out: &mut Outbox<Output>,
    ) -> Applied {
        let Some(neighbour) = self.peer(peer) else { return Applied::Applied };
        let (disabled, had) = (neighbour.disabled, neighbour.session.status().conn.is_some());
        if disabled {
            return Applied::Applied;
        }
        self.session(now, peer, session::Input::Stop(why), out);
        self.session(now, peer, session::Input::Start, out);
        if had { Applied::SessionReset } else { Applied::Applied }
    }

    fn put_identity(
        &mut self,
        now: Instant,
        asn: Asn,
        router_id: RouterId,
        out: &mut Outbox<Output>,
    ) -> Result<Applied, Refusal> {
        if asn == Asn::ZERO {
            return Err(SettingsError::ZeroAsn.into());
        }
        if router_id == RouterId(0) {
            return Err(SettingsError::ZeroRouterId.into());
        }
        if self.identity() == (asn, router_id) {
            return Ok(Applied::Unchanged);
        }
        // What was fine with the AS number of before may contradict the new one.
        let neighbours = self.keys().into_iter().filter_map(|peer| self.peer(peer)).map(|peer| &peer.config);
        for config in neighbours.chain(self.ranges.values().map(|range| &range.range.config)) {
            config.session(asn, router_id).check()?;
        }
        self.settings.asn = asn;
        self.settings.router_id = router_id;
        let mut applied = Applied::Applied;
        for peer in self.keys() {
            let Some(settings) = self.peer(peer).map(|neighbour| neighbour.config.session(asn, router_id))
            else {
                continue;
            };
            if self.reconfigure(now, peer, settings, out) == Applied::SessionReset {
                applied = Applied::SessionReset;
            }
            // Its session may stay, behind a local AS number, but what is a loop is another matter now.
            self.begin_reimport(peer);
        }
        self.review_cluster();
        for peer in self.keys() {
            // Our AS number may stand behind another one in what it is told.
            self.regroup(peer);
        }
        for family in Family::UNICAST {
            for_family!(self, family, rib => rib.aggregates.sign_again());
        }
        // Whether an SR policy is meant for us, and who made it, follows from who we are.
        for family in Family::ALL.into_iter().filter(|family| family.is_sr_policy()) {
            for_family!(self, family, rib => rib.review.begin_telling());
        }
        Ok(applied)
    }
}

/// Own routes.
impl Speaker {
    fn put_origination(&mut self, now: Instant, nlri: Nlri, new: Origination) -> Result<Applied, Refusal> {
        let next_hop = check_next_hop(nlri.family(), new.next_hop)?;
        match (nlri.family().is_labelled(), new.label) {
            (true, None) => return Err(Refusal::NoLabel(nlri)),
            (false, Some(_)) => return Err(Refusal::Label(nlri)),
            (true, Some(_)) | (false, None) => {}
        }
        match (nlri.family().is_sr_policy(), &new.sr_policy) {
            (true, None) => return Err(Refusal::NoCandidatePath(nlri)),
            (false, Some(_)) => return Err(Refusal::CandidatePath(nlri)),
            (true, Some(_)) | (false, None) => {}
        }
        let octets = own_attributes(&new)?;
        if octets.len() > LONGEST_OWN {
            return Err(Refusal::TooLarge);
        }
        let known = self.origination(nlri);
        if known.as_ref() == Some(&new) {
            return Ok(Applied::Unchanged);
        }
        let other_audience = known.as_ref().is_some_and(|known| known.audience != new.audience);
        let facts = || Canonical(&octets).facts();
        let attrs = self.shared.attrs.intern_labelled(&octets, next_hop, new.label, facts);
        let (audience, next_hop_of_new) = (new.audience.clone(), new.next_hop);
        if other_audience {
            // Its attributes may be the same, so that nobody would look at it again.
            self.set_origination(now, nlri, None);
        }
        self.set_origination(now, nlri, Some((new, attrs)));
        self.shared.attrs.release(attrs, 1);
        self.name(&audience, next_hop_of_new, 1);
        if let Some(known) = known {
            self.name(&known.audience, known.next_hop, -1);
        }
        Ok(Applied::Applied)
    }

    fn put_aggregate(&mut self, prefix: IpNet, new: Aggregate) -> Result<Applied, Refusal> {
        if prefix.trunc() != prefix || prefix.prefix_len() == prefix.max_prefix_len() {
            return Err(Refusal::Aggregate(prefix));
        }
        let (standard, large) = (new.communities.len(), new.large_communities.len());
        if 4 * standard + 12 * large > LONGEST_OWN {
            return Err(Refusal::TooLarge);
        }
        let family = Nlri::from(prefix).family();
        if for_rib!(&self.ribs, family, rib => rib.aggregate(prefix) == Some(&new)) {
            return Ok(Applied::Unchanged);
        }
        for_family!(self, family, rib => rib.put_aggregate(prefix, new));
        Ok(Applied::Applied)
    }

    fn delete_origination(&mut self, now: Instant, nlri: Nlri) -> Applied {
        let Some(known) = self.origination(nlri) else { return Applied::Unchanged };
        self.set_origination(now, nlri, None);
        self.name(&known.audience, known.next_hop, -1);
        Applied::Applied
    }

    fn origination(&self, nlri: Nlri) -> Option<Origination> {
        for_rib!(&self.ribs, nlri.family(), rib => rib.origination(nlri).cloned())
    }

    fn set_origination(&mut self, now: Instant, nlri: Nlri, to: Option<(Origination, crate::rib::AttrId)>) {
        let (origination, attrs) = to.unzip();
        let (own, now) = (self.identity(), now.as_secs());
        for_family!(self, nlri.family(), rib => {
            rib.originate(nlri, origination, attrs, own, now, &mut self.shared);
        });
    }

    /// Counts the neighbours that an origination names, by its audience or its next hop. Who is named has update groups of
    /// its own.
    fn name(&mut self, audience: &Audience, next_hop: Option<IpAddr>, by: i32) {
        if let Some(address) = next_hop {
            let count = self.named_next_hops.entry(address).or_insert(0);
            *count = count.saturating_add_signed(by);
            if *count == 0 {
                self.named_next_hops.remove(&address);
            }
            let here: Vec<PeerIx> =
                self.by_key.iter().filter(|(key, _)| key.address == address).map(|(_, peer)| *peer).collect();
            here.into_iter().for_each(|peer| self.regroup(peer));
        }
        let Audience::Peers(keys) = audience else { return };
        for key in keys {
            let count = self.named.entry(*key).or_insert(0);
            *count = count.saturating_add_signed(by);
            if *count == 0 {
                self.named.remove(key);
            }
            if let Some(&peer) = self.by_key.get(key) {
                self.regroup(peer);
            }
        }
    }
}

/// The next hop of an own route, as its family has it.
fn check_next_hop(family: Family, next_hop: Option<IpAddr>) -> Result<Option<NextHop>, Refusal> {
    let Some(address) = next_hop else { return Ok(None) };
    let next_hop = match (family, address) {
        (Family::Ipv4Unicast | Family::Ipv4Vpn, IpAddr::V4(_))
        | (Family::Ipv6Unicast | Family::Ipv6Vpn, IpAddr::V6(_))
        // RFC 8950: told where that was agreed.
        | (Family::Ipv4Unicast, IpAddr::V6(_))
        | (Family::Ipv4SrPolicy | Family::Ipv6SrPolicy, _) => Some(NextHop::from(address)),
        // RFC 4659 section 3.2.1.2.
        (Family::Ipv6Vpn, IpAddr::V4(address)) => Some(address.to_ipv6_mapped().into()),
        (Family::Ipv4Vpn, IpAddr::V6(_)) | (Family::Ipv6Unicast, IpAddr::V4(_)) => None,
    };
    let host = NextHop::from(address).is_host();
    next_hop.filter(|_| host).map(Some).ok_or(Refusal::NextHop(address))
}

/// The canonical attributes of an own route.
fn own_attributes(origination: &Origination) -> Result<Vec<u8>, CandidatePathError> {
    let mut builder = Builder::new(Origin::Igp);
    builder
        .med(origination.med)
        .local_pref(origination.local_pref)
        .add_communities(origination.communities.iter().copied().map(Community));
    let large = origination.large_communities.iter();
    builder.add_large_communities(large.map(|&(global, one, two)| LargeCommunity::new(global, one, two)));
    builder.add_ext_communities(origination.ext_communities.iter().copied());
    builder.tunnel_encap(origination.sr_policy.as_ref().map(|path| path.encode()).transpose()?);
    Ok(builder.build())
}

/// Sets, policies, next hops.
impl Speaker {
    fn delete_policy(&mut self, name: &PolicyName) -> Result<Applied, Refusal> {
        let uses = |config: &PeerConfig| config.import.names(name) || config.export.names(name);
        for (key, peer) in &self.by_key {
            if self.peer(*peer).is_some_and(|neighbour| uses(&neighbour.config)) {
                return Err(Refusal::PolicyInUse { policy: name.clone(), peer: *key });
            }
        }
        if let Some((prefix, _)) = self.ranges.iter().find(|(_, range)| uses(&range.range.config)) {
            return Err(Refusal::PolicyInUseByRange { policy: name.clone(), prefix: *prefix });
        }
        self.policies.delete(name).map(applied_if)
    }

    /// Policies read differently now, or may: routes that they concern are looked at again, and nothing else.
    fn policies_changed(&mut self, changed: &Changed) -> Applied {
        match changed {
            Changed::Nothing => Applied::Unchanged,
            Changed::Policies(names) => {
                self.refresh_filters(&|policies| names.iter().any(|name| policies.contains(&name)));
                Applied::Applied
            }
        }
    }

    /// A next hop is behind this interface. Who looks at interfaces looks at its routes again.
    fn interface_told(&mut self, next_hop: IpAddr, interface: Option<&Arc<str>>) {
        if self.policies.put_interface(next_hop, interface) && self.policies.ask_interfaces() {
            self.refresh_filters(&|_| true);
        }
    }

    /// Makes the filters anew in whose chains there are policies of which `concerned` is true. Where one treats some path
    /// otherwise than before, it runs again over what it has run over.
    fn refresh_filters(&mut self, concerned: &dyn Fn(&[&PolicyName]) -> bool) {
        let mut known: BTreeMap<(Direction, Chain), Option<Filter>> = BTreeMap::new();
        let policies = &mut self.policies;
        let mut fresh = |direction: Direction, chain: &Chain| {
            let filter = || {
                let all: Vec<_> = policies.global(direction).iter().chain(&chain.policies).collect();
                let concerns = concerned(&all);
                concerns.then(|| policies.filter(direction, chain))
            };
            known.entry((direction, chain.clone())).or_insert_with(filter).clone()
        };
        let (mut imports, mut exports) = (Vec::new(), Vec::new());
        for (at, neighbour) in self.peers.iter_mut().enumerate() {
            let Some(neighbour) = neighbour else { continue };
            if let Some(filter) = fresh(Direction::Import, &neighbour.config.import) {
                if filter != neighbour.import {
                    imports.push(PeerIx(at as u32));
                }
                neighbour.import = filter;
            }
            if fresh(Direction::Export, &neighbour.config.export).is_some() {
                exports.push(PeerIx(at as u32));
            }
        }
        for family in Family::ALL {
            let deferred = self.deferred.contains(family);
            for_family!(self, family, rib => {
                for group in rib.groups_mut() {
                    if let Some(filter) = fresh(Direction::Export, &group.key().policy) {
                        group.adopt(if deferred { Filter::OwnOnly(Box::new(filter)) } else { filter });
                    }
                }
            });
        }
        imports.into_iter().for_each(|peer| self.begin_reimport(peer));
        exports.into_iter().for_each(|peer| self.regroup(peer));
    }

    pub(super) fn begin_reimport(&mut self, peer: PeerIx) {
        let Some(neighbour) = self.peer(peer) else { return };
        for family in neighbour.families_with_routes().iter() {
            for_family!(self, family, rib => rib.begin_reimport(peer));
        }
    }

    fn put_decision(&mut self, settings: DecisionSettings) -> Applied {
        if self.settings.decision == settings {
            return Applied::Unchanged;
        }
        self.settings.decision = settings;
        for family in Family::ALL {
            for_family!(self, family, rib => {
                rib.table.set_decision(settings);
                rib.review.begin_deciding();
            });
        }
        Applied::Applied
    }

    fn compare_next_hops(&mut self, generation: u64) {
        for family in Family::ALL {
            for_family!(self, family, rib => rib.review.begin_costs(generation));
        }
    }
}
