//! Sends traces of turns, model calls, tools and waits to an OpenTelemetry collector. Where that is,
//! and with which headers, its library reads from OpenTelemetry's own variables.
//!
//! Only our own spans go out, never the server's log.

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use polyloop_agent::actor::SPAN_TARGET;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

/// What sends the spans; dropping it would lose the last ones.
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// To be called before any runtime is there: what sends them has a thread of its own.
    pub fn open() -> Result<Traces, String> {
        let exporter = SpanExporter::builder().with_http().build();
        let exporter = exporter.map_err(|error| format!("OpenTelemetry: {error}"))?;
        let mut resource = Resource::builder();
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("polyloop");
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Traces(provider))
    }

    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let ours = Targets::new().with_target(SPAN_TARGET, LevelFilter::TRACE);
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("polyloop"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_filter(ours)
    }

    /// Sends what is left.
    pub fn close(self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}
