//! One transport connection, from its beginning to Established: what a message means in its state.
//!
//! Decides nothing about the other connection, keeps no timer and sends nothing: the [`Peer`](super::Peer) does, told
//! by a [`Step`].

use std::sync::Arc;
use std::time::Duration;

use bgp_wire::notification::Reason;
use bgp_wire::{
    Capability, Frame, MessageType, Negotiated, Notification, Open, Role, RouteRefresh, RouterId,
};

use super::{DownReason, HoldTime, Link, PeerSettings, State};
use crate::peer_key::ConnId;
use crate::time::Instant;

/// RFC 4271 section 8.2.2 suggests a "large value" of 4 minutes until OPEN has agreed on a hold time.
pub(super) const LARGE_HOLD: Duration = Duration::from_secs(240);

/// The shortest SendHoldTime that RFC 9687 section 3.1 suggests.
const LEAST_SEND_HOLD: Duration = Duration::from_secs(8 * 60);

/// How far a connection has come.
#[derive(Debug)]
pub(super) enum Phase {
    /// Our OPEN is held back for a while, so that theirs may come first (DelayOpen, RFC 4271 section 8.1.1).
    Delayed,
    /// Our OPEN is on its way.
    OpenSent,
    /// Their OPEN is accepted, our KEEPALIVE is on its way.
    OpenConfirm(Agreed),
    /// Their KEEPALIVE has come.
    Established(Agreed),
}

/// What the two OPENs made.
#[derive(Debug)]
pub(super) struct Agreed {
    pub(super) received: Open,
    pub(super) negotiated: Arc<Negotiated>,
    pub(super) hold_time: HoldTime,
    /// Before jitter; zero for none.
    pub(super) keepalive: Duration,
}

/// What a message leads to.
#[derive(Debug)]
pub(super) enum Step {
    /// The neighbour is alive, and that's all.
    Alive,
    /// Nothing; nor does the hold timer begin anew.
    Ignored,
    /// An acceptable OPEN: the connection may go on to OpenConfirm, unless it loses to the other one.
    Opened(Box<Agreed>),
    /// OpenConfirm becomes Established.
    Confirmed,
    /// An UPDATE that may enter the RIB.
    Deliver,
    /// A ROUTE-REFRESH.
    Refresh(RouteRefresh),
    /// The connection ends, after this NOTIFICATION if there is one.
    End(Option<Notification>, DownReason),
}

/// One of a peer's connections.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: ConnId,
    pub(super) link: Link,
    pub(super) phase: Phase,
    /// The OPEN we send, or have sent.
    pub(super) sent: Open,
    /// When the last message came; the hold timer is compared with it only when it goes off, so that an UPDATE costs
    /// one store.
    pub(super) last_received: Instant,
    /// When it was last told that unread messages wait.
    pub(super) unread_at: Option<Instant>,
    /// When KEEPALIVE or UPDATE was last sent.
    pub(super) last_sent: Instant,
    /// The keepalive interval with its jitter.
    pub(super) keepalive_after: Duration,
}

impl Connection {
    /// A new one, whose OPEN is still to be sent.
    pub(super) fn new(id: ConnId, link: Link, sent: Open, now: Instant) -> Self {
        Self {
            id,
            link,
            phase: Phase::Delayed,
            sent,
            last_received: now,
            unread_at: None,
            last_sent: now,
            keepalive_after: Duration::ZERO,
        }
    }

    /// Its state. One whose OPEN is held back is in Connect, or in Active: that depends on the peer.
    pub(super) const fn state(&self) -> State {
        match self.phase {
            Phase::Delayed => State::Connect,
            Phase::OpenSent => State::OpenSent,
            Phase::OpenConfirm(_) => State::OpenConfirm,
            Phase::Established(_) => State::Established,
        }
    }

    pub(super) const fn agreed(&self) -> Option<&Agreed> {
        match &self.phase {
            Phase::Delayed | Phase::OpenSent => None,
            Phase::OpenConfirm(agreed) | Phase::Established(agreed) => Some(agreed),
        }
    }

    pub(super) const fn agreed_mut(&mut self) -> Option<&mut Agreed> {
        match &mut self.phase {
            Phase::Delayed | Phase::OpenSent => None,
            Phase::OpenConfirm(agreed) | Phase::Established(agreed) => Some(agreed),
        }
    }

    pub(super) const fn is_delayed(&self) -> bool {
        matches!(self.phase, Phase::Delayed)
    }

    pub(super) const fn is_established(&self) -> bool {
        matches!(self.phase, Phase::Established(_))
    }

    /// How long the neighbour may be silent; zero for as long as it likes. Without a hold time the large one stays in
    /// force until Established: a neighbour that never confirms would else hold its place for ever.
    pub(super) fn hold(&self) -> Duration {
        match &self.phase {
            Phase::OpenConfirm(agreed) if agreed.hold_time != HoldTime::NONE => agreed.hold(),
            Phase::Delayed | Phase::OpenSent | Phase::OpenConfirm(_) => LARGE_HOLD,
            Phase::Established(agreed) => agreed.hold(),
        }
    }

    /// How long the neighbour may take none of our octets: twice the hold time, but 8 minutes at least; for ever where no
    /// hold time was agreed (RFC 9687 sections 3.1 and 5).
    pub(super) fn send_hold(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Delayed | Phase::OpenSent | Phase::OpenConfirm(_) => Some(LEAST_SEND_HOLD),
            Phase::Established(agreed) if agreed.hold_time == HoldTime::NONE => None,
            Phase::Established(agreed) => Some(LEAST_SEND_HOLD.max(2 * agreed.hold())),
        }
    }

    /// What `frame` means in the present state. Nothing is changed.
    pub(super) fn receive(&self, settings: &PeerSettings, frame: Frame<'_>) -> Step {
        match (&self.phase, frame.kind) {
            (Phase::Established(_), MessageType::Update) => Step::Deliver,
            (Phase::Established(_), MessageType::Keepalive) => Step::Alive,
            (Phase::OpenConfirm(_), MessageType::Keepalive) => Step::Confirmed,
            (Phase::Delayed | Phase::OpenSent, MessageType::Open) => self.receive_open(settings, frame.body),
            // RFC 4271 section 8.2.2 asks for no more than a look at collisions. OpenBGPD 7 says its OPEN twice where a
            // connection before was closed while it still had one to send, and would take an answer for an error of ours.
            // It is no KEEPALIVE: whoever says nothing else runs out of hold time (RFC 4271 section 6.5).
            (Phase::OpenConfirm(agreed), MessageType::Open)
                if Open::parse(frame.body).is_ok_and(|again| again == agreed.received) =>
            {
                Step::Ignored
            }
            (Phase::Established(agreed), MessageType::RouteRefresh) => match RouteRefresh::parse(frame) {
                Ok(refresh) if agreed.negotiated.route_refresh => Step::Refresh(refresh),
                // RFC 2918 section 4: ignored where we didn't offer it.
                Ok(_) => Step::Alive,
                Err(error) => Step::End(Some(error.notification.clone()), DownReason::Malformed(error)),
            },
            // A NOTIFICATION is never answered, not even an unreadable one (RFC 4271 section 6.4).
            (_, MessageType::Notification) => Step::End(
                None,
                match Notification::parse(frame.body) {
                    Ok(notification) => DownReason::Received(notification),
                    Err(error) => DownReason::Malformed(error),
                },
            ),
            (
                phase,
                MessageType::Open | MessageType::Update | MessageType::Keepalive | MessageType::RouteRefresh,
            ) => {
                let reason = match phase {
                    // RFC 4271 section 6.6; RFC 6608 has no subcode for it.
                    Phase::Delayed => Reason::FsmUnspecific,
                    Phase::OpenSent => Reason::UnexpectedInOpenSent,
                    Phase::OpenConfirm(_) => Reason::UnexpectedInOpenConfirm,
                    Phase::Established(_) => Reason::UnexpectedInEstablished,
                };
                // RFC 6608 section 4: the data is the type of the unexpected message.
                let notification = Notification::with_data(reason, &[frame.kind.code()]);
                Step::End(Some(notification.clone()), DownReason::Unexpected(notification))
            }
        }
    }

    fn receive_open(&self, settings: &PeerSettings, body: &[u8]) -> Step {
        let received = match Open::parse(body) {
            Ok(open) => open,
            Err(error) => return Step::End(Some(error.notification.clone()), DownReason::Malformed(error)),
        };
        let refuse = |notification, reason| Step::End(Some(notification), reason);
        let asn = received.asn();
        if !settings.remote_asn.accepts(asn, settings.local_asn) {
            return refuse(Notification::new(Reason::BadPeerAs), DownReason::WrongAsn(asn));
        }
        // RFC 6286 section 2.2: only inside an AS must identifiers differ.
        let id: RouterId = received.router_id;
        if id == settings.local_router_id && !settings.is_external(asn) {
            return refuse(Notification::new(Reason::BadBgpIdentifier), DownReason::SameRouterId(id));
        }
        let strict = settings.role.is_some_and(|role| role.strict);
        if let (Err(notification), Some(ours)) =
            (Role::agree(&self.sent, &received, strict), self.sent.role())
        {
            let reason = DownReason::RoleMismatch { ours, theirs: received.role() };
            return refuse(notification, reason);
        }
        let negotiated = Negotiated::agree(&self.sent, &received);
        if negotiated.families.is_empty() {
            // RFC 5492 section 3: the data lists the capabilities that we miss.
            let missing: Vec<_> = settings.families.iter().map(Capability::family).collect();
            let notification = Notification::unsupported_capabilities(&missing);
            return refuse(notification, DownReason::NoCommonFamily);
        }
        // Neither OPEN can hold 1 or 2, so neither can the smaller.
        let hold_time = HoldTime::new(negotiated.hold_time).unwrap_or(HoldTime::NONE);
        let keepalive = settings.keepalive_interval(hold_time);
        let negotiated = Arc::new(negotiated);
        Step::Opened(Box::new(Agreed { received, negotiated, hold_time, keepalive }))
    }
}

impl Agreed {
    fn hold(&self) -> Duration {
        Duration::from_secs(u64::from(self.hold_time.secs()))
    }
}
