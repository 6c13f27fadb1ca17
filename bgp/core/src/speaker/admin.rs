//! What an operator asks of one neighbour: to exchange routes again, to stop, to start, to be left gently.
//!
//! None of it is part of a neighbour's configuration, so it outlives every change of that; it goes with the neighbour, and
//! with the process.
//!
//! RFC 4486 and 9003 (Cease and its text), 2918 and 7313 (refreshes), 8326 section 4.2 (graceful shutdown, the initiator's
//! part).

use bgp_wire::FamilySet;

use super::Output;
use super::state::Speaker;
use crate::command::{Applied, Clear, Refusal, StopMode};
use crate::outbox::Outbox;
use crate::peer_key::{PeerIx, PeerKey};
use crate::session::{self, StopReason};
use crate::time::Instant;

/// Octets of a shutdown text (RFC 9003).
const LONGEST_TEXT: usize = 255;

impl Speaker {
    pub(super) fn clear_peer(
        &mut self,
        now: Instant,
        key: &PeerKey,
        how: Clear,
        out: &mut Outbox<Output>,
    ) -> Result<Applied, Refusal> {
        let peer = self.find(key)?;
        let Some(neighbour) = self.peer(peer) else { return Ok(Applied::Unchanged) };
        let exchanges = neighbour.up.is_some();
        match how {
            Clear::Hard if neighbour.disabled => return Err(Refusal::Disabled(*key)),
            Clear::Hard => return Ok(self.restart(now, peer, StopReason::Reset("".into()), out)),
            Clear::SoftIn if neighbour.families_with_routes().is_empty() => return Ok(Applied::Unchanged),
            Clear::SoftIn => {
                self.begin_reimport(peer);
                self.ask_again(peer, FamilySet::ALL, out);
            }
            Clear::SoftOut if !exchanges => return Ok(Applied::Unchanged),
            Clear::SoftOut => {
                bgp_wire::Family::ALL.into_iter().for_each(|family| self.send_again(peer, family));
            }
        }
        Ok(Applied::Applied)
    }

    pub(super) fn disable_peer(
        &mut self,
        now: Instant,
        key: &PeerKey,
        text: &str,
        out: &mut Outbox<Output>,
    ) -> Result<Applied, Refusal> {
        let peer = self.find(key)?;
        check_text(text)?;
        let Some(neighbour) = self.peer_mut(peer) else { return Ok(Applied::Unchanged) };
        let other_text = *neighbour.shutdown_text != *text;
        neighbour.shutdown_text = text.into();
        if std::mem::replace(&mut neighbour.disabled, true) {
            return Ok(if other_text { Applied::Applied } else { Applied::Unchanged });
        }
        Ok(self.stop_peer(now, peer, StopReason::Shutdown(text.into()), out))
    }

    /// Ends a session for good, and with it what is kept of the neighbour.
    fn stop_peer(
        &mut self,
        now: Instant,
        peer: PeerIx,
        why: StopReason,
        out: &mut Outbox<Output>,
    ) -> Applied {
        let Some(neighbour) = self.peer_mut(peer) else { return Applied::Unchanged };
        neighbour.disabled = true;
        let had = neighbour.session.status().conn.is_some();
        self.session(now, peer, session::Input::Stop(why), out);
        self.forget_stale(peer);
        self.review_convergence(now);
        if had { Applied::SessionReset } else { Applied::Applied }
    }

    pub(super) fn stop(
        &mut self,
        now: Instant,
        mode: &StopMode,
        out: &mut Outbox<Output>,
    ) -> Result<Applied, Refusal> {
        let why = match mode {
            StopMode::Graceful(text) => {
                check_text(text)?;
                StopReason::Restart(text.as_str().into())
            }
            StopMode::Notify(text) => {
                check_text(text)?;
                StopReason::Shutdown(text.as_str().into())
            }
            StopMode::Destroy => StopReason::Deconfigured,
        };
        let mut applied = Applied::Unchanged;
        for peer in self.keys() {
            if self.peer(peer).is_some_and(|neighbour| !neighbour.disabled) {
                let one = self.stop_peer(now, peer, why.clone(), out);
                applied = if applied == Applied::SessionReset { applied } else { one };
            }
        }
        Ok(applied)
    }

    /// Ends whatever keeps a neighbour from an ordinary session: an administrative stop, a graceful shutdown, a wait.
    pub(super) fn enable_peer(
        &mut self,
        now: Instant,
        key: &PeerKey,
        out: &mut Outbox<Output>,
    ) -> Result<Applied, Refusal> {
        let peer = self.find(key)?;
        let Some(neighbour) = self.peer_mut(peer) else { return Ok(Applied::Unchanged) };
        let mut changed = std::mem::replace(&mut neighbour.disabled, false);
        neighbour.shutdown_text = "".into();
        let left = std::mem::replace(&mut neighbour.graceful_shutdown, false);
        if left {
            self.begin_reimport(peer);
            self.regroup(peer);
        }
        changed |= left;
        let mut actions = Outbox::new();
        if let Some(neighbour) = self.peer_mut(peer) {
            changed |= neighbour.session.hurry(now, &mut actions);
        }
        self.carry_out(now, peer, &mut actions, out);
        Ok(if changed { Applied::Applied } else { Applied::Unchanged })
    }

    /// RFC 8326 section 4.2: what is told to the neighbour, and what it has told, is the last resort from now on.
    pub(super) fn shut_gracefully(&mut self, key: &PeerKey) -> Result<Applied, Refusal> {
        let peer = self.find(key)?;
        let Some(neighbour) = self.peer_mut(peer) else { return Ok(Applied::Unchanged) };
        if neighbour.disabled {
            return Err(Refusal::Disabled(*key));
        }
        if std::mem::replace(&mut neighbour.graceful_shutdown, true) {
            return Ok(Applied::Unchanged);
        }
        self.begin_reimport(peer);
        self.regroup(peer);
        Ok(Applied::Applied)
    }
}

fn check_text(text: &str) -> Result<(), Refusal> {
    if text.len() > LONGEST_TEXT { Err(Refusal::TextTooLong(text.len())) } else { Ok(()) }
}
