//! Plays the deeds of a plan in a world, and keeps account of what was done to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use outlast_testkit::{Proc, Signal, World};

use crate::calls::{Call, Told, What, quote, words};
use crate::faults::{Jump, Means};
use crate::plan::{CONSUMERS, Deed, Fault, Plan, Starved, Victim};
use crate::shapes::OwnEnd;
use crate::story::Story;
use crate::tally::Tally;
use crate::victims::{Held, command_of};
use crate::watch::Watch;
use crate::{disk, faults, pace};
use outlast_testkit::Cast;

/// Who was killed, as far as it decides how commands may have ended.
#[derive(Debug, Default)]
pub struct Deaths {
    /// Supervisors, and the keeper each of them had at that time.
    pub supervisors: BTreeMap<i32, i32>,
    /// Keepers.
    pub keepers: BTreeSet<i32>,
    /// Supervisors whose keeper was killed while they lived.
    pub orphans: BTreeSet<i32>,
    /// Commands whose leader was killed.
    pub leaders: BTreeSet<String>,
}

/// A round that is being played.
pub struct Storm<'a> {
    world: &'a World,
    plan: &'a Plan,
    watch: &'a Watch,
    /// What happened so far.
    pub story: &'a mut Story,
    tally: &'a mut Tally,
    means: &'a Means,
    /// When it began.
    pub began: Instant,
    calls: Vec<Call>,
    later: Vec<(u64, Later)>,
    excuse: Option<&'static str>,
    /// Who was killed.
    pub deaths: Deaths,
    /// Commands that somebody asked to stop.
    pub stopped: BTreeSet<String>,
    /// Ids of commands that were sent a line.
    pub sent: BTreeSet<String>,
    /// Files that the storm has left itself.
    pub planted: Vec<PathBuf>,
    /// Whether the disk was full for a while.
    pub was_full: bool,
    /// Whether lines of the trace were destroyed.
    pub torn: bool,
}

/// What is undone after a while.
enum Later {
    Continue(Held),
    ContinueFront(i32),
    Writable,
    Space,
    Clock(Jump),
}

impl<'a> Storm<'a> {
    /// A storm that begins now.
    pub fn new(
        world: &'a World,
        plan: &'a Plan,
        watch: &'a Watch,
        story: &'a mut Story,
        tally: &'a mut Tally,
        means: &'a Means,
    ) -> Storm<'a> {
        Storm {
            world,
            plan,
            watch,
            story,
            tally,
            means,
            began: Instant::now(),
            calls: Vec::new(),
            later: Vec::new(),
            excuse: None,
            deaths: Deaths::default(),
            stopped: BTreeSet::new(),
            sent: BTreeSet::new(),
            planted: Vec::new(),
            was_full: false,
            torn: false,
        }
    }

    /// Plays everything, undoes what has to be undone, and waits for all calls.
    pub fn play(&mut self) -> Vec<Told> {
        for (at, deed) in &self.plan.deeds {
            self.wait_till(*at);
            self.act(*deed);
        }
        self.wait_till(u64::MAX);
        self.story.note("the storm is over");
        self.leave_those_that_stay();
        let calls: Vec<Call> = self.calls.drain(..).collect();
        calls.into_iter().map(Call::told).collect()
    }

    /// A command that cannot have records stays in the foreground, whatever its grace. The callers of those that never
    /// end go away.
    fn leave_those_that_stay(&mut self) {
        let plan = self.plan;
        let stays = |call: &Call| match call.what {
            What::Run(act) => call.excuse.is_some() && !matches!(plan.acts[act].shape.own_end, OwnEnd::Soon(_)),
            _ => false,
        };
        for call in self.calls.iter_mut().filter(|call| !call.killed && stays(call)) {
            if !pace::until(Duration::from_secs(3), || call.front.ended()) {
                call.front.signal(Signal::KILL);
                call.killed = true;
                self.story.note(&format!("kill front end {} that stays ({:?})", call.front.pid(), call.what));
            }
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).expect("a round is short")
    }

    /// Waits for a moment of the plan, and undoes what is due until then.
    fn wait_till(&mut self, at: u64) {
        loop {
            let next = (0..self.later.len()).min_by_key(|place| self.later[*place].0);
            let Some(place) = next.filter(|place| self.later[*place].0 <= at) else { break };
            let (due, what) = self.later.swap_remove(place);
            pace::pass(Duration::from_millis(due.saturating_sub(self.now())));
            self.undo(what);
        }
        if at != u64::MAX {
            pace::pass(Duration::from_millis(at.saturating_sub(self.now())));
        }
    }

    fn undo(&mut self, what: Later) {
        match what {
            Later::Continue(held) => {
                held.signal(Signal::CONT);
            }
            Later::ContinueFront(pid) => {
                let paused = self.calls.iter_mut().find(|call| call.front.pid() == pid);
                // One that had ended when it was to be paused may have been reaped since.
                if let Some(call) = paused
                    && !call.killed
                    && !call.front.ended()
                {
                    call.front.signal(Signal::CONT);
                }
            }
            Later::Writable => {
                if let Err(error) = faults::unmount(&self.world.state()) {
                    self.story.note(&error);
                }
                self.excuse = None;
                self.story.note("the state directory can be written again");
            }
            Later::Clock(jump) => {
                drop(jump);
                self.story.note("the clock is right again");
            }
            Later::Space => {
                faults::free(&self.world.state());
                self.excuse = None;
                self.story.note("there is space again");
            }
        }
    }

    fn act(&mut self, deed: Deed) {
        match deed {
            Deed::Start(number) => self.start(number),
            Deed::Kill(Victim::Front, nth) => self.kill_front(nth),
            Deed::Kill(victim, nth) => self.kill(victim, nth),
            Deed::Pause(victim, nth, time) => self.pause(victim, nth, time),
            Deed::Stop(act) => {
                for id in self.ids_of(act) {
                    self.stopped.insert(id.clone());
                    self.tally.add("stops");
                    let words = ["stop", &id, "--grace", "100ms", "--json", "--consumer", "model"];
                    self.call(What::Stop(Some(id.clone())), &words.map(str::to_owned));
                }
            }
            Deed::StopAll => {
                self.stopped.insert("all".to_owned());
                self.tally.add("stops of all");
                let words = ["stop", "--all", "--grace", "100ms", "--json", "--consumer", "model"];
                self.call(What::Stop(None), &words.map(str::to_owned));
            }
            Deed::Wait(act) => {
                for id in self.ids_of(act) {
                    let words = ["wait", &id, "--json", "--timeout", "300ms", "--consumer", CONSUMERS[1]];
                    self.call(What::Wait(id.clone(), CONSUMERS[1]), &words.map(str::to_owned));
                }
            }
            Deed::Inbox(number) => {
                let consumer = CONSUMERS[number];
                let words = ["inbox", "--ack", "--json", "--consumer", consumer];
                self.call(What::Inbox(consumer), &words.map(str::to_owned));
            }
            Deed::Send(act) => {
                for id in self.ids_of(act) {
                    self.sent.insert(id.clone());
                    self.call(What::Send, &["send", &id, "word"].map(str::to_owned));
                }
            }
            Deed::Fault(fault) => self.fault(fault),
        }
    }

    fn ids_of(&self, act: usize) -> Vec<String> {
        let label = &self.plan.acts[act].label;
        let records = disk::records(&self.world.state()).into_iter();
        records.filter(|one| one.label == *label).map(|one| one.id).collect()
    }

    fn start(&mut self, number: usize) {
        let act = &self.plan.acts[number];
        let (words, mut excuse) = (words(act), None);
        let call = match act.starved {
            None => self.world.call(&words),
            Some(Starved::Processes(_)) if let Err(why) = &self.means.processes => {
                self.tally.skip("few processes", why);
                self.world.call(&words)
            }
            Some(starved) => {
                excuse = Some("a front end that lacks something");
                self.tally.add(&format!("fault: {}", starved.name()));
                let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
                self.world.shell(&format!("ulimit -S -{}; exec outlast {}", starved.option(), quoted.join(" ")))
            }
        };
        let front = call.within(Duration::from_secs(40)).spawn();
        let more = act.starved.map_or(String::new(), |starved| format!(" with few: {starved:?}"));
        self.story.note(&format!("start {} {} {:?} as {}{more}", act.label, act.shape.name, act.mode, front.pid()));
        self.tally.add("front ends");
        let excuse = excuse.or(self.excuse);
        self.calls.push(Call { what: What::Run(number), front, killed: false, excuse });
    }

    fn call(&mut self, what: What, words: &[String]) {
        let front = self.world.call(words).within(Duration::from_secs(40)).spawn();
        self.story.note(&format!("{} as {}", words.join(" "), front.pid()));
        self.tally.add("front ends");
        self.calls.push(Call { what, front, killed: false, excuse: self.excuse });
    }

    fn kill_front(&mut self, nth: usize) {
        let mut alive: Vec<&mut Call> = self.calls.iter_mut().filter(|call| !call.killed).collect();
        alive.retain_mut(|call| !call.front.ended());
        let count = alive.len().max(1);
        let Some(call) = alive.get_mut(nth % count) else {
            return self.tally.skip("kill of a front end", "none was there at that moment");
        };
        call.front.signal(Signal::KILL);
        call.killed = true;
        self.story.note(&format!("kill front end {} ({:?})", call.front.pid(), call.what));
        self.tally.add("killed: front ends");
    }

    fn find(&self, victim: Victim, nth: usize) -> Option<Held> {
        let cast = Cast::of(self.world);
        let all = match victim {
            Victim::Keeper => cast.keepers,
            Victim::Supervisor => cast.supervisors,
            Victim::Leader => cast.leaders,
            Victim::Front => Vec::new(),
        };
        Held::of(self.world, all.get(nth % all.len().max(1))?)
    }

    fn kill(&mut self, victim: Victim, nth: usize) {
        let name = victim.name();
        let Some(held) = self.find(victim, nth) else {
            return self.tally.skip(&format!("kill of a {name}"), "none was there at that moment");
        };
        let (pid, parent, command) = (held.seen.pid, held.seen.ppid, command_of(held.seen.pid));
        // What happens to it at the instant of the kill is what counts, so it is noted before.
        match victim {
            Victim::Leader => {
                self.deaths.leaders.extend(command.clone());
            }
            Victim::Supervisor => {
                self.deaths.supervisors.insert(pid, parent);
            }
            Victim::Keeper | Victim::Front => {
                self.deaths.keepers.insert(pid);
            }
        }
        let Some(children) = held.kill() else {
            return self.story.note(&format!("{name} {pid} had ended before it was killed"));
        };
        if victim == Victim::Keeper {
            self.deaths.orphans.extend(children.iter().map(|child: &Proc| child.pid));
        }
        self.story.note(&format!("kill {name} {pid} below {parent} {}", command.unwrap_or_default()));
        self.tally.add(&format!("killed: {name}s"));
    }

    fn pause(&mut self, victim: Victim, nth: usize, time: u64) {
        let name = victim.name();
        let until = self.now() + time;
        let paused = if victim == Victim::Front {
            let mut alive: Vec<&mut Call> = self.calls.iter_mut().filter(|call| !call.killed).collect();
            alive.retain_mut(|call| !call.front.ended());
            let count = alive.len().max(1);
            let call = alive.get_mut(nth % count);
            call.map(|call| {
                call.front.signal(Signal::STOP);
                (call.front.pid(), Later::ContinueFront(call.front.pid()))
            })
        } else {
            self.find(victim, nth).map(|held| {
                held.signal(Signal::STOP);
                (held.seen.pid, Later::Continue(held))
            })
        };
        let Some((pid, undo)) = paused else {
            return self.tally.skip(&format!("pause of a {name}"), "none was there at that moment");
        };
        self.story.note(&format!("pause {name} {pid} for {time} ms"));
        self.tally.add(&format!("paused: {name}s"));
        self.later.push((until, undo));
    }

    fn fault(&mut self, fault: Fault) {
        let state = self.world.state();
        let session = self.world.session_dir(&self.world.session());
        let trace = session.join("trace.jsonl");
        let done = match fault {
            Fault::Garbage(nth) | Fault::HangUp(nth) => {
                let door = faults::knock(&state, nth, matches!(fault, Fault::Garbage(_)));
                door.map(|door| disk::name(&door)).ok_or_else(|| "no door was there at that moment".to_owned())
            }
            Fault::NoDoor => std::fs::remove_file(session.join("keeper.sock"))
                .map(|()| String::new())
                .map_err(|_| "no keeper".into()),
            Fault::TornTrace(bytes) | Fault::GarbledTrace(bytes) => {
                self.watch.allow_torn_lines();
                self.torn = true;
                let garble = matches!(fault, Fault::GarbledTrace(_));
                faults::tear(&trace, bytes, garble).map(|()| format!("{bytes} bytes")).ok_or("no trace".into())
            }
            Fault::Leftover => {
                let left = faults::leave_behind(&session).unwrap_or_default();
                self.planted.extend(left);
                Ok(String::new())
            }
            Fault::ReadOnly(time) => self.make_read_only(time),
            Fault::FullDisk(time) => self.fill(time),
            Fault::Clock(seconds, time) => self.jump(seconds, time),
        };
        let name = fault.name();
        match done {
            Ok(more) => {
                self.story.note(&format!("fault: {name} {more}"));
                self.tally.add(&format!("fault: {name}"));
            }
            Err(why) => self.tally.skip(name, &why),
        }
    }

    /// The calls that are under way, by their place.
    fn under_way(&mut self) -> Vec<usize> {
        let calls = self.calls.iter_mut().enumerate();
        calls.filter_map(|(place, call)| (!call.front.ended()).then_some(place)).collect()
    }

    /// From now on calls may fail, for this reason; so may those that were under way just before.
    fn excuse_calls(&mut self, why: &'static str, under_way: &[usize]) {
        self.excuse = Some(why);
        for place in under_way {
            let call = &mut self.calls[*place];
            call.excuse = call.excuse.or(Some(why));
        }
    }

    fn make_read_only(&mut self, time: u64) -> Result<String, String> {
        self.means.mounts.clone()?;
        if self.excuse.is_some() {
            return Err("it was read-only already".to_owned());
        }
        let under_way = self.under_way();
        faults::make_read_only(&self.world.state())?;
        self.excuse_calls("a state directory that is read-only", &under_way);
        self.later.push((self.now() + time, Later::Writable));
        Ok(format!("for {time} ms"))
    }

    fn jump(&mut self, seconds: i64, time: u64) -> Result<String, String> {
        self.means.clock.clone()?;
        self.later.push((self.now() + time, Later::Clock(Jump::by(seconds)?)));
        Ok(format!("by {seconds} s for {time} ms"))
    }

    fn fill(&mut self, time: u64) -> Result<String, String> {
        if !self.plan.small_disk {
            self.means.mounts.clone()?;
        }
        if self.excuse.is_some() {
            return Err("it was full already".to_owned());
        }
        let under_way = self.under_way();
        self.watch.allow_missing_files();
        faults::fill(&self.world.state())?;
        self.was_full = true;
        self.excuse_calls("a disk that is full", &under_way);
        self.later.push((self.now() + time, Later::Space));
        Ok(format!("for {time} ms"))
    }
}
