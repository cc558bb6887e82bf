//! Where the tools meet: each gets a home of its own for every question, and nothing of it outlives its answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::fight::Sizes;
use crate::fight::score::{Better, Cell, Row};
use crate::peers::{Kind, Open, Peer, TOOL};
use crate::place::{Place, make_fifo, readable_within};
use crate::processes::{self, Process};
use crate::samples::Samples;
use crate::{Result, say};

/// How long a command may take until it has begun.
const BEGIN_BOUND: Duration = Duration::from_secs(20);

/// How long what a tool has ended may take to be gone once it was closed.
const GOING_BOUND: Duration = Duration::from_secs(3);

/// Everything of one run.
pub struct Ring<'a> {
    /// Where it happens.
    pub place: &'a Place,
    /// Who takes part.
    pub peers: &'a [Peer],
    /// How much of everything.
    pub sizes: Sizes,
    group: &'static str,
    homes: u32,
    outcome: Outcome,
}

/// What came of it.
#[derive(Default)]
pub struct Outcome {
    /// Groups with their titles.
    pub groups: Vec<(&'static str, &'static str)>,
    /// The rows in the order in which they were measured.
    pub rows: Vec<Row>,
    /// Samples by name.
    pub series: Vec<(String, Samples)>,
    /// What could not be measured, and why.
    pub failures: Vec<(String, String)>,
    /// What tools left that were closed after a question which killed nothing: how many processes after which question.
    pub left: Vec<(Kind, String, usize)>,
}

/// A row that is asked of everybody.
pub struct Asked {
    row: Row,
}

impl Asked {
    /// A row: what is asked, the check that decides, and which way is better.
    pub fn new(what: impl Into<String>, check: impl Into<String>, better: Better) -> Asked {
        Asked { row: Row { group: "", what: what.into(), check: check.into(), better, cells: BTreeMap::new() } }
    }
}

/// A tool that is open for one question.
pub struct Guest<'a> {
    /// The tool.
    pub open: Box<dyn Open + 'a>,
    /// Where the question's own files are.
    pub dir: PathBuf,
    /// Where it all happens.
    pub place: &'a Place,
    home: PathBuf,
    /// Whether the question killed something of the tool.
    hurt: AtomicBool,
}

impl<'a> Ring<'a> {
    /// An empty one.
    pub fn new(place: &'a Place, peers: &'a [Peer], sizes: Sizes) -> Ring<'a> {
        Ring { place, peers, sizes, group: "", homes: 0, outcome: Outcome::default() }
    }

    /// Begins a group.
    pub fn begin(&mut self, name: &'static str, title: &'static str) {
        say(&format!("{name} …"));
        self.group = name;
        self.outcome.groups.push((name, title));
    }

    /// Says that something could not be measured.
    pub fn fail(&mut self, what: &str, why: &str) {
        say(&format!("outlast-bench: {what}: {why}"));
        self.outcome.failures.push((what.to_owned(), why.to_owned()));
    }

    /// Keeps samples for the raw figures.
    pub fn keep(&mut self, name: String, samples: Samples) {
        self.outcome.series.push((name, samples));
    }

    /// What came of it.
    pub fn finish(self) -> Outcome {
        self.outcome
    }

    /// Asks everybody the same question, whose answer is one row.
    pub fn ask(&mut self, asked: Asked, slots: usize, question: impl Fn(&Guest<'_>) -> Result<Cell>) {
        self.ask_rows(vec![asked], slots, |guest| Ok(vec![question(guest)?]));
    }

    /// Asks everybody the same question, whose answer is several rows.
    pub fn ask_rows(&mut self, asked: Vec<Asked>, slots: usize, question: impl Fn(&Guest<'_>) -> Result<Vec<Cell>>) {
        let mut rows: Vec<Row> = asked.into_iter().map(|asked| asked.row).collect();
        let what = rows.first().map_or(String::new(), |row| row.what.clone());
        for peer in self.peers {
            match self.with(peer, slots, &what, &question) {
                Ok(cells) => {
                    for (row, cell) in rows.iter_mut().zip(cells) {
                        row.cells.insert(peer.kind, cell);
                    }
                }
                Err(error) => {
                    for row in &mut rows {
                        row.cells.insert(peer.kind, Cell::none("failed"));
                    }
                    self.fail(&format!("{}: {what}", peer.kind.name()), &error.to_string());
                }
            }
        }
        for row in rows {
            self.add(row);
        }
    }

    /// Adds a row that was put together elsewhere.
    pub fn row(&mut self, asked: Asked, cells: BTreeMap<Kind, Cell>) {
        self.add(Row { cells, ..asked.row });
    }

    fn add(&mut self, row: Row) {
        let mut line = format!("  {}:", row.what);
        for (kind, cell) in &row.cells {
            let best = if row.is_best(*kind) { "*" } else { "" };
            line.push_str(&format!("  {best}{}: {}", kind.name(), cell.text));
        }
        say(&line);
        self.outcome.rows.push(Row { group: self.group, ..row });
    }

    /// Opens a tool, asks it something, and ends whatever is left of it and of its commands. What outlast leaves fails the
    /// run where the question killed nothing of it: the end of a session is the end of all that ran in it.
    pub fn with<T>(
        &mut self,
        peer: &Peer,
        slots: usize,
        what: &str,
        question: impl FnOnce(&Guest<'_>) -> Result<T>,
    ) -> Result<T> {
        self.homes += 1;
        let home = self.place.dir().join(format!("{}-{}", peer.kind.key(), self.homes));
        let dir = self.place.dir().join(format!("files-{}", self.homes));
        std::fs::create_dir_all(&dir)?;
        let mut clean = false;
        let answer = peer.open(self.place, &home, slots).and_then(|open| {
            let hurt = AtomicBool::new(false);
            let guest = Guest { open, dir: dir.clone(), place: self.place, home: home.clone(), hurt };
            let answer = question(&guest);
            // A storm goes on until this is there.
            std::fs::write(guest.halt(), "")?;
            let hurt = guest.hurt.load(Ordering::Relaxed);
            let closed = guest.open.close();
            clean = !hurt && closed.is_ok();
            // A tool whose manager was killed may not be able to end what it needed. That is not its answer.
            match closed {
                Err(error) if hurt => say(&format!("  ({} did not close: {error})", peer.kind.name())),
                Err(error) => self.fail(&format!("{}: its close after: {what}", peer.kind.name()), &error.to_string()),
                Ok(()) => {}
            }
            answer
        });
        if clean {
            self.count_left(peer.kind, &home, what)?;
        }
        self.sweep(&home)?;
        std::fs::remove_dir_all(&dir)?;
        std::fs::remove_dir_all(&home)?;
        answer
    }

    /// What a tool has left that was closed as its manual says.
    fn count_left(&mut self, kind: Kind, home: &Path, what: &str) -> Result<()> {
        let look = || -> Result<Vec<Process>> {
            let mut found = processes::with_entry(&processes::run_mark(self.place))?;
            for process in
                [processes::with_entry(&entry_of(home))?, processes::with_executable(&self.place.outlast())?].concat()
            {
                if !found.contains(&process) {
                    found.push(process);
                }
            }
            Ok(found)
        };
        processes::ended_within(&look()?, GOING_BOUND)?;
        let left = look()?.len();
        if left > 0 && kind == Kind::Outlast {
            self.fail(
                &format!("{}: {what}", kind.name()),
                &format!("{left} processes are left after its session was ended"),
            );
        }
        if left > 0 {
            say(&format!("  ({} left {left} processes when it was closed)", kind.name()));
            self.outcome.left.push((kind, what.to_owned(), left));
        }
        Ok(())
    }

    /// Ends commands, then managers, and then commands that one of them has started meanwhile.
    fn sweep(&self, home: &Path) -> Result<()> {
        let (commands, managers) = (processes::run_mark(self.place), entry_of(home));
        processes::end_with_entry(&managers)?;
        processes::end_with_entry(&commands)?;
        processes::end_with_executable(&self.place.outlast())
    }
}

impl Guest<'_> {
    /// Which tool it is.
    pub fn kind(&self) -> Kind {
        self.open.kind()
    }

    /// The file that ends a storm.
    pub fn halt(&self) -> PathBuf {
        self.dir.join("halt")
    }

    /// A path for the question's files, as text.
    pub fn at(&self, name: &str) -> Result<String> {
        Ok(self.dir.join(name).to_str().ok_or("the directory's name is not text")?.to_owned())
    }

    /// Starts something that says through a FIFO, whose path it gets, that it has begun, and waits until it has.
    pub fn begun<T>(&self, start: impl FnOnce(&str) -> Result<T>) -> Result<T> {
        let path = self.at("ready")?;
        let fifo = make_fifo(Path::new(&path))?;
        let started = start(&path)?;
        if readable_within(&fifo, BEGIN_BOUND)? {
            std::fs::remove_file(path)?;
            return Ok(started);
        }
        Err("the command has not begun".into())
    }

    /// Processes of the tool that are not of a command.
    pub fn managers(&self) -> Result<Vec<Process>> {
        let mut found = processes::with_entry(&self.entry())?;
        if self.kind() == Kind::Outlast {
            // A keeper that the library started has the environment of its owner.
            for process in processes::with_executable(&self.place.outlast())? {
                if !found.contains(&process) {
                    found.push(process);
                }
            }
        }
        found.retain(|process| !processes::is_marked(process));
        Ok(found)
    }

    /// Kills processes of the tool.
    pub fn kill(&self, processes: &[Process]) -> Result<()> {
        self.hurt();
        processes::kill_all(processes)
    }

    /// Says that something of the tool is killed, which may then leave what it would have ended.
    pub fn hurt(&self) {
        self.hurt.store(true, Ordering::Relaxed);
    }

    /// What the environment of a manager has.
    pub fn entry(&self) -> String {
        entry_of(&self.home)
    }
}

fn entry_of(home: &Path) -> String {
    format!("{TOOL}={}/", home.display())
}
