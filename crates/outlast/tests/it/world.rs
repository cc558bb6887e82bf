//! A state directory of its own for each test, and the proof that nothing is left running.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outlast::core::id::SessionId;
use outlast::{Command, Config, Finished, Outcome, RunRequest, Runtime, Session, SessionOptions};

/// How long anything that should happen soon may take.
pub const SOON: Duration = Duration::from_secs(10);

/// One test's state directory and runtime.
pub struct World {
    pub state_dir: PathBuf,
    pub work_dir: PathBuf,
    pub runtime: Runtime,
}

/// Runs one test in a world of its own, and proves afterwards that no process of it is left.
pub fn in_world<F: Future<Output = ()>>(name: &str, test: impl FnOnce(World) -> F) {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let threads = threads.expect("a tokio runtime");
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let (state_dir, work_dir) = (root.join("state"), root.join("work"));
    std::fs::create_dir_all(&work_dir).expect("a directory to work in");
    let _cleaner = Cleaner { root: root.clone() };
    threads.block_on(async {
        let runtime = Runtime::open(config(&state_dir)).expect("a runtime");
        test(World { state_dir: state_dir.clone(), work_dir, runtime }).await;
        nothing_left(&state_dir).await;
    });
    std::fs::remove_dir_all(&root).expect("the test's directory can be removed");
}

/// Ends what a failed test left, stopped processes included, and removes its directory.
struct Cleaner {
    root: PathBuf,
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for pid in processes_of(&self.root.join("state")) {
            if let Some(pid) = pid.try_into().ok().and_then(rustix::process::Pid::from_raw) {
                // One that is gone already is what is wanted.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// The settings of a test's runtime: the executable of this build.
pub fn config(state_dir: &Path) -> Config {
    Config { executable: Some(executable()), ..Config::new(state_dir) }
}

#[expect(clippy::disallowed_methods, reason = "a test may be pointed at another executable")]
pub fn executable() -> PathBuf {
    if let Some(path) = std::env::var_os("OUTLAST_BIN") {
        return PathBuf::from(path);
    }
    let own = std::env::current_exe().expect("the path of this test");
    let path = own.parent().and_then(Path::parent).expect("target/debug/deps").join("outlast");
    assert!(path.exists(), "{} is missing: build the workspace first, or set OUTLAST_BIN", path.display());
    path
}

impl World {
    /// A session that this process owns.
    pub async fn session(&self) -> Session {
        self.runtime.create_session(SessionOptions::default()).await.expect("a session")
    }

    /// A shell line, run in the test's directory.
    pub fn shell(&self, line: &str) -> RunRequest {
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C")];
        let env = env.map(|(key, value)| (OsString::from(key), OsString::from(value)));
        RunRequest::new(["sh", "-c", line], &self.work_dir, env)
    }
}

/// Becomes the owner of a session whose owner is gone. Where the tests are threads of one process, a child
/// that another test is starting at this moment holds the lock with its copies until its exec.
pub async fn adopted(runtime: &Runtime, id: &SessionId) -> Session {
    let mut session = None;
    soon("the owner's lock is free", async || {
        session = runtime.adopt_session(id).await.ok();
        session.is_some()
    })
    .await;
    session.expect("just adopted")
}

/// Starts a shell line in the background.
pub async fn start(world: &World, session: &Session, line: &str) -> Command {
    match session.start(world.shell(line)).await.expect("a background start") {
        Outcome::Demoted(demotion) => demotion.command,
        Outcome::Finished(finished) => panic!("{line} ended at once: {:?}", finished.exit),
    }
}

/// The end of a command that must end in the foreground.
pub fn finished(outcome: Outcome) -> Finished {
    match outcome {
        Outcome::Finished(finished) => *finished,
        Outcome::Demoted(demotion) => panic!("{} was demoted", demotion.command.id()),
    }
}

/// Waits, within a bound, until something that happens elsewhere is true.
pub async fn soon(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    while !holds().await {
        assert!(began.elapsed() < SOON, "not within {SOON:?}: {what}");
        ticks.tick().await;
    }
}

/// Proves that no keeper, no supervisor and no command of this state directory is left.
pub async fn nothing_left(state_dir: &Path) {
    soon("no process of the test is left", async || processes_of(state_dir).is_empty()).await;
}

/// Processes that have the state directory in their command line, or a session of it in their environment.
pub fn processes_of(state_dir: &Path) -> Vec<u32> {
    let path = state_dir.to_str().expect("a path in UTF-8").as_bytes();
    let sessions: Vec<String> = std::fs::read_dir(state_dir.join("sessions"))
        .map(|entries| entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
        .unwrap_or_default();
    let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        // A process that ends meanwhile reads as empty.
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let environ = read("environ");
        *pid != std::process::id()
            && (contains(&read("cmdline"), path)
                || sessions.iter().any(|session| contains(&environ, format!("OUTLAST_SESSION={session}").as_bytes())))
    })
    .collect()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
