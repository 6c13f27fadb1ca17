//! Set-up of the log: one line of text or JSON for each event, to standard error, with a level that can change while
//! the process runs.

use std::io::IsTerminal;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

/// What is logged and how.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogSettings {
    /// What is logged.
    pub(crate) level: LogLevel,
    /// How.
    pub(crate) format: LogFormat,
}

/// The least important events that are still logged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogLevel(LevelFilter);

impl Default for LogLevel {
    fn default() -> Self {
        Self(LevelFilter::INFO)
    }
}

impl LogLevel {
    /// A level by name; the names that other agents use are known too.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(Self(match text.to_ascii_lowercase().as_str() {
            "panic" | "fatal" | "error" => LevelFilter::ERROR,
            "warn" | "warning" => LevelFilter::WARN,
            "info" => LevelFilter::INFO,
            "debug" => LevelFilter::DEBUG,
            "trace" => LevelFilter::TRACE,
            _ => return None,
        }))
    }
}

/// How an event is written.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For machines: one JSON object a line.
    Json,
}

/// Changes the level of the running log.
#[derive(Clone, Debug)]
pub(crate) struct LogControl(reload::Handle<LevelFilter, Registry>);

impl LogControl {
    /// From now on, log this.
    pub(crate) fn set_level(&self, level: LogLevel) {
        // Fails only after the log itself is gone.
        let _ = self.0.reload(level.0);
    }
}

/// Begin to log. Called once, before anything logs.
pub(crate) fn start(settings: LogSettings) -> LogControl {
    let (filter, handle) = reload::Layer::new(settings.level.0);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let layer = match settings.format {
        LogFormat::Text => layer.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => layer.json().boxed(),
    };
    // A second start, as in tests, keeps the first log.
    let _ = tracing_subscriber::registry().with(filter).with(layer).try_init();
    LogControl(handle)
}
