//! The agent's settings: its configuration file and its environment, read once into [`Settings`].
//!
//! Every key and every variable stands in one table, [`ROWS`]; `--help` prints it. A variable wins over the file. The
//! names of the agent for Calico and VPP that this one replaces are accepted too, JSON ones included. Nothing is read
//! elsewhere, and no value is ever printed.
//!
//! An unknown key of the file is an error. An unknown variable is a warning, as whoever starts the process does not
//! choose all of them: Kubernetes adds some for every Service, and those of a Service called `peregrine` look like ours.

mod srv6;
mod table;

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use table::{JSON_VARIABLES, ROWS, Row, WITHOUT_EFFECT, listen, parse_listen, value};

use agent_core::config::{Encryption, IpsecConfig, RoutePriorities};
use agent_core::model::Psk;
use agent_core::{Srv6Config, Srv6Pools};
use ipnet::IpNet;

use crate::log::LogSettings;
use crate::yaml::{Flaw, Line, Mistake, Tree, Value, documents, nearest};

/// Everything that the agent is told at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Name of this node.
    pub(crate) node: String,
    /// Where manifests are.
    pub(crate) manifests: PathBuf,
    /// Namespace of the Secrets with BGP passwords.
    pub(crate) namespace: String,
    /// VPP; `None` to speak BGP only.
    pub(crate) vpp: Option<PathBuf>,
    /// Name of the uplink in VPP; found by the node's address where absent.
    pub(crate) uplink: Option<String>,
    /// What VPP's manager wrote, where there is one.
    pub(crate) info_file: Option<PathBuf>,
    /// VPP's statistics socket, where there may be one.
    pub(crate) stats: Option<PathBuf>,
    /// How long VPP may be away before own prefixes are withdrawn.
    pub(crate) loss_grace: Duration,
    /// How often all that VPP holds is compared with what is wanted; never where `None`.
    pub(crate) audit: Option<Duration>,
    /// IP versions of BGP sessions.
    pub(crate) mode: Mode,
    /// What priorities become on the wire.
    pub(crate) priorities: RoutePriorities,
    /// What becomes of pods' traffic where WireGuard is on.
    pub(crate) encryption: Encryption,
    /// Ranges of services, besides those of the cluster's settings.
    pub(crate) service_prefixes: Vec<IpNet>,
    /// IPsec, where it is on.
    pub(crate) ipsec: Option<IpsecConfig>,
    /// BGP Identifier where it shall not be the node's IPv4 address.
    pub(crate) router_id: RouterIdChoice,
    /// Unix socket that the query commands ask.
    pub(crate) api: PathBuf,
    /// Folder for what must outlive a restart.
    pub(crate) state: PathBuf,
    /// Where `/liveness`, `/readiness` and `/status` are served.
    pub(crate) health: Option<SocketAddr>,
    /// Where `/metrics` is served.
    pub(crate) metrics: Option<SocketAddr>,
    /// What is logged and how.
    pub(crate) log: LogSettings,
    /// SRv6, where it is on.
    pub(crate) srv6: Option<Srv6Config>,
    /// Whether there are networks beside the default one.
    pub(crate) multinet: bool,
    /// Where its SIDs came from, while it is off.
    pub(crate) former_sids: Option<Srv6Pools>,
}

impl Settings {
    /// The keys of the settings that are others in `new`.
    pub(crate) fn differences(&self, new: &Self) -> Vec<&'static str> {
        // Every field, so that a new one is not forgotten.
        let Self {
            node,
            manifests,
            namespace,
            vpp,
            uplink,
            info_file,
            stats,
            loss_grace,
            audit,
            mode,
            priorities,
            encryption,
            service_prefixes,
            ipsec,
            router_id,
            api,
            state,
            health,
            metrics,
            log,
            srv6,
            multinet,
            former_sids: _,
        } = self;
        [
            ("node", *node != new.node),
            ("datastore", *manifests != new.manifests),
            ("namespace", *namespace != new.namespace),
            ("vpp.socket", *vpp != new.vpp),
            ("vpp.uplink", *uplink != new.uplink),
            ("vpp.info-file", *info_file != new.info_file),
            ("vpp.stats", *stats != new.stats),
            ("vpp.loss-grace", *loss_grace != new.loss_grace),
            ("vpp.audit", *audit != new.audit),
            ("bgp.mode", *mode != new.mode),
            ("bgp.route-priority", *priorities != new.priorities),
            ("wireguard.traffic", encryption.what != new.encryption.what),
            ("wireguard.or-drop", encryption.or_drop != new.encryption.or_drop),
            ("service-prefixes", *service_prefixes != new.service_prefixes),
            ("features.ipsec or ipsec", *ipsec != new.ipsec),
            ("bgp.router-id", *router_id != new.router_id),
            ("api", *api != new.api),
            ("state", *state != new.state),
            ("health", *health != new.health),
            ("metrics", *metrics != new.metrics),
            ("log.level", log.level != new.log.level),
            ("log.format", log.format != new.log.format),
            ("features.multinet", *multinet != new.multinet),
            ("features.srv6", srv6.is_some() != new.srv6.is_some()),
            ("srv6", srv6.is_some() && new.srv6.is_some() && *srv6 != new.srv6),
        ]
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect()
    }
}

/// IP versions of BGP sessions.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Both, as far as the node has addresses.
    #[default]
    DualStack,
    /// IPv4 only.
    V4Only,
    /// IPv6 only.
    V6Only,
}

/// Where the BGP Identifier comes from.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum RouterIdChoice {
    /// The node's IPv4 address, else the hash.
    #[default]
    Address,
    /// A hash of the node's name.
    Hash,
    /// This one.
    Is(Ipv4Addr),
}

/// A mistake in the settings, where it is, and whether the agent can start all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SettingsFault {
    /// The file can't be read.
    #[error("{file}: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system says.
        reason: String,
    },
    /// The file is no YAML.
    #[error("{file}:{line}: {reason}")]
    Syntax {
        /// The file.
        file: String,
        /// The line.
        line: Line,
        /// What is wrong.
        reason: String,
    },
    /// A key of the file.
    #[error("{file}:{}: {}: {}", .flaw.line, .flaw.field, .flaw.mistake)]
    Key {
        /// The file.
        file: String,
        /// What is wrong with which key.
        flaw: Flaw,
    },
    /// An environment variable.
    #[error("environment variable {name}: {mistake}")]
    Variable {
        /// Its name.
        name: String,
        /// What is wrong.
        mistake: Mistake,
    },
    /// An environment variable that nobody reads, perhaps misspelt.
    #[error("environment variable {name} is unknown{}", near.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default())]
    UnknownVariable {
        /// Its name.
        name: String,
        /// The known variable with the nearest name.
        near: Option<&'static str>,
    },
    /// A setting that must be given is given nowhere.
    #[error("{key} is required: set it in the configuration file, or set {variable}")]
    Missing {
        /// The key.
        key: &'static str,
        /// The variable that sets it too.
        variable: &'static str,
    },
    /// Settings that are good each by itself, and not together.
    #[error("{key}: {reason}")]
    Contradiction {
        /// The key that is most likely wrong.
        key: &'static str,
        /// Why.
        reason: String,
    },
}

impl SettingsFault {
    /// Whether the agent can start all the same.
    pub(crate) fn is_warning(&self) -> bool {
        match self {
            Self::Key { flaw, .. } => flaw.mistake.is_warning(),
            Self::Variable { mistake, .. } => mistake.is_warning(),
            Self::UnknownVariable { .. } => true,
            Self::Unreadable { .. }
            | Self::Syntax { .. }
            | Self::Missing { .. }
            | Self::Contradiction { .. } => false,
        }
    }
}

/// What was read, and everything that is wrong with it.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The settings where nothing but warnings was found.
    pub(crate) settings: Option<Settings>,
    /// All mistakes and warnings.
    pub(crate) faults: Vec<SettingsFault>,
}

/// Read the file, if there is one, and the variables over it.
pub(crate) fn load(file: Option<&Path>, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Loaded {
    let mut draft = Draft::default();
    let mut faults = Vec::new();
    if let Some(path) = file {
        let file = path.to_string_lossy().into_owned();
        match std::fs::read_to_string(path) {
            Ok(text) => read_file(&file, &text, &mut draft, &mut faults),
            Err(error) => faults.push(SettingsFault::Unreadable { file, reason: error.to_string() }),
        }
    }
    read_variables(variables, &mut draft, &mut faults);
    let complete = faults.iter().all(SettingsFault::is_warning);
    // A mistake elsewhere may be the very key that is missing.
    let settings = if complete { draft.finish(&mut faults) } else { None };
    Loaded { settings, faults }
}

/// Everything that is wrong with the text of a settings file by itself. Keys that it lacks may be set by variables, and are
/// none of it.
pub(crate) fn check(file: &str, text: &str) -> Vec<SettingsFault> {
    let mut faults = Vec::new();
    read_file(file, text, &mut Draft::default(), &mut faults);
    faults
}

/// Whether a map of a file has keys as the settings of an agent do, and none that manifests or a speaker's file begin with.
pub(crate) fn is_settings(keys: &[&str]) -> bool {
    const ONLY_HERE: [&str; 5] = ["node", "datastore", "vpp", "health", "state"];
    keys.iter().any(|key| ONLY_HERE.contains(key))
        && !keys.iter().any(|key| ["apiVersion", "kind"].contains(key))
}

/// The table of settings as text, for `--help`.
pub(crate) fn help() -> String {
    let mut text = String::from("Settings (key of the file, environment variables, default):\n");
    for row in ROWS.iter().filter(|row| row.in_force) {
        let default = if row.default.is_empty() { String::new() } else { format!(" [{}]", row.default) };
        text += &format!("  {}{default}\n      {}\n      {}\n", row.key, row.variables.join(", "), row.help);
    }
    text += "\nKept for later releases; this one takes the default only:\n";
    for row in ROWS.iter().filter(|row| !row.in_force) {
        text += &format!("  {} [{}]: {}\n", row.key, row.default, row.help);
    }
    text += "\nVariables with JSON in them:\n";
    for (name, help) in JSON_VARIABLES {
        text += &format!("  {name}\n      {help}\n");
    }
    text += "\nAccepted without effect:\n";
    for names in WITHOUT_EFFECT.chunks(2) {
        text += &format!("  {}\n", names.join(", "));
    }
    text
}

/// Settings that may still be incomplete.
#[derive(Debug, Default)]
struct Draft {
    node: Option<String>,
    manifests: Option<PathBuf>,
    namespace: Option<String>,
    vpp: Option<Option<PathBuf>>,
    uplink: Option<String>,
    info_file: Option<Option<PathBuf>>,
    stats: Option<Option<PathBuf>>,
    loss_grace: Option<Duration>,
    audit: Option<Option<Duration>>,
    mode: Mode,
    priorities: RoutePriorities,
    encryption: Encryption,
    service_prefixes: Option<Vec<IpNet>>,
    ipsec_on: Option<bool>,
    ipsec: IpsecDraft,
    psk: Option<Psk>,
    router_id: RouterIdChoice,
    api: Option<PathBuf>,
    state: Option<PathBuf>,
    health: Option<Option<SocketAddr>>,
    metrics: Option<Option<SocketAddr>>,
    calico_metrics: CalicoMetrics,
    log: LogSettings,
    srv6: srv6::Draft,
    multinet: bool,
}

/// What is given of IPsec besides its key.
#[derive(Debug, Default)]
struct IpsecDraft {
    extra_addresses: Option<u8>,
    cross_tunnels: Option<bool>,
    async_threads: Option<u32>,
}

/// Metrics as the variables of the agent for Calico and VPP switch them on. The key wins.
#[derive(Debug, Default)]
struct CalicoMetrics {
    on: bool,
    address: Option<Option<SocketAddr>>,
}

impl CalicoMetrics {
    fn address(&self) -> Option<SocketAddr> {
        self.on.then(|| self.address.unwrap_or_else(|| parse_listen(":8888")))?
    }
}

impl Draft {
    fn finish(self, faults: &mut Vec<SettingsFault>) -> Option<Settings> {
        if self.node.is_none() {
            faults.push(SettingsFault::Missing { key: "node", variable: "NODENAME" });
        }
        if self.manifests.is_none() {
            faults.push(SettingsFault::Missing { key: "datastore", variable: "PEREGRINE_DATASTORE" });
        }
        let before = faults.len();
        let former_sids = self.srv6.former();
        let srv6 = self.srv6.finish(faults);
        if faults.len() > before {
            return None;
        }
        Some(Settings {
            node: self.node?,
            manifests: self.manifests?,
            namespace: self.namespace.unwrap_or_else(|| "calico-vpp-dataplane".into()),
            vpp: self.vpp.unwrap_or_else(|| Some("/var/run/vpp/vpp-api.sock".into())),
            uplink: self.uplink,
            info_file: self.info_file.unwrap_or_else(|| Some("/var/run/vpp/vppmanagerinfofile".into())),
            stats: self.stats.unwrap_or_else(|| Some("/var/run/vpp/stats.sock".into())),
            loss_grace: self.loss_grace.unwrap_or(Duration::from_secs(5)),
            audit: self.audit.unwrap_or(Some(Duration::from_secs(300))),
            mode: self.mode,
            priorities: self.priorities,
            encryption: self.encryption,
            service_prefixes: self.service_prefixes.unwrap_or_default(),
            ipsec: self.ipsec_on.unwrap_or_default().then_some(IpsecConfig {
                psk: self.psk,
                extra_addresses: self.ipsec.extra_addresses.unwrap_or_default(),
                cross_tunnels: self.ipsec.cross_tunnels.unwrap_or_default(),
                async_threads: self.ipsec.async_threads.unwrap_or_default(),
            }),
            router_id: self.router_id,
            api: self.api.unwrap_or_else(|| crate::cli::DEFAULT_SOCKET.into()),
            state: self.state.unwrap_or_else(|| "/var/lib/peregrine".into()),
            health: self.health.unwrap_or_else(|| parse_listen(":9090")),
            metrics: self.metrics.unwrap_or_else(|| self.calico_metrics.address()),
            log: self.log,
            srv6,
            multinet: self.multinet,
            former_sids,
        })
    }
}

fn read_file(file: &str, text: &str, draft: &mut Draft, faults: &mut Vec<SettingsFault>) {
    let documents = match documents(text) {
        Ok(documents) => documents,
        Err(error) => {
            let (line, reason) = (error.line(), error.to_string());
            return faults.push(SettingsFault::Syntax { file: file.to_owned(), line, reason });
        }
    };
    let mut flaws = Vec::new();
    for document in &documents {
        match &document.value {
            Value::Map(_) => read_map(document, "", draft, &mut flaws),
            Value::Null | Value::Scalar { .. } | Value::List(_) => {
                let (line, found) = (document.line, document.value.noun());
                let mistake = Mistake::Shape { wanted: "a map of settings", found };
                flaws.push(Flaw { line, field: "the file".into(), mistake });
            }
        }
    }
    faults.extend(flaws.into_iter().map(|flaw| SettingsFault::Key { file: file.to_owned(), flaw }));
}

fn read_map(tree: &Tree, prefix: &str, draft: &mut Draft, flaws: &mut Vec<Flaw>) {
    let Value::Map(entries) = &tree.value else { return };
    for entry in entries {
        let key = if prefix.is_empty() { entry.key.clone() } else { format!("{prefix}.{}", entry.key) };
        let row = ROWS.iter().find(|row| row.key == key);
        let is_group = row.is_none() && ROWS.iter().any(|row| is_inside(row.key, &key));
        let mistake = match (&entry.value.value, row) {
            (Value::Null, _) if row.is_some() || is_group => None,
            (Value::Scalar { text, .. }, Some(row)) => (row.set)(draft, text).err(),
            (Value::Map(_), None) if is_group => {
                read_map(&entry.value, &key, draft, flaws);
                None
            }
            (other, Some(_)) => Some(Mistake::Shape { wanted: "a single value", found: other.noun() }),
            (other, None) if is_group => Some(Mistake::Shape { wanted: "a map", found: other.noun() }),
            (_, None) => Some(Mistake::Unknown { near: nearest_key(&entry.key, prefix) }),
        };
        flaws.extend(mistake.map(|mistake| Flaw { line: entry.line, field: key, mistake }));
    }
}

fn is_inside(key: &str, group: &str) -> bool {
    key.strip_prefix(group).is_some_and(|rest| rest.starts_with('.'))
}

/// A key of the same map, else any key that ends so.
fn nearest_key(word: &str, prefix: &str) -> Option<String> {
    let here = ROWS.iter().filter_map(|row| {
        let rest =
            if prefix.is_empty() { row.key } else { row.key.strip_prefix(prefix)?.strip_prefix('.')? };
        rest.split('.').next()
    });
    if let Some(near) = nearest(word, here) {
        return Some(near.to_owned());
    }
    let last = |row: &Row| row.key.rsplit('.').next().unwrap_or(row.key);
    let near = nearest(word, ROWS.iter().map(last))?;
    ROWS.iter().find(|row| last(row) == near).map(|row| row.key.to_owned())
}

/// What names of our own variables begin with.
const PREFIX: &str = "PEREGRINE_";

fn read_variables(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    draft: &mut Draft,
    faults: &mut Vec<SettingsFault>,
) {
    // Our names are ASCII: one that is no text is none of them.
    let named = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
    let mut variables: Vec<(String, OsString)> = variables.into_iter().filter_map(named).collect();
    // Where two variables set one key, the one that comes first in its row wins: it is applied last.
    let rank = |name: &str| {
        ROWS.iter().filter_map(|row| row.variables.iter().position(|known| *known == name)).max()
    };
    variables.sort_by(|(a, _), (b, _)| rank(b).cmp(&rank(a)).then_with(|| a.cmp(b)));
    for (name, text) in variables {
        // Kubernetes manifests can't unset a variable, but leave it empty.
        if text.is_empty() {
            continue;
        }
        let row = ROWS.iter().find(|row| row.variables.contains(&&*name));
        let json = JSON_VARIABLES.iter().any(|(known, _)| *known == name);
        let mistakes = match (row, text.to_str()) {
            (Some(row), Some(text)) if row.is_secret() => (row.set)(draft, text).err().into_iter().collect(),
            (Some(row), None) if row.is_secret() => vec![value("text in UTF-8", "what it is")],
            (Some(row), Some(text)) => (row.set)(draft, text.trim()).err().into_iter().collect(),
            (None, Some(text)) if json => read_json(&name, text, draft),
            (_, None) if row.is_some() || json => vec![value("text in UTF-8", &text.to_string_lossy())],
            (None, text) if name.starts_with(PREFIX) => {
                if !is_service_link(&name, text.unwrap_or_default()) {
                    let near = nearest_variable(&name);
                    faults.push(SettingsFault::UnknownVariable { name: name.clone(), near });
                }
                Vec::new()
            }
            _ if name.starts_with("CALICOVPP_") && !WITHOUT_EFFECT.contains(&&*name) => {
                vec![Mistake::Unused]
            }
            _ => Vec::new(),
        };
        faults.extend(
            mistakes.into_iter().map(|mistake| SettingsFault::Variable { name: name.clone(), mistake }),
        );
    }
}

/// The variable of ours that was most likely meant, by what follows the prefix that all share.
fn nearest_variable(name: &str) -> Option<&'static str> {
    let known = || ROWS.iter().flat_map(|row| row.variables.iter().copied());
    let near = nearest(name.strip_prefix(PREFIX)?, known().filter_map(|known| known.strip_prefix(PREFIX)))?;
    known().find(|known| known.strip_prefix(PREFIX) == Some(near))
}

/// Whether Kubernetes made this variable for a Service: `X_SERVICE_HOST`, `X_SERVICE_PORT`, `X_SERVICE_PORT_HTTP`,
/// `X_PORT` with a URL in it, `X_PORT_9090_TCP`, `X_PORT_9090_TCP_ADDR` and the like.
fn is_service_link(name: &str, text: &str) -> bool {
    const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
    let of_port = |rest: &str| {
        let mut parts = rest.split('_');
        let port = parts.next().is_some_and(|port| port.parse::<u16>().is_ok());
        let protocol = parts.next().is_some_and(|protocol| PROTOCOLS.contains(&protocol));
        let detail = parts.next().is_none_or(|detail| ["PROTO", "PORT", "ADDR"].contains(&detail));
        port && protocol && detail && parts.next().is_none()
    };
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || (name.ends_with("_PORT") && text.contains("://"))
        || name.match_indices("_PORT_").any(|(at, found)| name.get(at + found.len()..).is_some_and(of_port))
}

/// The fields of a JSON variable that mean something here.
fn read_json(name: &str, text: &str, draft: &mut Draft) -> Vec<Mistake> {
    let entries = match documents(text).map(|mut documents| documents.pop().map(|tree| tree.value)) {
        Ok(Some(Value::Map(entries))) => entries,
        Ok(None) => return Vec::new(),
        Ok(Some(_)) | Err(_) => return vec![value("a JSON object", text)],
    };
    let key_of = |field: &str| match (name, field) {
        ("CALICOVPP_FEATURE_GATES", "srv6Enabled") => Some("features.srv6"),
        ("CALICOVPP_FEATURE_GATES", "multinetEnabled") => Some("features.multinet"),
        ("CALICOVPP_FEATURE_GATES", "ipsecEnabled") => Some("features.ipsec"),
        ("CALICOVPP_IPSEC", "crossIPSecTunnels") => Some("ipsec.cross-tunnels"),
        ("CALICOVPP_IPSEC", "nbAsyncCryptoThreads") => Some("ipsec.async-crypto-threads"),
        ("CALICOVPP_IPSEC", "extraAddresses") => Some("ipsec.extra-addresses"),
        ("CALICOVPP_SRV6", "localsidPool") => Some("srv6.localsid-pool"),
        ("CALICOVPP_SRV6", "policyPool") => Some("srv6.policy-pool"),
        ("CALICOVPP_INITIAL_CONFIG", "healthCheckPort") => Some("health"),
        _ => None,
    };
    let mut mistakes = Vec::new();
    for entry in entries {
        if let Value::Scalar { text, .. } = &entry.value.value {
            mistakes.extend(calico_metrics(name, &entry.key, text, &mut draft.calico_metrics).err());
        }
        let row = key_of(&entry.key).and_then(|key| ROWS.iter().find(|row| row.key == key));
        if let (Some(row), Value::Scalar { text, .. }) = (row, &entry.value.value) {
            let text = if row.key == "health" { format!(":{text}") } else { text.clone() };
            mistakes.extend((row.set)(draft, &text).err());
        }
    }
    mistakes
}

/// The two fields that are about metrics.
fn calico_metrics(name: &str, field: &str, text: &str, draft: &mut CalicoMetrics) -> Result<(), Mistake> {
    match (name, field) {
        ("CALICOVPP_FEATURE_GATES", "prometheusEnabled") => {
            draft.on = text.parse().map_err(|_| value("true or false", text))?;
        }
        ("CALICOVPP_INITIAL_CONFIG", "prometheusListenEndpoint") => draft.address = Some(listen(text)?),
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests;
