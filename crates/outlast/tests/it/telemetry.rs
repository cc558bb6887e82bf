//! Spans: one for each command, in the words of OpenTelemetry's conventions.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use outlast::{Config, Policy, Runtime, SessionOptions, StopOptions, TaskRequest};
use tracing::field::{Field, Visit};
use tracing::instrument::Instrument;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_core::span::Current;

use crate::world::{World, config, finished, in_world, soon, start};

/// What is known of one span.
#[derive(Clone, Debug, Default)]
struct Span {
    name: &'static str,
    metadata: Option<&'static Metadata<'static>>,
    parent: Option<u64>,
    fields: BTreeMap<&'static str, String>,
    references: usize,
    closed: bool,
}

/// A subscriber that keeps every span.
#[derive(Clone, Default)]
struct Keeps {
    spans: Arc<Mutex<BTreeMap<u64, Span>>>,
    last: Arc<AtomicU64>,
    entered: Arc<Mutex<Vec<(ThreadId, u64)>>>,
}

impl Keeps {
    /// The span that this thread is in.
    fn current(&self) -> Option<u64> {
        let entered = self.entered.lock().expect("the entered");
        entered.iter().rev().find(|(of, _)| *of == thread::current().id()).map(|(_, id)| *id)
    }

    fn with<T>(&self, id: &Id, change: impl FnOnce(&mut Span) -> T) -> T {
        change(self.spans.lock().expect("the spans").entry(id.into_u64()).or_default())
    }

    /// The spans of commands, in the order of their beginning.
    fn commands(&self) -> Vec<Span> {
        let spans = self.spans.lock().expect("the spans");
        spans.values().filter(|span| span.name == "command").cloned().collect()
    }

    /// Waits until so many spans of commands are closed; the last of them.
    async fn closed(&self, count: usize) -> Span {
        soon("the span is closed", async || self.commands().iter().filter(|span| span.closed).count() == count).await;
        let all = self.commands();
        assert_eq!(all.len(), count, "one span for each command: {all:?}");
        all.into_iter().last().expect("a span")
    }
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Keeps {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = Id::from_u64(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        self.with(&id, |kept| {
            (kept.name, kept.metadata, kept.references) = (span.metadata().name(), Some(span.metadata()), 1);
            kept.parent = self.current();
            span.record(&mut Fields(&mut kept.fields));
        });
        id
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.with(id, |kept| values.record(&mut Fields(&mut kept.fields)));
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.with(id, |kept| kept.references += 1);
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        self.with(&id, |kept| {
            kept.references -= 1;
            kept.closed = kept.references == 0;
            kept.closed
        })
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}

    fn current_span(&self) -> Current {
        let Some(id) = self.current().map(Id::from_u64) else { return Current::none() };
        let metadata = self.with(&id, |kept| kept.metadata).expect("it was made");
        Current::new(id, metadata)
    }

    fn enter(&self, id: &Id) {
        self.entered.lock().expect("the entered").push((thread::current().id(), id.into_u64()));
    }

    fn exit(&self, id: &Id) {
        let mut entered = self.entered.lock().expect("the entered");
        let one = (thread::current().id(), id.into_u64());
        let at = entered.iter().rposition(|entered| *entered == one).expect("it was entered");
        entered.remove(at);
    }
}

/// What a span says of these fields; a field that was not recorded is left out.
fn said<'a>(span: &'a Span, names: &[&'static str]) -> Vec<(&'static str, &'a str)> {
    names.iter().filter_map(|name| span.fields.get(name).map(|value| (*name, value.as_str()))).collect()
}

const FACTS: [&str; 6] = [
    "process.executable.name",
    "process.exit.code",
    "error.type",
    "otel.status_code",
    "otel.kind",
    "outlast.command.kind",
];

#[test]
fn one_span_for_each_command_with_the_fields_of_the_conventions() {
    in_world("spans", async |world: World| {
        let policy = Policy { redact: true, ..Policy::default() };
        let runtime = Runtime::open(Config { policy, ..config(&world.state_dir) }).expect("a runtime");
        let session = runtime.create_session(SessionOptions::default()).await.expect("a session");
        // Nobody subscribes: no span, and everything works.
        finished(session.run_to_end(world.shell("true")).await.expect("a run"));
        let keeps = Keeps::default();
        // While there is one subscriber, `tracing` takes for a place that is reached for the first time the word of the thread
        // that reaches it, and those of other tests have no subscriber. Of two it asks both.
        let _second = tracing::Dispatch::new(Keeps::default());
        let _subscribed = tracing::subscriber::set_default(keeps.clone());

        let token = format!("ghp_{}", "a1B2".repeat(9));
        let fine = finished(session.run_to_end(world.shell(&format!("true {token}"))).await.expect("a run")).exit;
        let span = keeps.closed(1).await;
        let ended = [
            ("process.executable.name", "sh"),
            ("process.exit.code", "0"),
            ("otel.kind", "client"),
            ("outlast.command.kind", "process"),
        ];
        assert_eq!(said(&span, &FACTS), ended);
        let leader = fine.leader.expect("it ran").pid.to_string();
        let (id, of) = (fine.id.to_string(), session.id().to_string());
        let names = ["process.pid", "process.command", "outlast.command.id", "outlast.session.id", "otel.name"];
        let expected = [leader.as_str(), "sh", &id, &of, "sh"];
        assert_eq!(said(&span, &names).into_iter().map(|(_, value)| value).collect::<Vec<_>>(), expected);
        let line = &span.fields["process.command_line"];
        assert!(line.starts_with("sh -c true ***") && !line.contains(&token), "{line}");
        assert_eq!(span.fields["process.working_directory"], world.work_dir.display().to_string());

        // In the background its span is as long as it runs, and says what went wrong.
        let failed = start(&world, &session, "while [ ! -e gate ]; do sleep 0.02; done; exit 3").await;
        assert!(!keeps.commands()[1].closed);
        std::fs::write(world.work_dir.join("gate"), "").expect("the gate");
        let span = keeps.closed(2).await;
        assert_eq!(span.fields["outlast.command.id"], failed.id().to_string());
        let names = &FACTS[..4];
        let wrong = |code, kind| {
            [
                ("process.executable.name", "sh"),
                ("process.exit.code", code),
                ("error.type", kind),
                ("otel.status_code", "ERROR"),
            ]
        };
        assert_eq!(said(&span, names), wrong("3", "exit_code"));
        let stopped = start(&world, &session, "exec sleep 60").await;
        stopped.stop(StopOptions::by("model")).await.expect("a stop");
        assert_eq!(said(&keeps.closed(3).await, names), wrong("143", "stopped"));

        // One that cannot be started.
        let mut missing = world.shell("");
        missing.argv = vec!["/does/not/exist".into()];
        finished(session.run_to_end(missing).await.expect("a run"));
        let span = keeps.closed(4).await;
        assert_eq!(said(&span, names)[1..], wrong("127", "spawn_failed")[1..]);
        assert_eq!((span.fields["process.executable.name"].as_str(), span.fields.get("process.pid")), ("exist", None));

        // Within the span of its caller; three that join one command share its span.
        let turn = tracing::info_span!("turn");
        let mut joined = world.shell("while [ ! -e second ]; do sleep 0.02; done");
        joined.join = true;
        let mut callers = Vec::new();
        for _ in 0..3 {
            callers.push(session.run(joined.clone()).await.expect("a run"));
        }
        std::fs::write(world.work_dir.join("second"), "").expect("the gate");
        for mut caller in callers {
            while caller.next().instrument(turn.clone()).await.expect("an event").is_some() {}
            caller.told().await.expect("told");
        }
        let id = turn.id().map(|id| id.into_u64());
        assert!(id.is_some() && keeps.closed(5).await.parent == id);

        let task = session.spawn_task(TaskRequest::new(["index"]), |_| async { Err("no".to_owned()) });
        task.instrument(turn.clone()).await.expect("a task").ended().await.expect("an end");
        let span = keeps.closed(6).await;
        assert_eq!((span.fields["outlast.command.kind"].as_str(), span.parent), ("task", id));
        assert_eq!(said(&span, names)[1..], wrong("1", "exit_code")[1..]);
        assert_eq!(span.fields["process.pid"], std::process::id().to_string());
    });
}
