//! VPP and what is wrong with the configuration, as JSON.

use serde::{Deserialize, Serialize};

/// What the agent put into VPP, and how that stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Vpp {
    /// `up`, `connecting`, or `off` where the agent speaks BGP only.
    pub(crate) state: String,
    /// VPP's release.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) version: String,
    /// Which connection this is, counted from 1.
    pub(crate) generation: u64,
    /// Why there is no connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
    /// Whether everything is as wanted and known: every source is in sync, the first routes are all in, VPP holds all
    /// that is wanted and nothing of ours that isn't, and the speaker has been told everything.
    pub(crate) converged: bool,
    /// What is still waited for before it is; empty where it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) waiting_for: Vec<String>,
    /// Objects by kind.
    pub(crate) kinds: Vec<Count>,
    /// Objects that are not as they should be, with reasons, what is blocked first; the first ones where there are very many.
    pub(crate) objects: Vec<Unsettled>,
    /// What the last audit found; absent before the first one, and while what it found is being repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) audit: Option<Audited>,
    /// Encryption between nodes; absent where it is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wireguard: Option<Wireguard>,
    /// What is wrong with what was configured.
    pub(crate) conditions: Vec<Problem>,
}

/// WireGuard: what others have to know of this node, and how the sessions with them stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Wireguard {
    /// This node's public key for traffic by IPv4; absent where WireGuard is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_key: Option<String>,
    /// This node's public key for traffic by IPv6; absent where WireGuard is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_key_v6: Option<String>,
    /// The nodes that traffic goes to encrypted.
    pub(crate) sessions: Vec<WireguardSession>,
}

/// A node that traffic goes to encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct WireguardSession {
    /// Its address.
    pub(crate) peer: String,
    /// Its public key.
    pub(crate) public_key: String,
    /// There is a session. Without one VPP makes one when there is something to send.
    pub(crate) established: bool,
}

/// What an audit found: VPP was read and compared with what was put into it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Audited {
    /// Counts audits, from 1.
    pub(crate) number: u64,
    /// Objects that were missing, superfluous or not as they had been put. They have been repaired; what could not be
    /// is among the blocked objects.
    pub(crate) found: u64,
    /// How many of them had been found by the audit before, too.
    pub(crate) again: u64,
    /// How many of those had been changed or taken away anew after they had been put right: another writer is at work.
    pub(crate) disputed: u64,
    /// The first ones of them, those that are disputed before the others.
    pub(crate) objects: Vec<String>,
}

/// Objects of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Count {
    /// The kind.
    pub(crate) kind: String,
    /// Wanted.
    pub(crate) desired: u64,
    /// There, wanted by this agent or not: of tables and the uplink also what others made.
    pub(crate) present: u64,
    /// To be made, changed or removed, or under way.
    pub(crate) pending: u64,
    /// Can't be made now.
    pub(crate) blocked: u64,
}

/// An object that is not as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Unsettled {
    /// The object.
    pub(crate) object: String,
    /// The value that it has, or shall have; absent where it has none that could be told.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) value: String,
    /// `pending` or `blocked`.
    pub(crate) state: String,
    /// Of a pending one what becomes of it, of a blocked one why.
    pub(crate) reason: String,
    /// Of a blocked one: how often it has been tried in vain.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) attempts: u8,
    /// Of a blocked one: seconds until it, or what it waits for, is tried next; absent where that is not a matter of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_try_seconds: Option<u64>,
}

/// An object of VPP that is wanted or there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct VppObject {
    /// Its kind.
    pub(crate) kind: String,
    /// The object.
    pub(crate) object: String,
    /// The value that it has, or shall have; absent where it has none that could be told.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) value: String,
    /// Whether somebody wants it.
    pub(crate) wanted: bool,
    /// `present`, `pending`, `blocked`, `unknown` while VPP is away, `left-over` of an earlier run, or `lingering` before it
    /// goes.
    pub(crate) state: String,
    /// Of a blocked one: why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// Of a blocked one: how often it has been tried in vain.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) attempts: u8,
    /// Of a blocked one: seconds until it, or what it waits for, is tried next; absent where that is not a matter of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_try_seconds: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// Something wrong with what was configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Problem {
    /// `error`: no effect, or the last good version stays; `warning`: in force all the same.
    pub(crate) severity: String,
    /// The object's kind.
    pub(crate) kind: String,
    /// The object's name.
    pub(crate) name: String,
    /// The field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) field: String,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// The line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
    /// What is wrong.
    pub(crate) reason: String,
    /// What would put it right.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) remedy: String,
}
