//! The rows of the acceptance list that are about killed watchers, one by one.

use std::fs;
use std::time::Instant;

use super::rules::every_file_parses;
use super::victims::{gone, kill_marked};
use crate::support::*;

/// A running command and what its records say of its watchers.
struct Case {
    world: World,
    id: String,
    status: Json,
    keeper: i32,
}

impl Case {
    fn of(line: &str) -> Case {
        let world = world();
        let id = bg_shell(&world, &[], line);
        let status = world.record(&id, "status.json");
        let supervisor = i32::try_from(status.int("/supervisor/pid")).expect("process ids fit");
        let keeper = proc::parent_of(supervisor);
        Case { world, id, status, keeper }
    }

    fn leader(&self) -> i32 {
        i32::try_from(self.status.int("/leader/pid")).expect("process ids fit")
    }

    fn kill_supervisor(&self) {
        assert!(kill_marked(&self.world, &self.status, "/supervisor"), "its supervisor was there");
    }

    fn kill_keeper(&self) {
        proc::signal(self.keeper, Signal::KILL);
        gone(self.keeper);
    }
}

/// Covers: K9
#[test]
fn supervisor_killed_is_an_end_with_its_real_signal_within_a_second() {
    for line in ["exec sleep 300", "trap '' TERM HUP; while :; do sleep .05; done"] {
        let case = Case::of(line);
        let waiting = case.world.spawn(&["wait", &case.id, "--json"]);
        let since = Instant::now();
        case.kill_supervisor();
        let told = waiting.wait().exits(137).json();
        let took = since.elapsed();
        told.ends("stopped", 137);
        assert_eq!((told.str("/end/by"), told.str("/end/signal")), ("supervisor_lost", "KILL"));
        // The bound is the contract's own (K9), and far from what a busy machine needs.
        assert!(took < Duration::from_secs(1), "{took:?}");
        gone(case.leader());
        case.world.nothing_left_of(&case.id);
        assert_eq!(case.world.record(&case.id, "exit.json").str("/recorded_by"), "keeper");
        every_file_parses(&case.world);
    }
}

/// Covers: K9
#[test]
fn supervisor_killed_after_a_stop_was_asked_for_keeps_who_asked() {
    let case = Case::of("trap '' TERM; echo up; while :; do sleep .05; done");
    case.world.wait_until("it ignores TERM", || case.world.raw(&case.id) == b"up\n");
    let stopping = case.world.spawn(&["stop", &case.id, "--grace", "60s"]);
    case.world.wait_until("the stop was accepted", || case.world.status(&case.id).str("/phase") == "stopping");
    case.kill_supervisor();
    let answer = stopping.wait();
    assert!(matches!(answer.code, Some(0 | 1)), "{answer:?}");
    let told = case.world.wait(&case.id);
    told.ends("stopped", 137);
    assert_eq!((told.str("/end/by"), told.str("/end/signal")), ("model", "KILL"));
}

/// Covers: K9, M7
#[test]
fn keeper_killed_is_felt_by_nobody() {
    let world = world();
    let id = bg_shell(&world, &["--stdin"], "read x; echo got $x; exit 7");
    let status = world.record(&id, "status.json");
    let keeper = proc::parent_of(i32::try_from(status.int("/supervisor/pid")).expect("process ids fit"));
    let waiting = world.spawn(&["wait", &id, "--json"]);
    proc::signal(keeper, Signal::KILL);
    gone(keeper);
    world.status(&id).runs();
    assert_eq!(world.status(&id).at("/pid"), status.at("/leader/pid"));
    // A new keeper serves a new command, and has the old one in its charge too.
    let next = world.bg(&["sleep", "300"]);
    world.status(&id).runs();
    world.outlast(&["send", &id, "x"]).ok();
    let told = waiting.wait().exits(7).json();
    told.ends("exited", 7);
    assert_eq!(world.raw(&id), b"got x\n");
    assert_eq!(world.record(&id, "exit.json").str("/recorded_by"), "supervisor");
    assert_eq!(ids(&world.acked("human")), [id]);
    world.stop(&next);
}

/// Covers: K9, M7
#[test]
fn supervisor_of_a_killed_keeper_is_in_the_charge_of_the_next() {
    let case = Case::of("setsid sleep 301 & exec sleep 300");
    case.kill_keeper();
    let next = case.world.bg(&["sleep", "300"]);
    case.kill_supervisor();
    let told = case.world.wait(&case.id);
    told.ends("stopped", 137);
    assert_eq!((told.str("/end/by"), told.str("/end/signal")), ("supervisor_lost", "KILL"));
    case.world.nothing_left_of(&case.id);
    case.world.status(&next).runs();
    case.world.stop(&next);
}

/// Who clears sockets away does not hide what a killed keeper left.
///
/// Covers: K9, K1, M7
#[test]
fn supervisor_of_a_killed_keeper_without_a_door_is_in_the_charge_of_the_next() {
    let case = Case::of("setsid sleep 301 & exec sleep 300");
    let session = case.world.session();
    proc::signal(case.keeper, Signal::STOP);
    fs::remove_file(case.world.session_dir(&session).join("keeper.sock")).expect("its door");
    case.kill_keeper();
    case.world.status(&case.id).runs();
    case.world.outlast(&["session", "end", &session]).ok();
    case.world.nothing_left_of(&case.id);
    case.world.status(&case.id).ends("abandoned", 143);
}

/// A keeper that nobody can reach for a moment is one that knows the end.
///
/// Covers: K9, L1
#[test]
fn a_keeper_whose_door_was_taken_away_is_waited_for_before_a_command_is_lost() {
    let case = Case::of("setsid sleep 301 & exec sleep 300");
    let session = case.world.session();
    proc::signal(case.keeper, Signal::STOP);
    fs::remove_file(case.world.session_dir(&session).join("keeper.sock")).expect("its door");
    case.kill_supervisor();
    let looked = case.world.status(&case.id);
    assert_ne!(looked.str("/phase"), "ended");
    assert!(looked.str("/note").contains("keeper.lock"), "{looked:?}");
    assert!(!case.world.dir(&case.id).join("verdict.json").exists(), "its keeper lives");
    let waiting = case.world.spawn(&["wait", &case.id, "--json"]);
    proc::signal(case.keeper, Signal::CONT);
    let told = waiting.wait().exits(137).json();
    told.ends("stopped", 137);
    assert_eq!((told.str("/end/by"), told.str("/end/signal")), ("supervisor_lost", "KILL"));
    case.world.nothing_left_of(&case.id);
    assert!(!case.world.dir(&case.id).join("verdict.json").exists(), "it has one end");
}

/// Programs of one user share a small number of watches, and an editor may have taken them all.
///
/// Covers: L16
#[test]
fn l16_without_watches_of_the_kernel_a_wait_looks_again() {
    let none = "unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_inotify_instances";
    if world().shell(&format!("{none}'")).run().code != Some(0) {
        println!("skipped: this user may not make a user namespace");
        return;
    }
    let case = Case::of("exec sleep 300");
    let unwatched = |words: &str| case.world.shell(&format!("{none}; exec outlast {words} {}'", case.id));
    proc::signal(case.keeper, Signal::STOP);
    fs::remove_file(case.world.session_dir(&case.world.session()).join("keeper.sock")).expect("its door");
    case.kill_supervisor();
    let looked = unwatched("status --json").run().ok().json();
    assert!(looked.str("/note").contains("keeper.lock"), "{looked:?}");
    let waiting = unwatched("wait --json").spawn();
    proc::signal(case.keeper, Signal::CONT);
    waiting.wait().exits(137).json().ends("stopped", 137);
    case.world.nothing_left_of(&case.id);
}

/// A supervisor that lost its door and then its keeper is still one that can be reached, and the end of its session ends it.
///
/// Covers: K9, K1
#[test]
fn a_supervisor_without_door_and_keeper_is_reached_and_ended() {
    for blocked in [false, true] {
        let case = Case::of("exec sleep 300");
        let session = case.world.session();
        let door = case.world.dir(&case.id).join("control.sock");
        fs::remove_file(&door).expect("its door");
        if blocked {
            fs::create_dir(&door).expect("something in its place");
        }
        case.kill_keeper();
        if !blocked {
            case.world.status(&case.id).runs();
        }
        case.world.outlast(&["session", "end", &session]).ok();
        case.world.nothing_left_of(&case.id);
        case.world.status(&case.id).ends("abandoned", 143);
        let closed = fs::read_to_string(case.world.session_dir(&session).join("closed.json")).expect("a report");
        assert!(closed.contains(&case.id), "{closed}");
        if blocked {
            fs::remove_dir(&door).expect("what stood in its place");
        }
    }
}

/// Covers: K9
#[test]
fn a_supervisor_without_door_is_not_called_gone() {
    let case = Case::of("exec sleep 300");
    let session = case.world.session_dir(&case.world.session());
    let remove_doors = || {
        fs::remove_file(case.world.dir(&case.id).join("control.sock")).expect("its door");
        fs::remove_file(session.join("keeper.sock")).expect("the keeper's door");
    };
    proc::signal(case.keeper, Signal::STOP);
    remove_doors();
    let looked = case.world.status(&case.id);
    looked.runs();
    assert!(looked.str("/note").contains(&format!("kill -CONT {}", case.keeper)), "{looked:?}");
    let stopped = case.world.outlast(&["stop", &case.id, "--json"]).exits(1).json();
    assert!(!stopped.bool("/verified"), "{stopped:?}");
    proc::signal(case.keeper, Signal::CONT);
    case.world.wait_until("the keeper has made its door again", || session.join("keeper.sock").exists());
    fs::remove_file(session.join("keeper.sock")).expect("the keeper's door");
    case.world.stop(&case.id);
    case.world.status(&case.id).ends("stopped", 143);
}

/// Covers: K9, L16
#[test]
fn a_keeper_without_watches_of_the_kernel_makes_its_door_again() {
    let none = "unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_inotify_instances";
    let world = world();
    if world.shell(&format!("{none}'")).run().code != Some(0) {
        println!("skipped: this user may not make a user namespace");
        return;
    }
    let id =
        world.shell(&format!("{none}; exec outlast run -b --json sleep 300'")).run().ok().json().str("/id").to_owned();
    fs::remove_file(world.session_dir(&world.session()).join("keeper.sock")).expect("its door");
    assert_eq!(world.outlast(&["run", "echo", "on"]).ok().text(), "on\n");
    world.stop(&id);
}

/// Covers: K9, L17
#[test]
fn a_keeper_writes_no_end_beside_a_verdict() {
    let case = Case::of("exec sleep 300");
    let verdict = {
        let other = Case::of("exec sleep 300");
        other.kill_keeper();
        other.kill_supervisor();
        other.world.outlast(&["wait", &other.id]).exits(69);
        let text = fs::read_to_string(other.world.dir(&other.id).join("verdict.json")).expect("a verdict");
        text.replace(&other.id, &case.id).replace(&other.world.session(), &case.world.session())
    };
    proc::signal(case.keeper, Signal::STOP);
    case.kill_supervisor();
    fs::write(case.world.dir(&case.id).join("verdict.json"), verdict).expect("a verdict of somebody");
    proc::signal(case.keeper, Signal::CONT);
    let door = case.world.dir(&case.id).join("control.sock");
    case.world.wait_until("the keeper has cleared up", || !door.exists());
    case.world.outlast(&["wait", &case.id, "--json"]).exits(69).json().ends("lost", None);
    case.world.nothing_left_of(&case.id);
    assert!(!case.world.dir(&case.id).join("exit.json").exists(), "it has one end");
}

/// Covers: K9, L1, L17
#[test]
fn keeper_and_supervisor_killed_is_lost_and_the_rest_is_ended() {
    let case = Case::of("setsid sleep 301 & exec sleep 300");
    let stranger = case.world.sleeper();
    case.kill_keeper();
    case.kill_supervisor();
    gone(case.leader());
    let waited = case.world.outlast(&["wait", &case.id, "--json"]).exits(69).json();
    waited.ends("lost", None);
    case.world.nothing_left_of(&case.id);
    let verdict = case.world.record(&case.id, "verdict.json");
    assert_eq!(verdict.each("/leftovers", "/done"), ["ended"], "{verdict:?}");
    assert!(stranger.lives(), "a stranger was hit");
    assert_eq!(ids(&case.world.acked("human")), [case.id.as_str()]);
    assert!(case.world.acked("human").is_empty());
}

/// The end was recorded and nobody was shown it: it is a completion, whoever of its watchers is there to say so.
///
/// Covers: L17
#[test]
fn front_and_watchers_killed_over_the_end_leave_a_completion() {
    for (keeper_before, keeper_over_it) in [(false, false), (true, false), (false, true)] {
        let world = world();
        let line = "echo $PPID $$ >p; until [ -e go ]; do sleep .02; done; seq 1 20000; exit 5";
        let front = world.spawn(&["run", "-c", line]);
        let supervisor = world.wait_pids("p")[0];
        let keeper = proc::parent_of(supervisor);
        if keeper_before {
            proc::signal(keeper, Signal::KILL);
            gone(keeper);
            world.outlast(&["run", "true"]).ok();
        }
        front.signal(Signal::STOP);
        fs::write(world.file("go"), "").expect("a file");
        let exit = || tree(&world.state()).into_iter().find(|path| path.ends_with("exit.json"));
        world.wait_until("its end is recorded", || exit().is_some());
        if keeper_over_it {
            proc::signal(keeper, Signal::STOP);
        }
        proc::signal(supervisor, Signal::KILL);
        gone(supervisor);
        front.signal(Signal::KILL);
        if keeper_over_it {
            proc::signal(keeper, Signal::KILL);
            gone(keeper);
        }
        world.wait_until("its end is to be told", || {
            let pending = world.outlast(&["inbox", "--consumer", "model", "--json"]).ok().json();
            pending.items("/completions").len() == 1
        });
        assert_eq!(world.acked("model")[0].int("/end/code"), 5);
        assert!(world.list()[0].bool("/demoted"));
        drop(front.wait_killed());
    }
}

/// That an end was shown is recorded before its caller goes: a keeper that came later tells nobody again.
///
/// Covers: L17
#[test]
fn an_end_that_was_shown_stays_shown_whoever_is_killed_later() {
    let world = world();
    world.outlast(&["run", "-c", "(setsid sleep 302 >/dev/null 2>&1 &); exit 4"]).exits(4);
    let id = world.list()[0].str("/id").to_owned();
    let status = world.record(&id, "status.json");
    let keeper = proc::parent_of(i32::try_from(status.int("/supervisor/pid")).expect("process ids fit"));
    proc::signal(keeper, Signal::KILL);
    gone(keeper);
    world.outlast(&["run", "true"]).ok();
    assert!(kill_marked(&world, &status, "/supervisor"), "its supervisor was there");
    world.outlast(&["run", "true"]).ok();
    world.nothing_left_of(&id);
    world.status(&id).ends("exited", 4);
    assert!(world.acked("model").is_empty(), "told twice");
}

/// One look finishes several records at a time, each of which takes a moment: they wait for one another, not for ever.
///
/// Covers: L17
#[test]
fn several_commands_of_killed_watchers_are_finished_by_one_look() {
    let case = Case::of("setsid sleep 301 & setsid sleep 301 & exec sleep 300");
    let ids: Vec<String> = (0..5).map(|_| case.world.bg(&["-c", "setsid sleep 301 & exec sleep 300"])).collect();
    case.kill_keeper();
    for id in ids.iter().chain([&case.id]) {
        let status = case.world.record(id, "status.json");
        assert!(kill_marked(&case.world, &status, "/supervisor"), "its supervisor was there");
    }
    let listed = case.world.list();
    assert_eq!(listed.len(), 6);
    for id in ids.iter().chain([&case.id]) {
        case.world.status(id).ends("lost", None);
        case.world.nothing_left_of(id);
    }
}

/// Covers: K9, L17
#[test]
fn survivors_of_killed_watchers_are_ended_by_the_end_of_the_session() {
    let case = Case::of("(setsid sleep 302 >/dev/null 2>&1 &); exit 4");
    case.world.wait_until("it has ended", || case.world.status(&case.id).str("/phase") == "ended");
    assert_eq!(case.world.of_command(&case.id).len(), 1, "the survivor");
    case.kill_keeper();
    case.kill_supervisor();
    case.world.outlast(&["session", "end", &case.world.session()]).ok();
    case.world.nothing_left_of(&case.id);
    case.world.status(&case.id).ends("exited", 4);
}

/// Covers: K9, L17
#[test]
fn what_a_foreground_command_left_is_ended_by_the_next_look() {
    let world = world();
    let front = world.spawn(&["run", "-c", "setsid sleep 301 & echo $PPID $! >pids; exec sleep 300"]);
    let (supervisor, child) = (world.wait_pids("pids")[0], world.wait_pids("pids")[1]);
    let keeper = proc::parent_of(supervisor);
    front.signal(Signal::STOP);
    proc::signal(keeper, Signal::STOP);
    proc::signal(supervisor, Signal::KILL);
    proc::signal(keeper, Signal::KILL);
    front.signal(Signal::KILL);
    drop(front.wait_killed());
    gone(keeper);
    assert!(proc::alive(child), "it left the group before its supervisor was killed");
    assert!(world.list().is_empty(), "nobody could make a record");
    assert!(proc::wait_gone(child, AT_ONCE), "the look left it running");
}

/// Covers: K9, K10
#[test]
fn keeper_killed_as_soon_as_it_has_forked_leaves_a_command_that_is_watched() {
    let world = world();
    let session = world.session();
    let mark = world.root().join("crashed");
    let call = world.call(&["run", "--grace", "60s", "-c", "echo $$ >pid; exec sleep 300"]);
    let front = call.env("OUTLAST_CRASH_AT", "keeper forked supervisor").env("OUTLAST_CRASH_MARK", &mark).spawn();
    let leader = world.wait_pids("pid")[0];
    world.wait_until("the keeper is dead", || mark.exists());
    world.wait_until("it has records, so that a keeper can find it", || world.list().len() == 1);
    let id = world.list()[0].str("/id").to_owned();
    world.status(&id).runs();
    world.kill_anchor(&session, Signal::KILL);
    assert!(proc::wait_gone(leader, AT_ONCE), "it outlived its session");
    front.wait().exits(143);
    world.wait(&id).ends("abandoned", 143);
    world.wait_until("no process is left", || world.processes().is_empty());
}

/// Covers: L5
#[test]
fn twenty_looks_at_a_time_make_one_verdict() {
    let case = Case::of("setsid sleep 301 & exec sleep 300");
    case.kill_keeper();
    case.kill_supervisor();
    gone(case.leader());
    let verbs: [&[&str]; 3] = [&["status", &case.id, "--json"], &["ps", "-a", "--json"], &["wait", &case.id, "--json"]];
    let looks: Vec<_> = (0..20).map(|number| case.world.spawn(verbs[number % verbs.len()])).collect();
    for look in looks {
        let answer = look.wait();
        assert!(matches!(answer.code, Some(0 | 69)), "{answer:?}");
        assert!(answer.text().contains("\"lost\""), "{answer:?}");
    }
    assert_eq!(case.world.trace("lost").len(), 1);
    case.world.nothing_left_of(&case.id);
    assert_eq!(ids(&case.world.acked("human")), [case.id.as_str()]);
}

/// Covers: L5
#[test]
fn twenty_resumes_at_a_time_make_one_report() {
    let case = Case::of("exec sleep 300");
    let session = case.world.session();
    case.kill_keeper();
    case.kill_supervisor();
    case.world.kill_anchor(&session, Signal::KILL);
    let told: Vec<String> = std::thread::scope(|scope| {
        let resume = || {
            let next = case.world.resume(&session);
            let inbox = case.world.call(&["inbox", "--ack", "--json"]).session(&next).run().ok();
            inbox.json().each("/completions", "/id")
        };
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(resume)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it does not panic")).collect()
    });
    assert_eq!(told, [case.id.as_str()], "one report");
    assert_eq!(case.world.trace("lost").len(), 1);
}

/// Covers: L16
#[test]
fn pid_that_is_another_process_now_is_not_running() {
    let case = Case::of("exec sleep 300");
    case.kill_keeper();
    case.kill_supervisor();
    gone(case.leader());
    // The recorded numbers now belong to strangers.
    let stranger = case.world.sleeper();
    let path = case.world.dir(&case.id).join("status.json");
    let text = std::fs::read_to_string(&path).expect("a status");
    let old = format!("\"pid\":{}", case.leader());
    assert!(text.contains(&old), "{text}");
    std::fs::write(&path, text.replace(&old, &format!("\"pid\":{}", stranger.pid()))).expect("our file");
    case.world.status(&case.id).ends("lost", None);
    case.world.outlast(&["stop", &case.id]).ok();
    assert!(stranger.lives(), "a look-alike with another start time was hit");
}
