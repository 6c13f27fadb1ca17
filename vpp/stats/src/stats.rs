//! What is worth knowing, by name.

use std::collections::BTreeMap;
use std::path::Path;

use crate::segment::{Entry, EntryKind, Segment, StatsError};

/// The group of interface counters.
const INTERFACES: &str = "/if/";
const INTERFACE_NAMES: &str = "/if/names";
/// The group of error counters, each a link.
const ERRORS: &str = "/err/";

/// A connection to the statistics of one VPP process. The directory is read once, and again when it has changed.
#[derive(Debug)]
pub struct Stats {
    segment: Segment,
    directory: Directory,
}

#[derive(Debug, Default)]
struct Directory {
    /// `None` before it was read.
    epoch: Option<u64>,
    entries: Vec<Entry>,
    by_name: BTreeMap<Box<str>, usize>,
}

/// The counters of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Its index in VPP.
    pub sw_if_index: u32,
    /// Its name.
    pub name: Box<str>,
    /// By name, as `rx_packets`, `rx_bytes`, `rx_error`, `drops`.
    pub counters: BTreeMap<Box<str>, u64>,
}

impl Stats {
    /// Connects to the statistics socket at `path`. Once VPP has restarted this reads an old segment: connect again when the
    /// API's connection has ended, or [`Self::scalar`] of `/sys/heartbeat` stands still for more than 10 s.
    ///
    /// # Errors
    /// As [`Segment::connect`].
    pub fn connect(path: &Path) -> Result<Self, StatsError> {
        Segment::connect(path).map(Self::new)
    }

    /// Of a segment.
    #[must_use]
    pub fn new(segment: Segment) -> Self {
        Self { segment, directory: Directory::default() }
    }

    /// The counters of all interfaces, in order of their indices.
    ///
    /// # Errors
    /// [`StatsError::Corrupt`], [`StatsError::Busy`].
    pub fn interfaces(&mut self) -> Result<Vec<InterfaceCounters>, StatsError> {
        self.read(|segment, directory| {
            let Some(names) = directory.entry(INTERFACE_NAMES) else {
                return Ok(Vec::new());
            };
            let mut interfaces: Vec<Option<InterfaceCounters>> = segment
                .names(names)?
                .into_iter()
                .zip(0..)
                .map(|(name, sw_if_index)| {
                    name.map(|name| InterfaceCounters { sw_if_index, name, counters: BTreeMap::new() })
                })
                .collect();
            let mut put = |name: String, values: Vec<u64>| {
                for (interface, value) in interfaces.iter_mut().zip(values) {
                    if let Some(interface) = interface {
                        interface.counters.insert(name.clone().into(), value);
                    }
                }
            };
            for entry in directory.entries.iter() {
                let Some(name) = entry.name.strip_prefix(INTERFACES) else {
                    continue;
                };
                match entry.kind {
                    EntryKind::Simple => put(metric_name("", name), segment.simple(entry)?),
                    EntryKind::Combined => {
                        let (packets, bytes) = segment.combined(entry)?.into_iter().unzip();
                        put(metric_name("", name) + "_packets", packets);
                        put(metric_name("", name) + "_bytes", bytes);
                    }
                    EntryKind::Number | EntryKind::Names | EntryKind::Link | EntryKind::Other => {}
                }
            }
            Ok(interfaces.into_iter().flatten().collect())
        })
    }

    /// How often packets were dropped for which reason: `<node>/<reason>`, those that have happened.
    ///
    /// # Errors
    /// [`StatsError::Corrupt`], [`StatsError::Busy`].
    pub fn errors(&mut self) -> Result<BTreeMap<Box<str>, u64>, StatsError> {
        self.read(|segment, directory| {
            let mut errors = BTreeMap::new();
            for entry in directory.entries.iter().filter(|entry| entry.kind == EntryKind::Link) {
                let Some(name) = entry.name.strip_prefix(ERRORS) else {
                    continue;
                };
                let (at, element) = Segment::link(entry);
                let Some(target) =
                    directory.entries.get(at).filter(|target| target.kind == EntryKind::Simple)
                else {
                    continue;
                };
                if let Some(count @ 1..) = segment.element(target, element)? {
                    errors.insert(name.into(), count);
                }
            }
            Ok(errors)
        })
    }

    /// A single number, for example `/sys/vector_rate` or `/sys/heartbeat`; `None` if VPP has none of that name.
    ///
    /// # Errors
    /// [`StatsError::Corrupt`], [`StatsError::Busy`].
    pub fn scalar(&mut self, name: &str) -> Result<Option<u64>, StatsError> {
        // The value stands in the directory, which is cached: it is read anew.
        self.directory.epoch = None;
        self.read(|_, directory| {
            let entry = directory.entry(name).filter(|entry| entry.kind == EntryKind::Number);
            Ok(entry.map(Segment::number))
        })
    }

    /// Reads under the protocol, with a directory that fits.
    fn read<T>(
        &mut self,
        read: impl Fn(&Segment, &Directory) -> Result<T, StatsError>,
    ) -> Result<T, StatsError> {
        let Self { segment, directory } = self;
        let (result, _) = segment.consistent(|segment| {
            let epoch = segment.epoch()?;
            if directory.epoch != Some(epoch) {
                directory.epoch = None;
                directory.entries = segment.directory()?;
                directory.by_name = directory
                    .entries
                    .iter()
                    .enumerate()
                    .map(|(at, entry)| (entry.name.clone(), at))
                    .collect();
                directory.epoch = Some(epoch);
            }
            read(segment, directory)
        })?;
        Ok(result)
    }
}

impl Directory {
    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.get(*self.by_name.get(name)?)
    }
}

/// VPP's name of a counter as that of a metric: `prefix`, then the name with `_` in place of what a metric's name cannot have.
#[must_use]
pub fn metric_name(prefix: &str, name: &str) -> String {
    let name = name.trim_start_matches('/');
    prefix.chars().chain(name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })).collect()
}
