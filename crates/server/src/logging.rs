//! The server's own log, on standard error; and traces, in builds that can send them.

#[cfg(feature = "otel")]
mod traces;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use crate::config::{Log, LogFormat, LogLevel};

/// The variables that name a collector of traces, by OpenTelemetry's rules.
const COLLECTORS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// Held while there is something to say.
pub struct Logging {
    #[cfg(feature = "otel")]
    traces: Option<traces::Traces>,
}

/// To be called once, before a runtime is there.
pub fn begin(log: &Log) -> Result<Logging, String> {
    let named = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_wanted = COLLECTORS.iter().any(named);
    let layers = tracing_subscriber::registry().with(to_stderr(log));
    #[cfg(feature = "otel")]
    {
        let traces = is_wanted.then(traces::Traces::open).transpose()?;
        layers.with(traces.as_ref().map(traces::Traces::layer)).init();
        Ok(Logging { traces })
    }
    #[cfg(not(feature = "otel"))]
    {
        layers.init();
        if is_wanted {
            tracing::warn!("no traces are sent: this program was built without the feature otel");
        }
        Ok(Logging {})
    }
}

impl Logging {
    /// What is left to send is sent.
    pub fn end(self) {
        #[cfg(feature = "otel")]
        if let Some(traces) = self.traces {
            traces.close();
        }
    }
}

fn to_stderr(log: &Log) -> Box<dyn Layer<Registry> + Send + Sync> {
    let level = match log.level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
    };
    #[cfg(feature = "nats")]
    let level = without_chatter(level);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match log.format {
        LogFormat::Human => layer.with_target(false).with_filter(level).boxed(),
        LogFormat::Json => layer.json().with_filter(level).boxed(),
    }
}

/// What the client of NATS says of its connection we say ourselves.
#[cfg(feature = "nats")]
fn without_chatter(level: LevelFilter) -> tracing_subscriber::filter::Targets {
    let chatter = match level {
        LevelFilter::INFO => LevelFilter::WARN,
        level => level,
    };
    tracing_subscriber::filter::Targets::new()
        .with_default(level)
        .with_target("async_nats", chatter)
}
