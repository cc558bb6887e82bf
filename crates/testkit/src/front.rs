//! A running front end that a test owns: its output so far, its signals, its end.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::output::{Output, shorten};
use crate::proc;

/// How long the streams of a call may stay open after the call itself has ended. Something else that
/// holds them is a fault: the caller of outlast would hang.
const HELD_OPEN: Duration = Duration::from_secs(5);

/// A call that runs. Dropping it kills the call, so that no test leaves one.
pub struct Front {
    child: Child,
    args: Vec<String>,
    out: Stream,
    err: Stream,
    input: Option<ChildStdin>,
    writer: Option<JoinHandle<()>>,
    bound: Duration,
}

impl Front {
    pub(crate) fn new(mut child: Child, args: Vec<String>, input: Option<Vec<u8>>, bound: Duration) -> Front {
        let out = Stream::of(child.stdout.take());
        let err = Stream::of(child.stderr.take());
        let mut stdin = child.stdin.take();
        let writer = input.map(|bytes| {
            let mut pipe = stdin.take().expect("standard input is a pipe");
            // A call that does not read all of it breaks the pipe; that is its right.
            std::thread::spawn(move || drop(pipe.write_all(&bytes)))
        });
        Front { child, args, out, err, input: stdin, writer, bound }
    }

    /// The process id of the call.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process ids fit")
    }

    /// Sends a signal to the call alone.
    pub fn signal(&self, signal: Signal) {
        proc::signal(self.pid(), signal);
    }

    /// Writes into the call's standard input, which was left open. A call that has ended takes nothing any more.
    pub fn write(&mut self, bytes: &[u8]) {
        let pipe = self.input.as_mut().expect("the input was left open");
        let _gone = pipe.write_all(bytes).and_then(|()| pipe.flush());
    }

    /// What came on standard output so far.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.out.bytes()).into_owned()
    }

    /// What came on standard error so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.err.bytes()).into_owned()
    }

    /// Closes the call's standard input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Whether the call has ended.
    pub fn ended(&mut self) -> bool {
        self.child.try_wait().expect("the call is our child").is_some()
    }

    /// Waits until standard output so far satisfies `enough`, and returns it.
    ///
    /// # Panics
    /// When the bound passes or the stream ends first.
    #[track_caller]
    pub fn wait_stdout(&self, what: &str, enough: impl Fn(&str) -> bool) -> String {
        self.out.wait(what, self.bound, enough)
    }

    /// Waits until standard error so far satisfies `enough`, and returns it.
    ///
    /// # Panics
    /// When the bound passes or the stream ends first.
    #[track_caller]
    pub fn wait_stderr(&self, what: &str, enough: impl Fn(&str) -> bool) -> String {
        self.err.wait(what, self.bound, enough)
    }

    /// Waits for the end of the call.
    ///
    /// # Panics
    /// When it does not end in its bound, when something else holds its streams open afterwards, or
    /// when it printed JSON against the contract.
    #[track_caller]
    pub fn wait(mut self) -> Output {
        self.collect().checked()
    }

    #[track_caller]
    fn collect(&mut self) -> Output {
        if !proc::wait_gone(self.pid(), self.bound) {
            panic!("not ended after {:?}: {}", self.bound, self.story());
        }
        let status = self.child.wait().expect("the call is our child");
        self.input = None;
        let open = !self.out.closed_within(HELD_OPEN) || !self.err.closed_within(HELD_OPEN);
        assert!(!open, "ended, but somebody holds its output open: {}", self.story());
        if let Some(writer) = self.writer.take() {
            writer.join().expect("the writer does not panic");
        }
        let (stdout, stderr) = (self.out.bytes(), self.err.bytes());
        Output { args: self.args.clone(), code: status.code(), signal: status.signal(), stdout, stderr }
    }

    /// Waits for the end of a call that the test killed. What it printed may stop anywhere, so it is
    /// not held against the contract.
    #[track_caller]
    pub fn wait_killed(mut self) -> Output {
        self.collect()
    }

    fn story(&self) -> String {
        format!(
            "outlast {:?} (pid {})\n--- stdout\n{}\n--- stderr\n{}",
            self.args,
            self.pid(),
            shorten(&self.out.bytes()),
            shorten(&self.err.bytes())
        )
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // Both fail only when the call was waited for already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// What came out of one pipe so far.
struct Stream {
    shared: Arc<(Mutex<Received>, Condvar)>,
}

#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    closed: bool,
}

impl Stream {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Stream {
        let shared = Arc::new((Mutex::new(Received::default()), Condvar::new()));
        let Some(mut pipe) = pipe else {
            shared.0.lock().expect("nobody panics under it").closed = true;
            return Stream { shared };
        };
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || {
            let mut buffer = [0; 65536];
            loop {
                let count = pipe.read(&mut buffer).unwrap_or(0);
                let mut received = theirs.0.lock().expect("nobody panics under it");
                received.bytes.extend_from_slice(&buffer[..count]);
                received.closed = count == 0;
                theirs.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        Stream { shared }
    }

    fn bytes(&self) -> Vec<u8> {
        self.shared.0.lock().expect("nobody panics under it").bytes.clone()
    }

    fn closed_within(&self, bound: Duration) -> bool {
        let received = self.shared.0.lock().expect("nobody panics under it");
        let (received, _) = (self.shared.1.wait_timeout_while(received, bound, |now| !now.closed)).expect("as above");
        received.closed
    }

    #[track_caller]
    fn wait(&self, what: &str, bound: Duration, enough: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + bound;
        let mut received = self.shared.0.lock().expect("nobody panics under it");
        loop {
            let text = String::from_utf8_lossy(&received.bytes).into_owned();
            if enough(&text) {
                return text;
            }
            let left = until.saturating_duration_since(Instant::now());
            if received.closed || left.is_zero() {
                let why = if received.closed { "the stream ended" } else { "the bound passed" };
                drop(received);
                panic!("waited for {what}, but {why}; so far: {}", shorten(text.as_bytes()));
            }
            received = self.shared.1.wait_timeout(received, left).expect("as above").0;
        }
    }
}
