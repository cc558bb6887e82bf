//! Holds what must be true against a world in which a storm has been. Whatever is not true ends the round by a panic
//! whose message is the fault.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use outlast_testkit::{Json, Signal, World, proc};

use crate::calls::{Told, What};
use crate::model::Facts;
use crate::plan::{Act, CONSUMERS, Ending, Plan};
use crate::shapes::OwnEnd;
use crate::storm::Deaths;
use crate::tally::Tally;
use crate::tellings::Tellings;
use crate::victims::command_of;
use crate::{disk, faults, pace};
use outlast_testkit::Cast;

/// The time that the last things of a round may take: by contract the end of a session is bounded to 15 s.
const PATIENCE: Duration = Duration::from_secs(25);

/// A world after its storm.
pub struct Judge<'a> {
    /// The world.
    pub world: &'a World,
    /// What was planned.
    pub plan: &'a Plan,
    /// When the storm began.
    pub began: Instant,
    /// The calls that were made.
    pub told: Vec<Told>,
    /// Who was killed.
    pub deaths: Deaths,
    /// Ids of commands that somebody asked to stop, or `all`.
    pub stopped: BTreeSet<String>,
    /// Ids of commands that were sent a line.
    pub sent: BTreeSet<String>,
    /// Files that the storm has left itself.
    pub planted: Vec<PathBuf>,
    /// Whether the disk was full for a while.
    pub was_full: bool,
    /// Whether lines of the trace were destroyed.
    pub torn: bool,
    /// Counts.
    pub tally: &'a mut Tally,
}

impl Judge<'_> {
    /// Everything, the end of the session included.
    pub fn judge(mut self) {
        self.calls_have_answered();
        pace::until(PATIENCE, || !is_undecided(self.world));
        assert!(!is_undecided(self.world), "watchers have commands that are neither on disk nor over");
        let mut tellings = Tellings::of(&self.told);
        for act in &self.plan.acts {
            self.settle(act, &mut tellings);
        }
        let listed = self.world.list();
        tellings.judge(self.world, &listed, self.torn);
        self.nothing_unknown_lives();
        let next = self.session_goes_on();
        tellings.judge_later(self.world, &BTreeSet::from([next.clone()]), Some(CONSUMERS[0]));
        let untold = self.end_session();
        tellings.judge_later(self.world, &untold, None);
        self.nothing_is_left();
        self.count_ends(&next);
    }

    fn is_left(act: &Act) -> bool {
        act.left && !matches!(act.shape.own_end, OwnEnd::Soon(_))
    }

    fn calls_have_answered(&self) {
        for told in self.told.iter().filter(|told| !told.killed) {
            let code = told.output.code;
            let object = told.object();
            if told.excuse.is_some() {
                let said = object.is_some() || told.output.signal.is_some() || !told.output.stderr.is_empty();
                assert!(said || matches!(told.what, What::Send), "failed and did not say why: {told:?}");
                continue;
            }
            let holds = match &told.what {
                What::Run(_) => object.is_some(),
                What::Stop(_) => matches!(code, Some(0 | 1 | 4)),
                What::Wait(..) => object.is_some(),
                What::Inbox(_) => code == Some(0) && object.is_some(),
                What::Send => matches!(code, Some(0 | 4)),
            };
            assert!(holds, "a call without an answer: {told:?}");
        }
    }

    /// Brings the commands of one act to their end and holds that against what can have happened.
    fn settle(&mut self, act: &Act, tellings: &mut Tellings) {
        let records: Vec<disk::Record> =
            disk::records(&self.world.state()).into_iter().filter(|one| one.label == act.label).collect();
        assert!(records.len() <= act.callers, "{} has more records than callers: {records:#?}", act.label);
        let runs = self.facts(act, "", None).ran;
        assert!(runs <= act.callers, "{} ran {runs} times for {} callers", act.label, act.callers);
        self.told_of(act, &records);
        for record in &records {
            self.tally.add("records");
            if Judge::is_left(act) {
                continue;
            }
            if !matches!(act.shape.own_end, OwnEnd::Soon(_)) {
                self.stopped.insert(record.id.clone());
                let words = ["stop", &record.id, "--grace", "100ms", "--json", "--consumer", CONSUMERS[0]];
                let stopped = self.world.outlast(&words);
                assert!(matches!(stopped.code, Some(0 | 1)), "{stopped:?}");
                tellings.read(CONSUMERS[0], &stopped);
            }
            let words = ["wait", &record.id, "--json", "--timeout", "20s", "--consumer", CONSUMERS[1]];
            let waited = self.world.outlast(&words);
            tellings.read(CONSUMERS[1], &waited);
            self.check_end(act, record, &waited.json());
        }
    }

    fn facts(&self, act: &Act, id: &str, supervisor: Option<i32>) -> Facts {
        let mut facts = Facts::of(&self.world.work(), act, id, supervisor, &self.deaths);
        facts.stopped = self.stopped.contains(id) || self.stopped.contains("all");
        facts
    }

    fn check_end(&mut self, act: &Act, record: &disk::Record, shown: &Json) {
        let facts = self.facts(act, &record.id, supervisor_of(record));
        assert_eq!(shown.str("/phase"), "ended", "it does not end ({facts:?}): {shown:?}");
        let end = shown.at("/end");
        assert_eq!(facts.objection(act, end), None);
        let kind = shown.str("/end/kind").to_owned();
        let kept = disk::records(&self.world.state()).into_iter().find(|one| one.id == record.id);
        let kept = kept.as_ref().and_then(disk::Record::kind);
        assert_eq!(kept, Some(kind.as_str()), "recorded otherwise than it is shown: {shown:?}");
        // Whatever the clock of day did meanwhile.
        let took = shown.at("/duration_ms").as_u64().map(Duration::from_millis);
        assert!(took.is_none_or(|took| took <= self.began.elapsed()), "it took longer than it was there: {shown:?}");
        if act.shape.options.contains(&"--pty") && self.sent.contains(&record.id) {
            // A terminal echoes what is typed, whenever that comes.
            return;
        }
        let raw = self.world.outlast(&["logs", &record.id, "--raw"]).ok().stdout;
        assert_eq!(facts.output_objection(act, &shown.0, &raw, self.was_full), None, "{shown:?}");
    }

    /// What the callers of an act were told agrees with what is on disk, and with what can have happened.
    fn told_of(&mut self, act: &Act, records: &[disk::Record]) {
        let number = self.plan.acts.iter().position(|one| one.label == act.label).expect("an act of the plan");
        let mut unheard = false;
        for told in self.told.iter().filter(|told| told.what == What::Run(number)) {
            let Some(object) = told.object() else {
                unheard |= told.excuse.is_none();
                continue;
            };
            let id = object["id"].as_str().unwrap_or_default();
            let record = records.iter().find(|one| one.id == id);
            if object["phase"] == "ended" && !told.hands_out() {
                let facts = self.facts(act, id, record.and_then(supervisor_of));
                assert_eq!(facts.objection(act, &object["end"]), None, "told by a run");
                let text = object["output"]["text"].as_str().unwrap_or_default().as_bytes();
                let plain = !act.shape.options.contains(&"--pty") && object["output"]["truncated"] == false;
                if let (Some(wrote), true, None, false) =
                    (act.shape.output, plain, act.starved, facts.supervisor_dead || self.was_full)
                {
                    let whole = object["end"]["kind"] == "exited";
                    assert!(
                        if whole { wrote() == text } else { wrote().starts_with(text) },
                        "other output: {object:#}"
                    );
                }
            } else {
                assert!(record.is_some(), "an id was handed out and nothing is known of it: {told:?}");
            }
        }
        // An end whose only caller was killed before it was told is a completion.
        if unheard && act.callers == 1 {
            for record in records {
                let shown = self.world.status(&record.id);
                let told = shown.str("/phase") == "ended" && !shown.bool("/demoted");
                assert!(
                    !told || shown.str("/end/kind") == "lost",
                    "an end that nobody heard is no completion: {shown:?}"
                );
            }
        }
        // A command whose caller was killed before it was told anything is on disk, if it began.
        let facts = self.facts(act, "", None);
        if unheard && facts.ran > 0 && !facts.supervisor_dead && act.callers == 1 && !self.was_full {
            assert!(!records.is_empty(), "{} ran, nobody was told, and nothing is known of it: {facts:?}", act.label);
        }
    }

    /// Whoever lives of a command that is over is named as its survivor.
    fn nothing_unknown_lives(&self) {
        let unknown = || {
            let listed = self.world.list();
            let is_named = |pid: i32, id: &str| {
                let record = listed.iter().find(|one| one.str("/id") == id);
                record.is_some_and(|one| {
                    one.str("/phase") != "ended"
                        || one.items("/survivors").iter().any(|it| it.int("/pid") == i64::from(pid))
                })
            };
            let all = self.world.processes().into_iter();
            all.filter(|one| command_of(one.pid).is_some_and(|id| !is_named(one.pid, &id))).collect::<Vec<_>>()
        };
        pace::until(PATIENCE, || unknown().is_empty());
        let left = unknown();
        assert!(left.is_empty(), "processes of commands that nobody names: {left:#?}");
    }

    /// A new command is served as if nothing had happened, under a number of its own. Its id; the model has waited for it.
    fn session_goes_on(&mut self) -> String {
        let next = self.world.outlast(&["run", "-b", "--json", "--consumer", "other", "--", "true"]).ok().json();
        let words = ["wait", next.str("/id"), "--json", "--consumer", CONSUMERS[0]];
        self.world.outlast(&words).ok().json().ends("exited", 0);
        let all = self.world.list();
        let aliases: Vec<&str> = all.iter().filter_map(|one| one.at("/alias").as_str()).collect();
        let distinct: BTreeSet<&&str> = aliases.iter().collect();
        assert_eq!(distinct.len(), aliases.len(), "an alias is used twice: {aliases:?}");
        let lines = fs::read_to_string(self.world.session_dir(&self.world.session()).join("aliases"));
        let lines = lines.expect("the last command has an alias");
        let named: BTreeSet<&str> = lines.lines().collect();
        assert_eq!(named.len(), lines.lines().count(), "a command has two aliases: {lines}");
        next.str("/id").to_owned()
    }

    /// Ends the session. The ids of the completions that came with that and are to be told: whoever calls for the end is
    /// told of them by its report, and where the anchor is gone nobody was.
    fn end_session(&mut self) -> BTreeSet<String> {
        let session = self.world.session();
        let before = self.world.list();
        self.sample_memory();
        // That nobody answers afterwards means something only where somebody did before.
        if !faults::open_doors(&self.world.root()).is_empty() {
            self.tally.add("rounds with an open door before the end");
        }
        let called = self.plan.ending == Ending::Called;
        let report = called.then(|| self.world.outlast(&["session", "end", &session]).ok().err());
        self.tally.add(if called { "sessions ended by call" } else { "sessions ended with their anchor" });
        if !called {
            self.world.kill_anchor(&session, Signal::KILL);
        }
        pace::until(PATIENCE, || self.world.processes().is_empty());
        let left = self.world.processes();
        let told: Vec<String> = left.iter().map(|one| format!("{one:?} {}", proc::command_line(one.pid))).collect();
        assert!(left.is_empty(), "processes outlived their session:\n{}", told.join("\n"));
        let mut untold = BTreeSet::new();
        for old in before {
            let id = old.str("/id");
            let now = self.world.status(id);
            if old.str("/phase") == "ended" {
                assert_eq!(now.at("/end"), old.at("/end"), "an end has changed with the session");
                continue;
            }
            let label = old.at("/label").as_str().unwrap_or_default();
            let act = self.plan.acts.iter().find(|act| act.label == label).expect("only acts were left");
            let record = disk::records(&self.world.state()).into_iter().find(|one| one.id == id);
            let mut facts = self.facts(act, id, record.as_ref().and_then(supervisor_of));
            facts.session_ended = true;
            assert_eq!(now.str("/phase"), "ended", "it is not over with its session: {now:?}");
            assert_eq!(facts.objection(act, now.at("/end")), None, "after the end of the session");
            match &report {
                Some(report) => assert!(report.contains(id), "the end does not report {id}: {report}"),
                None if now.bool("/demoted") || now.str("/end/kind") == "lost" => {
                    untold.insert(id.to_owned());
                }
                None => {}
            }
        }
        untold
    }

    /// The largest memory of the watchers of this round.
    fn sample_memory(&mut self) {
        let cast = Cast::of(self.world);
        for watcher in cast.keepers.iter().chain(&cast.supervisors) {
            self.tally.at_least("largest watcher, KiB", proc_memory(watcher.pid));
        }
    }

    /// Counts how each command ended, once: as it is recorded, or as its `run` told it where it has no records. `next` is no
    /// command of the plan.
    fn count_ends(&mut self, next: &str) {
        let records = disk::records(&self.world.state());
        for record in records.iter().filter(|one| one.id != next) {
            let by = record.end.as_ref().and_then(|end| end["end"]["by"].as_str());
            let by = by.map_or(String::new(), |by| format!(" by {by}"));
            self.tally.add(&format!("end: {}{by}", record.kind().unwrap_or("without a record of its end")));
        }
        let runs = self.told.iter().filter(|told| matches!(told.what, What::Run(_)) && !told.hands_out());
        let over = runs.filter_map(Told::object).filter(|object| object["phase"] == "ended");
        let ids: BTreeSet<String> = over.filter_map(|object| Some(object["id"].as_str()?.to_owned())).collect();
        let bare = ids.iter().filter(|id| !records.iter().any(|one| one.id == **id)).count();
        self.tally.add_many("ends without records", bare as u64);
    }

    /// Nobody is behind a door, and no half file lies around where nobody was killed or failed who can have left it.
    fn nothing_is_left(&mut self) {
        let open = faults::open_doors(&self.world.root());
        assert!(open.is_empty(), "somebody is behind a door of a session that is over: {open:#?}");
        let killed = !self.deaths.supervisors.is_empty() || !self.deaths.keepers.is_empty();
        // What the dead leave under names of their own may stay: watchers write in the directories of commands, calls beside
        // them. Only the space for an end goes with the end, whoever wrote it.
        let watched = !killed && self.told.iter().all(|told| told.excuse.is_none());
        let undisturbed = watched && self.told.iter().all(|told| !told.killed);
        for (holds, name) in [(watched, "looks for half records"), (undisturbed, "looks for half files")] {
            self.tally.add_many(name, u64::from(holds));
        }
        let is_half = |path: &PathBuf| {
            let (text, name) = (path.display().to_string(), disk::name(path));
            let record = text.contains("/.new-") || text.contains("/work/wrk_") && name.ends_with(".tmp");
            let ended = name == "exit.tmp" && path.with_file_name("exit.json").exists();
            ended || watched && (record || name == "control.sock") || undisturbed && name.ends_with(".tmp")
        };
        let half: Vec<PathBuf> = disk::files(&self.world.state())
            .into_iter()
            .filter(is_half)
            .filter(|path| !self.planted.iter().any(|planted| path.starts_with(planted)))
            .collect();
        assert!(half.is_empty(), "half files are left: {half:#?}");
    }
}

/// The supervisor that the records name.
fn supervisor_of(record: &disk::Record) -> Option<i32> {
    i32::try_from(record.status["supervisor"]["pid"].as_i64()?).ok()
}

/// Memory of its own that a process uses, in KiB.
pub fn proc_memory(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Whether a watcher has a command of which nothing is on disk yet.
fn is_undecided(world: &World) -> bool {
    let open = |one: &&Json| one.str("/phase") != "ended" || !one.items("/survivors").is_empty();
    let known = world.list().iter().filter(open).count();
    let doctor = world.outlast(&["doctor"]).text();
    let keeping = doctor.split(" answers and keeps ").nth(1);
    match keeping.and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok()) {
        Some(count) => count > known,
        None => {
            let cast = Cast::of(world);
            cast.supervisors.len() > known + cast.keepers.len()
        }
    }
}
