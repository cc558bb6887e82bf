//! The world of one test: directories, environment, anchors, sessions, and short words for what tests do.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::call::Call;
use crate::front::Front;
use crate::json::Json;
use crate::output::Output;
use crate::proc::{self, Proc};
use crate::sessions::Owned;

/// Where programs are looked for, besides the directory of the tested binary. The caller's own PATH may
/// hold wrappers that need the caller's home.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// How long the last processes of a world may take: session end is bounded to 15 s by contract.
const PATIENCE: Duration = Duration::from_secs(20);

/// A sealed world with one session. Dropping it ends everything and fails the test when something is left.
pub struct World {
    pub(crate) root: PathBuf,
    state: PathBuf,
    binary: PathBuf,
    pub(crate) sessions: Mutex<Vec<Owned>>,
    pub(crate) seen: Mutex<BTreeSet<(i32, u64)>>,
    pub(crate) patience: Duration,
    pub(crate) kept: bool,
}

impl World {
    /// Makes a world around the binary under test, with an anchored session of a context.
    pub fn new(binary: &str) -> World {
        World::with_state(binary, "state")
    }

    /// Makes a world whose state directory has this path below the world's root.
    pub fn with_state(binary: &str, state: &str) -> World {
        let world = World::bare(binary, state);
        world.new_session(&["--context", "world"]);
        world
    }

    /// Makes a world without a session.
    pub fn bare(binary: &str, state: &str) -> World {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outlast-world-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::create_dir(&root).expect("a new directory in the temporary directory");
        for dir in ["home", "work"] {
            fs::create_dir(root.join(dir)).expect("a new directory in the world");
        }
        let (state, binary) = (root.join(state), PathBuf::from(binary));
        World {
            root,
            state,
            binary,
            sessions: Mutex::default(),
            seen: Mutex::default(),
            patience: PATIENCE,
            kept: false,
        }
    }

    /// Gives the last processes another time than the 20 s that session end may need.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> World {
        self.patience = patience;
        self
    }

    /// The directory that holds everything of this world.
    pub fn root(&self) -> PathBuf {
        self.root.clone()
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        self.state.clone()
    }

    /// The working directory of every call.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// A path in the working directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    /// The home directory, which stays empty.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The whole environment of a call: nothing of the caller's gets in.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let beside = self.binary.parent().expect("the binary is in a directory").display().to_string();
        let mut entries: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), format!("{beside}:{SYSTEM_PATH}").into()),
            ("HOME".into(), self.home().into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("OUTLAST_STATE_DIR".into(), self.state.clone().into()),
        ];
        if let Some(first) = self.owned().first() {
            entries.push(("OUTLAST_SESSION".into(), first.id.clone().into()));
        }
        entries
    }

    /// A call of the command line, to be changed before it is made.
    pub fn call<S: AsRef<OsStr>>(&self, args: &[S]) -> Call {
        Call::new(self, &self.binary, args.iter().map(|word| word.as_ref().to_owned()).collect())
    }

    /// A shell line in the same environment, in which `outlast` is the binary under test.
    pub fn shell(&self, line: &str) -> Call {
        Call::new(self, Path::new("/bin/sh"), vec!["-c".into(), line.into()])
    }

    /// Makes one call and waits for it.
    #[track_caller]
    pub fn outlast<S: AsRef<OsStr>>(&self, args: &[S]) -> Output {
        self.call(args).run()
    }

    /// Makes one call and leaves it running.
    pub fn spawn<S: AsRef<OsStr>>(&self, args: &[S]) -> Front {
        self.call(args).spawn()
    }

    /// `run -b --json` with these arguments: the id.
    #[track_caller]
    pub fn bg(&self, args: &[&str]) -> String {
        let words = [&["run", "-b", "--json"], args].concat();
        self.outlast(&words).ok().json().str("/id").to_owned()
    }

    /// `status --json` of one command.
    #[track_caller]
    pub fn status(&self, id: &str) -> Json {
        self.outlast(&["status", id, "--json"]).ok().json()
    }

    /// `wait --json` on one command, to its end.
    #[track_caller]
    pub fn wait(&self, id: &str) -> Json {
        let output = self.outlast(&["wait", id, "--json"]);
        let ended = output.json();
        assert_eq!(ended.str("/phase"), "ended", "the wait ended before the command: {output:?}");
        ended
    }

    /// `stop` of one command, which must succeed.
    #[track_caller]
    pub fn stop(&self, id: &str) -> Output {
        self.outlast(&["stop", id]).ok()
    }

    /// `ps -a --json`: the commands.
    #[track_caller]
    pub fn list(&self) -> Vec<Json> {
        self.outlast(&["ps", "-a", "--json"]).ok().json().items("/commands")
    }

    /// `logs --raw` of one command, which must succeed.
    #[track_caller]
    pub fn raw(&self, id: &str) -> Vec<u8> {
        self.outlast(&["logs", id, "--raw"]).ok().stdout
    }

    /// `inbox --ack --json` for one consumer: what was told.
    #[track_caller]
    pub fn acked(&self, consumer: &str) -> Vec<Json> {
        self.outlast(&["inbox", "--ack", "--consumer", consumer, "--json"]).ok().json().items("/completions")
    }

    /// The lines of the session's trace that have this type.
    #[track_caller]
    pub fn trace(&self, kind: &str) -> Vec<Json> {
        let lines = self.outlast(&["trace", &self.session(), "--json"]).ok().json_lines();
        lines.into_iter().filter(|line| line.str("/type") == kind).collect()
    }

    /// The directory of a session of this world.
    pub fn session_dir(&self, session: &str) -> PathBuf {
        self.state.join("sessions").join(session)
    }

    /// The records of a command of the first session.
    pub fn dir(&self, id: &str) -> PathBuf {
        self.session_dir(&self.session()).join("work").join(id)
    }

    /// One JSON file of a command's records.
    #[track_caller]
    pub fn record(&self, id: &str, name: &str) -> Json {
        let path = self.dir(id).join(name);
        Json::parse(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    /// Every living process of this world except its anchors and the calls of the test, keepers included.
    pub fn processes(&self) -> Vec<Proc> {
        let root = format!("{}/", self.root.display());
        let ours = i32::try_from(std::process::id()).expect("process ids fit");
        let found: Vec<Proc> = proc::all()
            .into_iter()
            .filter(|one| one.ppid != ours && one.lives() && proc::environ_holds(one.pid, &root))
            .collect();
        self.seen.lock().expect("nobody panics under it").extend(found.iter().map(|one| (one.pid, one.start)));
        found
    }

    /// Every living process of one command: whoever has its id in the environment.
    pub fn of_command(&self, id: &str) -> Vec<Proc> {
        let entry = format!("OUTLAST_WORK_ID={id}");
        self.processes().into_iter().filter(|one| proc::environ_holds(one.pid, &entry)).collect()
    }

    /// Asserts that nothing of a command lives.
    #[track_caller]
    pub fn nothing_left_of(&self, id: &str) {
        let left = self.of_command(id);
        assert!(left.is_empty(), "left of {id}: {left:#?}");
    }

    /// Waits, bounded, until a condition holds.
    ///
    /// # Panics
    /// When it does not hold within 30 s.
    #[track_caller]
    pub fn wait_until(&self, what: &str, holds: impl FnMut() -> bool) {
        assert!(holds_within(Duration::from_secs(30), holds), "waited in vain until {what}");
    }

    /// Waits until nobody holds a lock of the records: whoever told of an end may need a moment more to let go.
    #[track_caller]
    pub fn wait_free(&self, lock: &Path) {
        self.wait_until(&format!("{} is free", lock.display()), || match fs::File::open(lock) {
            Ok(file) => file.try_lock_shared().is_ok(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        });
    }

    /// Waits until a session has no keeper.
    #[track_caller]
    pub fn wait_unkept(&self, session: &str) {
        self.wait_free(&self.session_dir(session).join("keeper.lock"));
    }

    /// Waits until nobody holds the records of a command of the first session.
    #[track_caller]
    pub fn wait_released(&self, id: &str) {
        self.wait_free(&self.dir(id).join("lease"));
    }

    /// Waits until a file in the working directory holds a whole line, and returns its text.
    #[track_caller]
    pub fn wait_file(&self, name: &str) -> String {
        let path = self.file(name);
        let read = || fs::read_to_string(&path).unwrap_or_default();
        self.wait_until(&format!("{name} has a line"), || read().ends_with('\n'));
        read().trim_end().to_owned()
    }

    /// The numbers in a file that a command writes as one line.
    #[track_caller]
    pub fn wait_pids(&self, name: &str) -> Vec<i32> {
        let text = self.wait_file(name);
        text.split_whitespace().map(|word| word.parse().expect("a process id")).collect()
    }

    /// Ends every process of the world and leaves its files for a look; the directory that holds them.
    pub fn keep(mut self) -> PathBuf {
        self.kept = true;
        self.root.clone()
    }

    /// Ends the world now and checks that nothing is left; dropping it does the same.
    pub fn finish(self) {}
}

/// Waits until a condition holds, at most `bound`; returns whether it does. This is the one place that
/// polls: the outside world (a file, a stranger's end) gives no event that a test could wait for.
#[allow(clippy::disallowed_methods)]
pub(crate) fn holds_within(bound: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + bound;
    while !holds() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
