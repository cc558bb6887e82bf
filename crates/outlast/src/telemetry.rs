//! One span of `tracing` for each command, in the words of OpenTelemetry's conventions for processes.

use outlast_core::ending::End;
use outlast_core::policy::redact::Redactor;
use outlast_core::record::ExitRecord;
use outlast_core::request::Request;
use tracing::Span;
use tracing::field::Empty;

/// The span of a command, which is as long as this is held.
#[derive(Debug)]
pub(crate) struct CommandSpan(Span);

impl CommandSpan {
    /// Begins within the span that its caller is in; none where nobody subscribes to it.
    pub(crate) fn begin(
        request: &Request,
        kind: &str,
        pid: Option<u32>,
        redactor: Option<&Redactor>,
    ) -> Option<CommandSpan> {
        let span = tracing::info_span!(
            target: "outlast",
            "command",
            otel.name = Empty,
            otel.kind = "client",
            otel.status_code = Empty,
            process.command = Empty,
            process.command_line = Empty,
            process.executable.name = Empty,
            process.working_directory = Empty,
            process.pid = pid,
            process.exit.code = Empty,
            error.r#type = Empty,
            outlast.session.id = %request.session,
            outlast.command.id = %request.id,
            outlast.command.kind = kind,
            outlast.consumer = request.consumer.as_str(),
        );
        if span.is_disabled() {
            return None;
        }
        let shown = |text: String| redactor.map_or_else(|| text.clone(), |redactor| redactor.text(&text));
        let program = shown(request.argv.first().map(|word| word.lossy()).unwrap_or_default());
        let name = program.rsplit('/').next().unwrap_or_default();
        span.record("otel.name", name).record("process.executable.name", name);
        span.record("process.command", program.as_str());
        span.record("process.command_line", shown(request.line()).as_str());
        span.record("process.working_directory", shown(request.cwd.lossy()).as_str());
        Some(CommandSpan(span))
    }

    /// Its end.
    pub(crate) fn end(self, exit: &ExitRecord) {
        let CommandSpan(span) = self;
        if let Some(code) = exit.end.exit_code() {
            span.record("process.exit.code", code);
        }
        if !exit.is_ok() {
            span.record("error.type", error_type(&exit.end)).record("otel.status_code", "ERROR");
        }
    }
}

/// One of few words.
fn error_type(end: &End) -> &'static str {
    match end {
        // Its code, or what is held against its records, says what is wrong.
        End::Exited { .. } => "exit_code",
        end => end.kind(),
    }
}
