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
