//! Cases of the kind "handles and ownership": ids are told, found again, and one id is one run.

use crate::support::*;

#[test]
fn case_073_a_new_front_end_finds_everything() {
    let world = world();
    let api = world.bg(&["--label", "api", "sleep", "300"]);
    let rooted = world.bg(&["--cwd", "/", "sleep", "301"]);
    let over = world.bg(&["true"]);
    world.wait_until("it has ended", || world.status(&over).str("/phase") == "ended");
    let listing = world.call(&["ps", "-a", "--json"]).without("HOME").without("LANG").run().ok().json();
    let commands = listing.items("/commands");
    assert_eq!(ids(&commands), [api, rooted, over]);
    assert_eq!(listing.each("/commands", "/alias"), ["w1", "w2", "w3"]);
    assert_eq!(commands[0].str("/label"), "api");
    assert_eq!(commands[0].at("/command").to_string(), r#"["sleep","300"]"#);
    assert_eq!(commands[1].str("/cwd"), "/");
    assert!(commands.iter().all(|one| one.int("/started_at_ms") > 0));
    assert_eq!(listing.each("/commands", "/phase"), ["running", "running", "ended"]);
}

#[test]
fn case_075_whoever_leaves_something_running_gets_its_id() {
    let world = world();
    let plain = world.outlast(&["run", "--grace", "200ms", "--", "sleep", "300"]).exits(75);
    assert_eq!(plain.err().lines().count(), 1, "{plain:?}");
    let running = ids(&world.list());
    assert!(plain.err().contains(&running[0]), "{plain:?}");
    let json = world.outlast(&["run", "--grace", "200ms", "--json", "--", "sleep", "301"]).exits(75).json();
    json.runs();
    assert!(json.bool("/demoted"));
    assert_eq!(ids(&world.list())[1], json.str("/id"));
}

#[test]
fn case_078_a_repeated_launch_starts_no_second_copy() {
    let world = world();
    let start = |options: &[&str]| {
        world.outlast(&[&["run", "-b", "--json", "--join"], options, &["sleep", "300"]].concat()).ok().json()
    };
    let (first, second) = (start(&[]), start(&["--cwd", "."]));
    assert_eq!((first.bool("/joined"), second.bool("/joined")), (false, true));
    assert_eq!(first.str("/id"), second.str("/id"));
    for other in [&["--cwd", "/"][..], &["-e", "A=1"], &["--limit", "1h"], &["--session", &world.new_session(&[])]] {
        let told = start(other);
        assert!(!told.bool("/joined") && told.str("/id") != first.str("/id"), "{other:?}: {told:?}");
    }
    assert_eq!(world.of_command(first.str("/id")).len(), 1);
    world.stop(first.str("/id"));
    let next = start(&[]);
    assert!(!next.bool("/joined") && next.str("/id") != first.str("/id"), "{next:?}");
}

#[test]
fn case_078_two_launches_in_the_same_instant_are_one_start() {
    let world = world();
    for _ in 0..5 {
        let calls: Vec<_> = (0..6).map(|_| world.spawn(&["run", "-b", "--json", "--join", "sleep", "300"])).collect();
        let told: Vec<Json> = calls.into_iter().map(|call| call.wait().ok().json()).collect();
        assert_eq!(told.iter().filter(|one| !one.bool("/joined")).count(), 1, "{told:?}");
        assert!(told.iter().all(|one| one.str("/id") == told[0].str("/id")), "{told:?}");
        world.stop(told[0].str("/id"));
    }
}
