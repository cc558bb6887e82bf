//! Area K: session end.

use std::fs;

use crate::support::*;

fn end(world: &World) -> Output {
    world.outlast(&["session", "end", &world.session()]).ok()
}

fn closed(world: &World) -> Json {
    let path = world.session_dir(&world.session()).join("closed.json");
    Json::parse(&fs::read_to_string(path).expect("a closing report"))
}

#[test]
fn k1_session_end_leaves_no_process() {
    let world = world();
    let running = bg_shell(&world, &[], "sleep 300 >/dev/null 2>&1 & echo >p; exec sleep 300");
    world.wait_file("p");
    let survivor = shell_json(&world, &[], "setsid sleep 301 >/dev/null 2>&1 & echo up");
    let stubborn = bg_shell(&world, &[], "trap '' TERM; echo >q; while :; do sleep .05; done");
    world.wait_file("q");
    let detached = world.bg(&["--lifetime", "detached", "sleep", "302"]);
    end(&world);
    for id in [running.as_str(), survivor.str("/id"), &stubborn] {
        world.nothing_left_of(id);
    }
    world.status(&running).ends("abandoned", 143);
    world.status(&stubborn).ends("abandoned", 137);
    world.status(survivor.str("/id")).ends("exited", 0);
    world.status(&detached).runs();
    assert!(closed(&world).at("/commands").to_string().contains(&detached));
    world.outlast(&["stop", &detached]).ok();
    // The spare supervisor and the keeper have nothing to keep any more.
    world.wait_until("no process is left", || world.processes().is_empty());
}

/// Covers: K2, K4
#[test]
fn k2_discarded_commands_fall_into_two_groups() {
    let world = world();
    let late = bg_shell(&world, &[], "echo X; exit 7");
    world.wait_until("it has ended", || world.status(&late).str("/phase") == "ended");
    let running = world.bg(&["sleep", "300"]);
    let said = end(&world).err();
    assert!(said.contains("exit code: 7") && said.contains("/output.log"), "its full result is known: {said}");
    let report = closed(&world);
    let of = |id: &str| report.items("/commands").into_iter().find(|one| one.str("/id") == id).expect("it is named");
    assert_eq!(of(&late).str("/state"), "ended");
    assert_eq!(of(&running).str("/state"), "running");
    assert!(of(&running).int("/running_ms") >= 0);
    let lines = world.trace("abandoned");
    assert_eq!(lines.len(), 2);
    let line = |id: &str| lines.iter().find(|line| line.str("/id") == id).expect("a line for each");
    for id in [&late, &running] {
        let found = line(id);
        found.int("/running_ms");
        let there = ["/exit_code", "/log", "/bytes"].map(|key| found.0.pointer(key).is_some());
        assert!(there == [true; 3] || there == [false; 3], "together or not at all: {found:?}");
        let object = found.0.as_object().expect("an object");
        assert!(object.values().all(|value| !value.is_null()), "a key with nothing to say is left out: {found:?}");
    }
    assert_eq!(line(&late).int("/exit_code"), 7);
}

#[test]
fn k3_end_makes_one_report() {
    let world = world();
    assert_eq!(world.outlast(&["session", "end", &world.session()]).ok().err(), "", "nothing was discarded");
    for count in [1, 2] {
        let session = world.new_session(&[]);
        let start = |world: &World| {
            let words = ["run", "-b", "--json", "sleep", "300"];
            world.call(&words).session(&session).run().ok().json().str("/id").to_owned()
        };
        let started: Vec<String> = (0..count).map(|_| start(&world)).collect();
        let told = world.outlast(&["session", "end", &session]).ok().err();
        let condition: Vec<&str> = told.lines().filter(|line| line.contains(&session)).collect();
        assert_eq!(condition.len(), 1, "{told}");
        assert!(condition[0].contains(&count.to_string()), "{told}");
        assert_eq!(condition[0].contains("commands"), count > 1, "{told}");
        assert!(started.iter().all(|id| told.contains(id)) && told.contains("sleep 300"), "{told}");
        assert!(!told.contains("recover") && !told.contains("lost"), "{told}");
    }
}

/// Covers: K5, K6
#[test]
fn k5_end_does_not_wait_and_twice_is_once() {
    let world = world();
    let id = world.bg(&["sleep", "300"]);
    let words = ["session", "end", &world.session()];
    let first = world.call(&words).within(Duration::from_secs(10)).run().ok();
    assert!(first.err().contains(&id), "{first:?}");
    let report = closed(&world);
    let second = world.outlast(&words).ok();
    assert!(!second.err().contains(&id), "one report: {second:?}");
    assert_eq!(closed(&world), report);
    assert_eq!(world.trace("abandoned").len(), 1);
    // What comes after the end is refused.
    world.outlast(&["run", "-b", "--", "true"]).exits(4);
}

#[test]
fn k9_killed_supervisor_takes_its_leader_along() {
    let world = world();
    let id = bg_shell(&world, &[], "trap '' TERM; setsid sleep 300 & echo $PPID $$ >s; while :; do sleep .05; done");
    let (supervisor, leader, _) = family(&world, "s");
    proc::signal(supervisor, Signal::KILL);
    assert!(proc::wait_gone(leader, AT_ONCE), "the leader outlived its supervisor");
    let told = world.wait(&id);
    told.ends("stopped", 137);
    assert_eq!((told.str("/end/by"), told.str("/end/signal")), ("supervisor_lost", "KILL"));
    assert_eq!(world.record(&id, "exit.json").str("/recorded_by"), "keeper");
    world.nothing_left_of(&id);
    world.outlast(&["run", "--", "true"]).ok();
}

#[test]
fn k9_keeper_and_supervisor_killed_is_lost_at_the_next_look() {
    let world = world();
    let id = bg_shell(&world, &[], "echo $PPID $$ >s; exec sleep 300");
    let (supervisor, leader, keeper) = family(&world, "s");
    proc::signal(keeper, Signal::KILL);
    proc::signal(supervisor, Signal::KILL);
    assert!(proc::wait_gone(leader, AT_ONCE), "the leader outlived its watchers");
    world.status(&id).ends("lost", None);
}

#[test]
fn k9_killed_front_end_loses_no_exit_code() {
    let world = world();
    world.shell("mkfifo go").run().ok();
    for signal in [Signal::KILL, Signal::TERM] {
        let name = format!("p{}", signal.as_raw());
        let line = format!("echo $$ >{name}; read x <go; exit 7");
        let front = world.spawn(&["run", "--grace", "60s", "-c", &line]);
        world.wait_file(&name);
        front.signal(signal);
        drop(front.wait_killed());
        world.wait_until("it is listed", || world.list().iter().any(|one| one.str("/phase") == "running"));
        world.shell("echo x >go").run().ok();
        world.wait_until("it has ended", || world.list().iter().all(|one| one.str("/phase") == "ended"));
        world.list().last().expect("it is listed").ends("exited", 7);
    }
}

#[test]
fn k10_session_ends_with_its_anchor() {
    let world = world();
    let session = world.session();
    let running = world.bg(&["sleep", "300"]);
    let over = bg_shell(&world, &[], "exit 7");
    world.wait_until("it has ended", || world.status(&over).str("/phase") == "ended");
    world.kill_anchor(&session, Signal::KILL);
    world.wait_until("the command is gone", || world.of_command(&running).is_empty());
    world.wait_until("its end is recorded", || world.status(&running).str("/phase") == "ended");
    world.status(&running).ends("abandoned", 143);
    world.wait_until("no process is left", || world.processes().is_empty());
    world.outlast(&["run", "-b", "--", "true"]).exits(4);
    let next = world.resume(&session);
    let inbox = world.call(&["inbox"]).session(&next).run().ok().text();
    assert!(inbox.contains(&running) && inbox.contains(&over), "{inbox}");
}
